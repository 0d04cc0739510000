"""``axil worker`` and ``axil submit``: runs of a journal, executed by many processes."""

from __future__ import annotations

import argparse
import asyncio
import gc
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from axil import Workflow, run_sync
from axil.plugin import EngineError
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import Exit, Session, misuse
from axil_cli.folder import RUNS, folder_name
from axil_cli.logs import log_as_json
from axil_cli.probes import answered_probes
from axil_cli.record import source_of
from axil_cli.source import TARGET, as_input
from axil_cli.wants import opened_for_many
from axil_journals import (
    Bucket,
    Engine,
    Place,
    RunObjects,
    TriggeredRuns,
    TriggerSettings,
    read_queues,
    read_triggers,
)

_GRACE_SECONDS: Final = 10.0


class Worker:
    """Execute the runs of a journal that are due, until the process is asked to end.

    Any number of workers may share a journal: each run is executed by one of them at a time, and
    one that is lost is taken over by another.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "targets",
            nargs="*",
            metavar="WORKFLOW",
            help=f"{TARGET}; runs of other workflows are executed from the file texts that are "
            "kept with them",
        )
        parser.add_argument(
            "--engine", default="local", metavar="NAME", help="the engine; the default is local"
        )
        parser.add_argument(
            "--triggers",
            type=Path,
            metavar="FILE",
            help="a TOML file of times and folders that start runs; give it to every worker: "
            "each occurrence starts one run",
        )
        parser.add_argument(
            "--queues",
            type=Path,
            metavar="FILE",
            help="a TOML file of the rules of queues, which hold for all workers of the journal",
        )
        _add_objects(parser)
        add_watched_arguments(parser)
        parser.add_argument(
            "--drain", action="store_true", help="end when no run is due, instead of waiting"
        )
        add_shared_arguments(parser, "--workflow", "--journal")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Execute runs until the process is asked to end."""
        if options.log == "json":
            session = log_as_json(session)
        read = _workflows(options.targets, options, session, partial(opened_for_many, session))
        workflows = [workflow for workflow, _ in read]
        triggers = _triggers(options, session)
        workflows += [workflow for _, _, workflow, _ in triggers]
        allow = frozenset[str](options.allow)

        def find(header: Mapping[str, Any]) -> Workflow:
            origin: Mapping[str, Any] = header.get("origin", {})
            if not source_of(origin):  # of a graph in Python: nothing but its digest is known
                name = header.get("graph", "")
                message = f'the worker has no workflow "{name}" in the version of a run.'
                hint = "Start one that has it: axil worker FILE.py:GRAPH --allow code"
                raise EngineError(message, id="AX542", hint=hint)
            return session.reopened(origin, header.get("allow", allow))

        make = session.registry.resolve("engines", options.engine, "--engine")
        for name in ("queues", "objects"):  # what not every engine has
            if getattr(options, name) and name not in inspect.signature(make).parameters:
                message = f'the engine "{options.engine}" has no {name}.'
                raise misuse(f"--{name}", message, "Leave the option out, or use --engine local.")
        queues = () if options.queues is None else read_queues(options.queues)
        journal = session.journal(options, "axil worker")
        try:
            engine = make(
                journal,
                workflows,
                find=find,
                around=session.around,
                leave=session.granted,
                loaded=options.concurrency,
                **({"queues": queues} if queues else {}),
                **_folders(options, journal),
                allow=allow,
            )
            watching = [
                TriggeredRuns(
                    trigger=settings.trigger(name, options.triggers.parent),
                    engine=engine,
                    journal=journal,
                    workflow=workflow,
                    input=settings.input,
                    origin=origin,
                )
                for name, settings, workflow, origin in triggers
            ]
            gc.collect()
            gc.freeze()  # what is loaded stays: a full collection would stop the loop to look at it
            asyncio.run(_serve(engine, session, watching, options))
        finally:
            gc.unfreeze()
            journal.close()
        return Exit.DONE


def add_watched_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of processes that execute many runs, and are watched by others."""
    parser.add_argument(
        "--concurrency",
        type=_count,
        default=100,
        metavar="N",
        help="the largest number of runs at the same time",
    )
    parser.add_argument(
        "--status",
        default="",
        metavar="[HOST:]PORT",
        help="where /healthz, /readyz, /metrics and /metrics/journal are answered, without a token",
    )
    parser.add_argument(
        "--log", choices=("text", "json"), default="text", help="the form of log lines (text)"
    )


def _count(text: str) -> int:
    """Return a number of runs, of which at least one can begin."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number ≥ 1, found {text}")
    return int(text)


def _add_objects(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--objects",
        default="",
        metavar="URL",
        help="where the files of runs are kept for all workers: file:///…, s3://…, gs://…, az://…; "
        "here they are in axil-runs",
    )


def _folders(options: argparse.Namespace, journal: Any) -> dict[str, Any]:
    """Return the options of an engine for the files of runs: each has a folder of its own."""
    if not options.objects:
        return {"folder_of": _folder}
    objects = RunObjects(Bucket(options.objects), cipher=getattr(journal, "cipher", None))
    return {"folder_of": _folder, "objects": objects}


def _folder(run_id: str) -> Path:
    return Path(RUNS, folder_name(run_id)).resolve()


class Submit:
    """Store a run of a workflow in a journal, for workers to execute, and print its id."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("target", metavar="WORKFLOW", help=TARGET)
        parser.add_argument(
            "--input", default=None, metavar="TEXT", help="the input: JSON fields, or a text"
        )
        parser.add_argument(
            "--run-id",
            default="",
            metavar="ID",
            help="the run's id; the same id and the same input are the same run, begun once",
        )
        parser.add_argument("--thread", default="", metavar="NAME", help="the conversation")
        parser.add_argument(
            "--queue", default="", metavar="NAME", help="the queue in which it waits"
        )
        parser.add_argument(
            "--key", default="", metavar="KEY", help="whose it is: the keys of a queue take turns"
        )
        parser.add_argument(
            "--delay", type=float, metavar="SECONDS", help="how long it waits before it may begin"
        )
        parser.add_argument(
            "--deadline",
            type=float,
            metavar="SECONDS",
            help="it is cancelled if it has not begun by then",
        )
        _add_objects(parser)
        parser.add_argument(
            "--once",
            default="",
            metavar="NAME",
            help="a name that one run of the queue has at a time: as long as one has not ended, "
            "its id is printed, and no other begins",
        )
        parser.add_argument(
            "--debounce",
            type=float,
            metavar="SECONDS",
            help="how long it waits for another one of its name, whose input it gets; without "
            "--once the name is the key, or that of the workflow",
        )
        add_shared_arguments(parser, "--workflow", "--journal")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Store the run."""
        ((workflow, origin),) = _workflows([options.target], options, session, session.workflow)
        make = session.registry.resolve("engines", "local", "--engine")
        journal = session.journal(options, "axil submit")
        given = as_input(options.input, workflow.plan.graph.spec.payload)
        name = workflow.plan.graph.spec.id
        now = time.time()
        place = Place(
            queue=options.queue,
            key=options.key,
            start_at=None if options.delay is None else now + options.delay,
            deadline=None if options.deadline is None else now + options.deadline,
            once=options.once or ("" if options.debounce is None else options.key or name),
            debounce_seconds=options.debounce,
        )

        folders = _folders(options, journal)

        async def store() -> str:
            async with make(journal, [workflow], loaded=0, **folders) as engine:
                return await engine.start(
                    workflow,
                    given,
                    run_id=options.run_id,
                    thread=options.thread,
                    origin=origin,
                    place=place,
                )

        try:
            session.say(run_sync(store()))
        finally:
            journal.close()
        return Exit.DONE


async def _serve(
    engine: Engine,
    session: Session,
    triggered: Sequence[TriggeredRuns],
    options: argparse.Namespace,
) -> None:
    """Run an engine until a signal, or until no run is due; triggers start others meanwhile."""
    ending, loop = asyncio.Event(), asyncio.get_running_loop()
    given: Any = engine
    with session.interruptible(lambda: loop.call_soon_threadsafe(ending.set)):
        async with given, answered_probes(given, options.status):
            session.tell("The worker is ready; Ctrl+C ends it, and its runs stay in the journal.")
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(ending.wait())]
            for runs in triggered:  # before it may end because nothing is due
                await runs.look()
            watching = [asyncio.ensure_future(runs.watch()) for runs in triggered]
            waits += watching  # none of them ends but by an error
            if options.drain:
                waits.append(asyncio.ensure_future(given.idle()))
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for waiting in waits:
                waiting.cancel()
            for ended in await asyncio.gather(*watching, return_exceptions=True):
                if isinstance(ended, Exception):
                    raise ended
            if ending.is_set():
                session.tell("The worker ends: runs at work have a few seconds.")
                await given.close(grace_seconds=_GRACE_SECONDS)


def _workflows(
    targets: list[str],
    options: argparse.Namespace,
    session: Session,
    workflow_of: Callable[..., Workflow],
) -> list[tuple[Workflow, dict[str, Any]]]:
    """Return the workflows of targets, each with what is kept with its runs."""
    reading = session.reading(options)
    found: list[tuple[Workflow, dict[str, Any]]] = []
    for target in targets:
        workflow = workflow_of(target, **reading)
        found.append((workflow, session.origin(target, workflow, reading)))
    return found


def _triggers(
    options: argparse.Namespace, session: Session
) -> list[tuple[str, TriggerSettings, Workflow, dict[str, Any]]]:
    """Return the triggers, each with its workflow and what is kept with the workflow's runs."""
    if options.triggers is None:
        return []
    settings = read_triggers(options.triggers)
    folder: Path = options.triggers.parent
    targets = [_placed(each.workflow, folder) for each in settings.values()]
    read = _workflows(targets, options, session, partial(opened_for_many, session))
    return [
        (name, each, workflow, origin)
        for (name, each), (workflow, origin) in zip(settings.items(), read, strict=True)
    ]


def _placed(target: str, folder: Path) -> str:
    """Return a target as it is found from here; ``folder`` is where a file of it is looked for."""
    place, colon, graph = target.partition(":")
    return f"{folder / place}{colon}{graph}" if (folder / place).is_file() else target


__all__ = ["Submit", "Worker"]

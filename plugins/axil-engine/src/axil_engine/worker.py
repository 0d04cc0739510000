"""``axil worker`` and ``axil submit``: runs of a journal, executed by many processes."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from axil import Workflow, run_sync
from axil.driver import Engine
from axil.plugin import add_shared_arguments

_GRACE_SECONDS: Final = 10.0


class Worker:
    """Execute the runs of a journal that are due, until the process is asked to end.

    Any number of workers may share a journal: each run is executed by one of them at a time, and
    one that is lost is taken over by another.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument(
            "targets",
            nargs="*",
            metavar="WORKFLOW",
            help="a workflow file, or a graph in Python, as module:graph; runs of other "
            "workflows are executed from the file texts that are kept with them",
        )
        parser.add_argument(
            "--engine", default="local", metavar="NAME", help="the engine; the default is local"
        )
        parser.add_argument(
            "--concurrency",
            type=int,
            default=100,
            metavar="N",
            help="the largest number of runs at the same time",
        )
        parser.add_argument(
            "--drain", action="store_true", help="end when no run is due, instead of waiting"
        )
        add_shared_arguments(parser, "--journal", "--set", "--allow")

    def run(self, options: argparse.Namespace, session: Any) -> int:
        """Execute runs until the process is asked to end."""
        workflows = [workflow for workflow, _ in _workflows(options.targets, options, session)]
        allow = frozenset[str](options.allow)

        def find(header: Mapping[str, Any]) -> Workflow:
            return session.reopened(header.get("origin", {}), allow)

        make = session.registry.resolve("engines", options.engine, "--engine")
        journal = session.journal(options, "axil worker")
        try:
            engine = make(journal, workflows, find=find, loaded=options.concurrency, allow=allow)
            asyncio.run(_serve(engine, session, is_draining=options.drain))
        finally:
            journal.close()
        return 0


class Submit:
    """Store a run of a workflow in a journal, for workers to execute, and print its id."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument(
            "target", metavar="WORKFLOW", help="a workflow file, or a graph in Python"
        )
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
        add_shared_arguments(parser, "--journal", "--set", "--allow")

    def run(self, options: argparse.Namespace, session: Any) -> int:
        """Store the run."""
        ((workflow, origin),) = _workflows([options.target], options, session)
        make = session.registry.resolve("engines", "local", "--engine")
        journal = session.journal(options, "axil submit")
        given = _input(options.input, workflow.plan.graph.spec.payload)
        # a worker executes it where it can read and write files as here
        origin = {**origin, "workspace": os.getcwd(), "functions": None}

        async def store() -> str:
            async with make(journal, [workflow], loaded=0) as engine:
                return await engine.start(
                    workflow, given, run_id=options.run_id, thread=options.thread, origin=origin
                )

        try:
            session.say(run_sync(store()))
        finally:
            journal.close()
        return 0


async def _serve(engine: Engine, session: Any, *, is_draining: bool) -> None:
    """Run an engine until a signal, or until no run is due."""
    ending, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C is an exception there
            loop.add_signal_handler(number, ending.set)
    given: Any = engine
    async with given:
        session.tell("The worker is ready; Ctrl+C ends it, and its runs stay in the journal.")
        waits = [asyncio.ensure_future(ending.wait())]
        if is_draining:
            waits.append(asyncio.ensure_future(given.idle()))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for waiting in waits:
            waiting.cancel()
        if ending.is_set():
            session.tell("The worker ends: runs at work have a few seconds.")
            await given.close(grace_seconds=_GRACE_SECONDS)


def _workflows(
    targets: list[str], options: argparse.Namespace, session: Any
) -> list[tuple[Workflow, dict[str, Any]]]:
    """Return the workflows of targets, each with what is kept with its runs."""
    reading = session.reading(options)
    found: list[tuple[Workflow, dict[str, Any]]] = []
    for target in targets:
        workflow = session.workflow(target, **reading)
        found.append((workflow, session.origin(target, workflow, reading)))
    return found


def _input(text: str | None, payload: str) -> Any:
    """Return the input as a graph takes it: a text for messages, fields for the others; for typed
    state its fields, or the text of a conversation.

    >>> _input('{"n": 1}', "fields"), _input("hello", "fields"), _input("hello", "messages")
    ({'n': 1}, {'message': 'hello'}, 'hello')
    """
    if payload == "messages" or text is None:
        return text or ("" if payload == "messages" else {})
    try:
        data: Any = json.loads(text)
    except ValueError:
        data = text
    if isinstance(data, dict):
        return cast("dict[str, Any]", data)
    return text if payload == "state" else {"message": text}


__all__ = ["Submit", "Worker"]

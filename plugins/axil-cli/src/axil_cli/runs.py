"""``axil runs``: the runs that a journal keeps: look at them, resume them, fork
them, clear them away.
"""

from __future__ import annotations

import argparse
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from axil import MISSING, Workflow, run_sync
from axil.plugin import JournalError, install_advice
from axil_cli import record
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import Exit, Session, equipped, misuse, read_text
from axil_cli.folder import RUNS, placed, remove_folder
from axil_cli.launch import Launch, prepared, recorded
from axil_cli.picture import (
    difference_lines,
    listed,
    open_question_lines,
    outline_lines,
    prompt_lines,
    run_lines,
    step_lines,
)
from axil_cli.plain import as_json, plain
from axil_cli.run import (
    Job,
    answers_in,
    as_input,
    watched,
    ways_of_watching,
)
from axil_cli.source import as_data, check_breaks, settings, stopping
from axil_cli.wants import opened
from axil_journals import (
    Edit,
    Entry,
    ReplayIndex,
    RunInfo,
    answer_entry,
    decode_value,
    differences,
    fork,
    open_questions,
    outline,
    prompts_of,
    recorded_graph,
    snapshot,
    steps,
    version_changes,
)

_QUESTION: Final = re.compile(r"[^\s?]+\?[^\s?]*")
"""The form of ids of questions: the activation, and the number of the question in it."""
_LISTED = "axil runs list shows them."
_PAUSE_SECONDS: Final = 0.01
"""Between two runs that are forgotten: other processes that wait for the journal come first."""
_OPEN: Final = ("open", "paused", "failed", "limited", "cancelled", "parked")


class Runs:
    """Look at kept runs, and resume them.

    RUN is a run's id, or as much of its beginning as tells it from the others. Runs are kept by
    axil run unless it says otherwise.
    """

    prepares_options = True

    def configure(self, parser: argparse.ArgumentParser) -> None:
        doing = parser.add_subparsers(dest="doing", metavar="WHAT", required=True)
        # who takes options of plugins, and of which command
        self.lends: list[tuple[argparse.ArgumentParser, str]] = []

        def one(
            name: str, help: str, *, format: Sequence[str] = ("text", "json")
        ) -> argparse.ArgumentParser:
            made = doing.add_parser(name, help=help, description=help, allow_abbrev=False)
            add_shared_arguments(made, "--journal")
            if format:
                made.add_argument("--format", choices=format, default="text")
            return made

        listing = one("list", "the runs, newest first")
        listing.add_argument(
            "--thread", default="", metavar="NAME", help="only those of a conversation"
        )
        listing.add_argument(
            "--status",
            action="append",
            default=[],
            help="only those with this status; may be repeated",
        )
        listing.add_argument(
            "--limit", type=int, default=30, metavar="N", help="the most that are shown; 0: all"
        )
        showing = one(
            "show", "a run in short: its nodes, what they used, what it waits for; or step by step"
        )
        showing.add_argument("run", metavar="RUN")
        showing.add_argument("--steps", action="store_true", help="what happened, step by step")
        showing.add_argument(
            "--prompts", action="store_true", help="what models were asked, where it is kept"
        )
        showing.add_argument(
            "--json", action="store_const", dest="format", const="json", help="as --format json"
        )
        showing.add_argument(
            "--at",
            type=int,
            metavar="N",
            help="the run after step N: its state, and the next steps",
        )
        add_shared_arguments(showing, "--workflow")
        for name, help in (
            ("resume", "resume a run: finished work is not repeated"),
            ("answer", "answer a paused run, and resume it"),
        ):
            going = one(name, help, format=())
            going.add_argument("run", metavar="RUN")
            if name == "answer":
                going.add_argument(
                    "answers_given",
                    metavar="ANSWER",
                    nargs="*",
                    help="in the order of the questions, or ID=ANSWER",
                )
            add_shared_arguments(going, "--workflow")
            ways_of_watching(going)
            self.lends.append((going, "run"))
            which = going.add_mutually_exclusive_group()
            which.add_argument(
                "--current",
                action="store_true",
                help="resume with today's files, if the graph is the same",
            )
            which.add_argument(
                "--migrate",
                action="store_true",
                help="resume with today's files and plugins, whatever has changed, "
                "and keep them for this run",
            )
        forking = one(
            "fork", "branch off: a new run that has done what a run had done up to a step"
        )
        forking.add_argument("run", metavar="RUN")
        forking.add_argument("--at", type=int, metavar="N", help="up to step N; without it all")
        forking.add_argument(
            "--as", dest="new", metavar="ID", default="", help="the new run's name"
        )
        forking.add_argument(
            "--current",
            action="store_true",
            help="with today's files: another prompt, other edges, other code",
        )
        forking.add_argument(
            "--input", metavar="TEXT", help="with another input; without --at from the beginning"
        )
        forking.add_argument(
            "--state",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="with a field of the state set at step N; may be repeated",
        )
        forking.add_argument("--output", metavar="JSON", help="with another outcome of step N")
        forking.add_argument(
            "--route",
            action="store_true",
            help="the edges of step N decide again what they carry of the --output",
        )
        add_shared_arguments(forking, "--workflow")
        cancelling = one("cancel", "end a run, whatever its status", format=())
        cancelling.add_argument("run", metavar="RUN")
        comparing = one("diff", "where two runs differ, node by node")
        comparing.add_argument("run", metavar="RUN")
        comparing.add_argument("other", metavar="OTHER")
        exporting = one("export", "the whole record of a run, one JSON object a line", format=())
        exporting.add_argument("run", metavar="RUN")
        exporting.add_argument(
            "--html",
            action="store_true",
            help="as one page for a browser, which needs no server; with axil-serve",
        )
        add_shared_arguments(exporting, "--workflow")
        pruning = one("prune", "forget runs that have ended")
        pruning.add_argument(
            "--older-than",
            type=float,
            default=30.0,
            metavar="DAYS",
            help="those untouched for so long; 30",
        )
        pruning.add_argument(
            "--status",
            action="append",
            default=[],
            help="those with this status; done. May be repeated",
        )
        pruning.add_argument(
            "--files",
            metavar="DIR",
            help=f"also remove their folders in DIR ({RUNS} of axil run and axil serve)",
        )
        pruning.add_argument("--dry-run", action="store_true", help="print which, and delete none")
        healing = one("doctor", "look for damage")
        healing.add_argument(
            "--cut",
            metavar="RUN",
            help="drop the entries behind the damage in RUN, so that it can be resumed",
        )

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Do it."""
        journal = record.opened(options, session, needed="axil runs", kept=True)
        try:
            return int(getattr(self, f"_{options.doing}")(journal, options, session))
        finally:
            journal.close()

    # ------------------------------------------------------------------ looking

    def _list(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        limit, status = max(0, options.limit), options.status or ()
        if options.thread:
            infos = [
                info
                for info in journal.infos(journal.thread(options.thread))
                if not status or info.status in status
            ]
            infos.sort(key=lambda info: -info.touched)
        else:  # one more says whether there are more
            infos = journal.runs(status=status, limit=limit and limit + 1)
        some = infos[:limit] if limit else infos
        dues = _dues(journal, some)
        if options.format == "json":
            session.say(as_json([{**plain(info), "due": dues.get(info.run_id)} for info in some]))
            return Exit.DONE
        for line in listed(some, time.time(), dues):
            session.say(line)
        if len(some) < len(infos):
            session.tell("There are more; --limit 0 shows all.")
        if not infos:
            session.tell("No runs are kept here that fit.")
        return Exit.DONE

    def _show(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id = found(journal, options.run)
        entries = journal.entries(run_id)
        if options.at is not None:
            return self._stood(entries, options, session)
        info = _info(journal, run_id)
        waiting = [] if info.status == "done" else open_questions(entries)
        if options.format == "json":
            questions = [plain(question) for question in waiting]
            session.say(
                as_json(
                    {
                        "run": plain(info),
                        "outline": plain(outline(entries)),
                        "questions": questions,
                        "steps": [plain(step) for step in steps(entries)],
                        **({"prompts": plain(prompts_of(entries))} if options.prompts else {}),
                    }
                )
            )
            return Exit.DONE
        kept = _origin(entries, options)
        files = record.changed(kept)
        for line in run_lines(
            info, time.time(), files, self._apart(kept, options, session) if files else ()
        ):
            session.say(line)
        for line in outline_lines(outline(entries)):
            session.say(line)
        for step in steps(entries) if options.steps else ():
            for line in step_lines(step):
                session.say(line)
        if options.prompts:
            for line in prompt_lines(prompts_of(entries)):
                session.say(line)
        for question in waiting:
            for line in open_question_lines(question, time.time()):
                session.say(line)
        return Exit.DONE

    def _apart(
        self, kept: dict[str, Any], options: argparse.Namespace, session: Session
    ) -> list[str]:
        """Return the changes in the graph of a run; where code may not be run, they are not looked
        for.
        """
        if kept.get("allow_code") and "code" not in options.allow:
            leave = record.leave_of(kept)
            return [f"what: {record.way_on(f'show {options.run}', session, options, leave)} tells"]
        with equipped(session, kept.get("functions"), options.allow) as here:
            return record.differences(kept, here, allow=frozenset(options.allow))

    def _stood(
        self, entries: Sequence[Entry], options: argparse.Namespace, session: Session
    ) -> int:
        if not 0 < options.at <= len(entries):
            raise misuse("--at", f"expected a step from 1 to {len(entries)}, found {options.at}.")
        # before a run was migrated it was that of another version
        kept = _origin(entries[: options.at], options)
        with equipped(session, kept.get("functions"), options.allow) as here:
            workflow = record.reopened(kept, here, allow=frozenset(options.allow))
            workflow.plan  # noqa: B018  # its components are found while they can be
        stood = run_sync(snapshot(workflow, entries, at=options.at))
        data = {
            "state": plain(stood.state),
            "due": [plain(due) for due in stood.due],
            "status": stood.result.status,
        }
        if options.format == "json":
            session.say(as_json(data))
            return Exit.DONE
        session.say("state:")
        for name, value in stood.state.items():
            session.say(f"  {name}: {as_json(value, indent=None)}")
        for due in stood.due:
            session.say(f"next: {due.activation}")
            session.say(f"  inputs: {as_json(due.inputs, indent=None)}")
        if not stood.due:
            session.say(
                "next: nothing, the run was over"
                if stood.result.status == "done"
                else f"next: nothing ({stood.result.status})"
            )
        return Exit.DONE

    def _diff(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        one, other = (
            journal.entries(found(journal, name)) for name in (options.run, options.other)
        )
        apart = differences(one, other)
        if options.format == "json":
            session.say(as_json([plain(each) for each in apart]))
        else:
            for each in apart:
                for line in difference_lines(each):
                    session.say(line)
            if not apart:
                session.tell("Every node has the same result.")
        return Exit.FAILED if apart else Exit.DONE

    def _export(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        if options.html:
            return self._export_page(journal, options, session)
        for number, entry in enumerate(journal.entries(found(journal, options.run)), 1):
            who = {"frame": list(entry.frame), "node": entry.node, "ordinal": list(entry.ordinal)}
            session.say(
                as_json(
                    {"number": number, "kind": entry.kind, **who, "data": dict(entry.data)},
                    indent=None,
                )
            )
        return Exit.DONE

    def _export_page(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id = found(journal, options.run)
        view = session.registry.resolve("commands", "view", "--html")()
        kept = _origin(journal.entries(run_id), options)
        # without leave to run code the page shows the record alone
        functions = kept.get("functions") if "code" in options.allow else None
        with equipped(session, functions, options.allow) as here:
            session.say(view.export(journal, run_id, here, frozenset(options.allow)))
        return Exit.DONE

    # ------------------------------------------------------------------ going on

    def _resume(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        return self._go_on(journal, options, session, {})

    def _answer(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id = found(journal, options.run)
        entries = journal.entries(run_id)
        is_at_work = _info(journal, run_id).status == "running"
        open_ones = (
            [question.id for question in open_questions(entries)]
            if is_at_work or ReplayIndex(entries).ended is not None
            else []
        )
        if not open_ones:
            raise misuse(
                "RUN",
                f'no question of "{run_id}" is open.',
                f"{record.way_on(f'show {run_id}', session, options)} tells where it stands.",
            )
        given = list(options.answers_given)
        if options.answers is not None:
            given += answers_in(read_text(options.answers, "--answers"))
            options.answers = None
        answers = answered(open_ones, given)
        if is_at_work:  # the process that runs it reads its mail
            for id, value in answers.items():
                if not journal.post(run_id, answer_entry(id, value)):
                    raise misuse("ANSWER", f'the question "{id}" was answered before.')
            session.tell(
                f"{run_id} is at work; the worker or server that runs it goes on. "
                "A terminal that asks waits for its own answer."
            )
            return Exit.DONE
        return self._go_on(journal, options, session, answers)

    def _go_on(
        self, journal: Any, options: argparse.Namespace, session: Session, answers: dict[str, Any]
    ) -> int:
        run_id = found(journal, options.run)
        entries = journal.entries(run_id)
        kept = _origin(entries, options)
        with equipped(session, kept.get("functions"), options.allow) as here:
            return self._gone_on(journal, options, here, run_id, {"answers": answers, "kept": kept})

    def _gone_on(
        self,
        journal: Any,
        options: argparse.Namespace,
        session: Session,
        run_id: str,
        given: dict[str, Any],
    ) -> int:
        kept, allow = given["kept"], frozenset(options.allow)
        hooks = stopping(options.breaks, session.hooks)
        ways = {
            "journal": journal,
            "run_id": run_id,
            "resuming": True,
            "answers": given["answers"],
            "allow": allow,
        }
        launch = Launch(
            file=record.source_of(kept),
            registry=session.registry,
            tell=session.tell,
            running=ways,
            functions=session.functions,
            recorded=recorded(journal.entries(run_id)),
        )
        with launch.within:
            prepared(launch, session.options)
            here = replace(session, registry=launch.registry)
            is_current = options.current or options.migrate
            workflow, _ = opened(
                lambda words: record.reopened(
                    kept, here, allow=words, current=is_current, hooks=hooks
                ),
                allow,
                launch.file,
                session,
            )
            check_breaks(options.breaks, workflow)
            if options.migrate:
                launch.running.update(
                    migrate=True,
                    origin=_renewed(kept, workflow, session),
                )
            elif kept.get("python") and (files := record.changed(kept)):
                session.tell(
                    f"note: {', '.join(files)} changed since the run began; "
                    "a graph in Python goes on as it is now."
                )
            elif not options.current and (files := record.changed(kept)):
                session.tell(
                    f"note: {', '.join(files)} changed since the run began; "
                    "it continues with what it began with."
                )
                for line in record.differences(kept, here, allow=allow):
                    session.tell(f"    {line}")
                now, other = (
                    record.way_on(doing, session, options, record.leave_of(kept))
                    for doing in (f"resume {run_id} --migrate", f"fork {run_id} --current")
                )
                session.tell(f"    With what is there now: {now}, or {other}.")
            folder = placed(launch.running, kept.get("workspace"))
            job = Job(
                workflow,
                as_input(None, workflow.plan.graph.spec.payload),
                launch.running,
                launch.observers,
                folder,
            )
            try:
                return watched(job, options, session)
            except JournalError as error:
                pins = recorded_graph(journal.entries(run_id)).get("pins", {})
                way = partial(
                    record.way_on,
                    session=session,
                    options=options,
                    leave=record.leave_of(kept),
                )
                for line in _ways_on(error, run_id, _requirements(pins, workflow.pins), way):
                    session.tell(line)
                raise

    def _fork(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id, new = found(journal, options.run), options.new or secrets.token_hex(4)
        entries = journal.entries(run_id)
        if options.at is not None and not 0 < options.at <= len(entries):
            raise misuse("--at", f"expected a step from 1 to {len(entries)}, found {options.at}.")
        kept = _origin(entries[: options.at], options)
        needed = (
            options.current
            or options.input is not None
            or options.state
            or options.output is not None
            or options.set
        )
        with equipped(session, kept.get("functions") if needed else None, options.allow) as here:
            workflow = (
                record.reopened(kept, here, allow=frozenset(options.allow), current=options.current)
                if needed
                else None
            )
            origin = None if workflow is None else _renewed(kept, workflow, here)
            edit = Edit(
                input=MISSING
                if workflow is None or options.input is None
                else as_input(options.input, workflow.plan.graph.spec.payload),
                state=settings(options.state, "--state"),
                output=MISSING if options.output is None else as_data(options.output),
                is_routed=options.route,
                origin=origin,
            )
        run_sync(fork(journal, run_id, new, at=options.at, workflow=workflow, edit=edit))
        session.say(
            as_json({"run_id": new, "forked_from": run_id}) if options.format == "json" else new
        )
        way = record.way_on(f"resume {new}", session, options, record.leave_of(origin or kept))
        session.tell(f"Resume it: {way}")
        return Exit.DONE

    def _cancel(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id = found(journal, options.run)
        info = _info(journal, run_id)
        if info.status not in _OPEN:
            if info.status == "running":  # the process that runs it reads its mail
                data = {"status": "cancelled", "error": "it was cancelled"}
                journal.post(run_id, Entry("ended", data=data))
                session.tell(f"{run_id} is at work; the process that runs it ends it.")
                return Exit.DONE
            raise misuse("RUN", f'"{run_id}" is {info.status} already.')

        async def end() -> None:
            writer = journal.open(run_id)
            try:
                writer.append(
                    Entry("ended", data={"status": "cancelled", "error": "it was cancelled"})
                )
                if (waiting := writer.kept()) is not None:
                    await waiting
            finally:
                writer.close()

        run_sync(end())
        session.tell(f"{run_id} is cancelled.")
        return Exit.DONE

    # ------------------------------------------------------------------ clearing away

    def _prune(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        before, ended = time.time() - options.older_than * 86_400, options.status or ["done"]
        old = [info for info in journal.runs(status=ended) if info.touched < before]
        if not options.dry_run:
            old = [info for info in old if _forgotten(journal, info.run_id, session)]
            for info in old if options.files else ():
                remove_folder(options.files, info.run_id)
            if hasattr(journal, "shrink"):
                journal.shrink()
        if options.format == "json":
            session.say(as_json([info.run_id for info in old]))
        else:
            for line in listed(old, time.time()):
                session.say(line)
            session.tell(f"{len(old)} run(s) {'would be' if options.dry_run else 'are'} forgotten.")
        return Exit.DONE

    def _doctor(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        if not hasattr(journal, "examine"):
            raise misuse("axil runs doctor", "this journal cannot be examined.")
        damages = journal.examine()
        if options.cut:
            there = [each for each in damages if each.run_id == options.cut]
            if not there:
                raise misuse("--cut", f'nothing is wrong with a run "{options.cut}".')
            journal.cut(options.cut, there[0].good)
            leave = record.leave_of(_origin(journal.entries(options.cut), options))
            way = record.way_on(f"resume {options.cut}", session, options, leave)
            session.tell(f"{options.cut} continues from step {there[0].good}: {way}")
            return Exit.DONE
        if options.format == "json":
            session.say(as_json([each._asdict() for each in damages]))
        for each in damages if options.format == "text" else ():
            session.say(f"{each.run_id or 'the database'}: {each.problem}")
        if not damages:
            session.tell("Nothing is damaged.")
        return Exit.FAILED if damages else Exit.DONE


def found(journal: Any, name: str) -> str:
    """Return the id of the run that is called ``name``, or begins so.

    Raises: JournalError (AX503): none, or several.
    """
    if journal.infos([name]):
        return name
    near = [each.run_id for each in journal.runs() if name and each.run_id.startswith(name)]
    if len(near) == 1:
        return near[0]
    if not near:
        raise _unknown(name)
    message = f'several runs begin with "{name}": {", ".join(near[:5])}.'
    raise JournalError(message, id="AX503", hint=_LISTED)


def _info(journal: Any, run_id: str) -> Any:
    """Return what is known of a run. Raises: JournalError (AX503): it was forgotten meanwhile."""
    for info in journal.infos([run_id]):
        return info
    raise _unknown(run_id)


def _unknown(name: str) -> JournalError:
    return JournalError(f'the journal knows no run "{name}".', id="AX503", hint=_LISTED)


def _forgotten(journal: Any, run_id: str, session: Session) -> bool:
    """Return whether a run was forgotten; one that is resumed or forgotten in the meantime is left
    alone.
    """
    try:
        journal.forget(run_id)
        time.sleep(_PAUSE_SECONDS)
    except JournalError as error:
        if error.id not in ("AX503", "AX506"):
            raise
        session.tell(f"{run_id} is left: {error.message}")
        return False
    return True


def _requirements(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the requirements of the plugins of a run that are not what is installed now."""
    return [
        f"{name}=={pin['version']}"
        for name, pin in before.items()
        if version_changes({name: pin}, now)
    ]


def _ways_on(
    error: JournalError, run_id: str, wanted: Sequence[str], way: Callable[[str], str]
) -> list[str]:
    """Return the commands that can continue a run whose graph or plugins have changed.

    Args:
        wanted: its plugins, as requirements
        way: makes a command of what ``axil runs`` is to do
    """
    if error.id not in ("AX504", "AX524"):
        return []
    old = way(f"resume {run_id}")
    if error.id == "AX524":
        old = f"{install_advice(*wanted)}, then {old}"
    return [
        f"finish it on the old one:       {old}",
        f"continue with the current files:  {way(f'resume {run_id} --migrate')}",
        f"branch off:                     {way(f'fork {run_id} --current')}",
    ]


def _dues(journal: Any, infos: Sequence[RunInfo]) -> dict[str, float]:
    """Return when the first question of each waiting run is due, where it has a time limit."""
    dues: dict[str, float] = {}
    for info in infos:
        if info.status in ("paused", "running"):
            found = [
                question.due
                for question in open_questions(journal.entries(info.run_id))
                if question.due is not None
            ]
            dues.update({info.run_id: min(found)} if found else {})
    return dues


def answered(questions: Sequence[str], given: Iterable[Any]) -> dict[str, Any]:
    """Answers by question: those that name one go there, the others in order.

    Raises: ConfigError (AX700): too many, none, or one for a question that is not open.

    >>> answered(["a?1", "b?1"], ["b?1=no", "yes"])
    {'b?1': 'no', 'a?1': 'yes'}
    """
    answers: dict[str, Any] = {}
    rest: list[Any] = []
    for each in given:
        name, equals, value = each.partition("=") if isinstance(each, str) else ("", "", "")
        if equals and name in questions:
            answers[name] = as_data(value)
        elif equals and _QUESTION.fullmatch(name):
            message = f'the run waits for no answer to "{name}".'
            raise misuse("ANSWER", message, f"Open: {', '.join(questions)}.")
        else:
            rest.append(as_data(each) if isinstance(each, str) else each)
    left = [question for question in questions if question not in answers]
    if len(rest) > len(left):
        raise misuse(
            "ANSWER",
            f"{len(rest) + len(answers)} answers to {len(questions)} question(s).",
            f"Open: {', '.join(questions)}.",
        )
    answers.update(zip(left, rest, strict=False))
    if not answers:
        raise misuse("ANSWER", "no answer was given.", f"Open: {', '.join(questions)}.")
    return answers


def _renewed(kept: dict[str, Any], workflow: Workflow, session: Session) -> dict[str, Any]:
    """Return what is kept with a run, with its workflow as it is now."""
    source = record.source_of(kept)
    return {**kept, **record.origin(source, workflow, kept, session.functions)}


def _origin(entries: Sequence[Entry], options: argparse.Namespace) -> dict[str, Any]:
    """Return what was kept with a run of how it began, with the variables of ``--set``."""
    header = ReplayIndex(entries).header
    if header is None or "origin" not in header.data:
        return {}
    kept = dict(decode_value(header.data["origin"]))
    return {**kept, "vars": {**kept.get("vars", {}), **settings(options.set)}}

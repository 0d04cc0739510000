"""``axil runs``: look at the runs that a journal keeps, resume, fork and delete them."""

from __future__ import annotations

import argparse
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from axil import MISSING, AxilError, Workflow, run_sync
from axil.plugin import install_advice
from axil_cli import record
from axil_cli.command import Exit, Session, equipped, misuse, read_text
from axil_cli.folder import placed
from axil_cli.job import Job
from axil_cli.picture import (
    difference_lines,
    open_question_lines,
    outline_lines,
    prompt_lines,
    run_lines,
    run_table,
    step_lines,
)
from axil_cli.plain import as_json, plain
from axil_cli.record import find_run
from axil_cli.run import answers_in, limits_given, watched
from axil_cli.runs_arguments import OPEN, add_runs_arguments
from axil_cli.source import as_data, as_input, check_breaks, settings, with_breaks
from axil_cli.upkeep import examine, prune, repair
from axil_cli.wants import opened
from axil_journals import (
    Edit,
    Entry,
    ReplayIndex,
    RunInfo,
    answer_entry,
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


class Runs:
    """Look at kept runs, and resume them.

    RUN is a run's id, or as much of its beginning as tells it from the others. Runs are kept by
    axil run unless it says otherwise.
    """

    prepares_options = True
    _prune = staticmethod(prune)
    _doctor = staticmethod(examine)

    def configure(self, parser: argparse.ArgumentParser) -> None:
        self.takes = add_runs_arguments(parser)

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Do it."""
        if options.doing == "doctor" and options.repair:
            return repair(options, session)
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
            session.say_json([{**plain(info), "due": dues.get(info.run_id)} for info in some])
            return Exit.DONE
        for line in run_table(some, time.time(), dues):
            session.say(line)
        if len(some) < len(infos):
            session.tell("There are more; --limit 0 shows all.")
        if not infos:
            session.tell("No runs are kept here that fit.")
        return Exit.DONE

    def _show(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id = find_run(journal, options.run)
        entries = journal.entries(run_id)
        if options.at is not None:
            return self._show_at(entries, options, session)
        info = _info(journal, run_id)
        waiting = [] if info.status == "done" else open_questions(entries)
        if options.format == "json":
            data = {
                "run": info,
                "outline": outline(entries),
                "questions": waiting,
                "steps": list(steps(entries)),
            }
            session.say_json({**data, "prompts": prompts_of(entries)} if options.prompts else data)
            return Exit.DONE
        kept = _origin(entries, options)
        files = record.changed(kept)
        differing = self._changes(kept, options, session) if files else ()
        for line in (
            *run_lines(info, time.time(), files, differing),
            *outline_lines(outline(entries)),
            *(line for step in steps(entries) if options.steps for line in step_lines(step)),
            *(prompt_lines(prompts_of(entries)) if options.prompts else ()),
            *(line for each in waiting for line in open_question_lines(each, time.time())),
        ):
            session.say(line)
        return Exit.DONE

    def _changes(
        self, kept: dict[str, Any], options: argparse.Namespace, session: Session
    ) -> list[str]:
        """Return the changes in the graph of a run; without leave for code they are unknown."""
        if kept.get("allow_code") and "code" not in options.allow:
            leave = record.leave_of(kept)
            return [f"what: {record.way_on(f'show {options.run}', session, options, leave)} tells"]
        with equipped(session, kept.get("functions"), options.allow) as here:
            return record.differences(kept, here, allow=frozenset(options.allow))

    def _show_at(
        self, entries: Sequence[Entry], options: argparse.Namespace, session: Session
    ) -> int:
        until = _until(entries, options.at)
        kept, allow = _origin(until, options), _leave(until, options, session)
        with equipped(session, kept.get("functions"), allow) as here:
            workflow = record.reopened(kept, here, allow=allow)
            workflow.plan  # noqa: B018  # its components are found while they can be
        found = run_sync(snapshot(workflow, entries, at=options.at))
        status = found.result.status
        if options.format == "json":
            session.say_json({"state": found.state, "due": list(found.due), "status": status})
            return Exit.DONE
        session.say("state:")
        for name, value in found.state.items():
            session.say(f"  {name}: {as_json(value, indent=None)}")
        for due in found.due:
            session.say(f"next: {due.activation}")
            session.say(f"  inputs: {as_json(due.inputs, indent=None)}")
        if not found.due:
            end = ", the run was over" if status == "done" else f" ({status})"
            session.say(f"next: nothing{end}")
        return Exit.DONE

    def _diff(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        one, other = (
            journal.entries(find_run(journal, name)) for name in (options.run, options.other)
        )
        found = list(differences(one, other))
        if options.format == "json":
            session.say_json(found)
        else:
            for line in (line for each in found for line in difference_lines(each)):
                session.say(line)
            if not found:
                session.tell("Every node has the same result.")
        return Exit.FAILED if found else Exit.DONE

    def _export(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        if options.html:
            return self._export_page(journal, options, session)
        for number, entry in enumerate(journal.entries(find_run(journal, options.run)), 1):
            data = {
                "number": number,
                "kind": entry.kind,
                "frame": entry.frame,
                "node": entry.node,
                "ordinal": entry.ordinal,
                "data": entry.data,
            }
            session.say_json(data, indent=None)
        return Exit.DONE

    def _export_page(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id = find_run(journal, options.run)
        view = session.registry.resolve("commands", "view", "--html")()
        kept = _origin(journal.entries(run_id), options)
        # without leave to run code the page shows the record alone
        functions = kept.get("functions") if "code" in options.allow else None
        with equipped(session, functions, options.allow) as here:
            session.say(view.export(journal, run_id, here, frozenset(options.allow)))
        return Exit.DONE

    # ------------------------------------------------------------------ resuming

    def _resume(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        return self._continue(journal, options, session, {})

    def _answer(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id = find_run(journal, options.run)
        entries = journal.entries(run_id)
        is_at_work = _info(journal, run_id).status == "running"
        ids: list[str] = []
        if is_at_work or ReplayIndex(entries).ended is not None:
            ids = [question.id for question in open_questions(entries)]
        if not ids:
            hint = f"{record.way_on(f'show {run_id}', session, options)} tells its status."
            if is_at_work:
                hint = f"It is at work; what it asks on a terminal is answered there. {hint}"
            raise misuse("RUN", f'no question of "{run_id}" is open.', hint)
        given = list(options.answers_given)
        if options.answers is not None:
            given += answers_in(read_text(options.answers, "--answers"))
            options.answers = None
        answers = answered(ids, given)
        if is_at_work:  # the process that runs it reads its mail
            for id, value in answers.items():
                if not journal.post(run_id, answer_entry(id, value)):
                    raise misuse("ANSWER", f'the question "{id}" was answered before.')
            session.tell(f"{run_id} is at work; the process that runs it goes on with the answer.")
            return Exit.DONE
        return self._continue(journal, options, session, answers)

    def _continue(
        self, journal: Any, options: argparse.Namespace, session: Session, answers: dict[str, Any]
    ) -> int:
        run_id = find_run(journal, options.run)
        entries = journal.entries(run_id)
        kept = _origin(entries, options)
        is_current = (options.current or options.migrate) and bool(record.changed(kept))
        allow = _leave(entries, options, session, current=is_current)
        with (
            equipped(session, kept.get("functions"), allow) as session,
            session.launch(
                record.source_of(kept),
                entries=entries,
                kept=kept,
                journal=journal,
                run_id=run_id,
                resuming=True,
                answers=answers,
                allow=allow,
            ) as launch,
        ):
            here = replace(session, registry=launch.registry)
            hooks = with_breaks(options.breaks, session.hooks)
            pins: dict[str, Any] = {} if is_current else recorded_graph(entries).get("pins", {})
            now = record.installed(pins)
            try:
                workflow, _ = opened(
                    lambda words: record.reopened(
                        kept, here, allow=words, current=is_current, hooks=hooks
                    ),
                    allow,
                    launch.file,
                    session,
                )
                now = workflow.pins
                check_breaks(options.breaks, workflow)
                if options.migrate:
                    origin = _renewed(kept, workflow, session, allow)
                    launch.running.update(migrate=True, origin=origin)
                else:
                    if files := record.changed(kept):
                        _tell_changed(files, kept, options, (run_id, here))
                    reading = {"vars": settings(options.set), "allow": allow}
                    before = ReplayIndex(entries).origin
                    launch.running["origin"] = record.continued(before, reading, session)
                folder = placed(launch.running, kept.get("workspace"))
                launch.running |= limits_given(options, workflow, entries)
                input = as_input(None, workflow.plan.graph.spec.payload)
                job = Job(workflow, input, launch.running, launch.observers)
                return watched(job, folder, options, session)
            except AxilError as given:
                error = record.unfit(given, pins, now)
                leave = record.leave_of if record.changed(kept) else record.needed_leave
                way = partial(record.way_on, session=session, options=options, leave=leave(kept))
                for line in _advice(error, run_id, _requirements(pins, now), way):
                    session.tell(line)
                raise error from given.__cause__

    def _fork(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id, new = find_run(journal, options.run), options.new or secrets.token_hex(4)
        entries = journal.entries(run_id)
        kept = _origin(_until(entries, options.at), options)
        needed = (
            options.current
            or options.input is not None
            or options.state
            or options.output is not None
            or options.set
        )
        is_current = options.current and bool(record.changed(kept))
        allow = frozenset[str](options.allow)
        if needed:
            allow = _leave(_until(entries, options.at), options, session, current=is_current)
        with equipped(session, kept.get("functions") if needed else None, allow) as here:
            workflow = (
                record.reopened(kept, here, allow=allow, current=is_current) if needed else None
            )
            origin = None if workflow is None else _renewed(kept, workflow, here, allow)
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
        if options.format == "json":
            session.say_json({"run_id": new, "forked_from": run_id})
        else:
            session.say(new)
        leave = record.needed_leave(origin or kept)
        way = record.way_on(f"resume {new}", session, options, leave)
        session.tell(f"Resume it: {way}")
        return Exit.DONE

    def _cancel(self, journal: Any, options: argparse.Namespace, session: Session) -> int:
        run_id = find_run(journal, options.run)
        info = _info(journal, run_id)
        ended = Entry("ended", data={"status": "cancelled", "error": "it was cancelled"})
        if info.status not in OPEN:
            if info.status == "running":  # the process that runs it reads its mail
                journal.post(run_id, ended)
                session.tell(f"{run_id} is at work; the process that runs it ends it.")
                return Exit.DONE
            raise misuse("RUN", f'"{run_id}" is {info.status} already.')

        async def end() -> None:
            writer = journal.open(run_id)
            try:
                writer.append(ended)
                if (waiting := writer.kept()) is not None:
                    await waiting
            finally:
                writer.close()

        run_sync(end())
        session.tell(f"{run_id} is cancelled.")
        return Exit.DONE


def _info(journal: Any, run_id: str) -> Any:
    """Return what is known of a run. Raises: JournalError (AX503): it was forgotten meanwhile."""
    for info in journal.infos([run_id]):
        return info
    raise record.unknown_run(run_id)


def _until(entries: Sequence[Entry], at: int | None) -> Sequence[Entry]:
    """Return the entries up to a step: before a run was migrated it was that of another version.

    Raises: ConfigError (AX700): there is no such step.
    """
    if at is not None and not 0 < at <= len(entries):
        raise misuse("--at", f"expected a step from 1 to {len(entries)}, found {at}.")
    return entries[:at]


def _tell_changed(
    files: Sequence[str],
    kept: Mapping[str, Any],
    options: argparse.Namespace,
    run: tuple[str, Session],
) -> None:
    """Say what a run that is resumed does with files that have changed."""
    run_id, session = run
    note = f"note: {', '.join(files)} changed since the run began; "
    if kept.get("python"):
        session.tell(f"{note}a graph in Python goes on as it is now.")
    elif not options.current:
        session.tell(f"{note}it continues with what it began with.")
        for line in record.differences(kept, session, allow=frozenset(options.allow)):
            session.tell(f"    {line}")
        now, other = (
            record.way_on(doing, session, options, record.leave_of(kept))
            for doing in (f"resume {run_id} --migrate", f"fork {run_id} --current")
        )
        session.tell(f"    With what is there now: {now}, or {other}.")


def _requirements(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the requirements of the plugins of a run that are not what is installed now."""
    return [
        f"{name}=={pin['version']}"
        for name, pin in before.items()
        if version_changes({name: pin}, now)
    ]


def _advice(
    error: AxilError, run_id: str, wanted: Sequence[str], way: Callable[[str], str]
) -> list[str]:
    """Return the commands that can continue a run whose graph or plugins have changed.

    ``wanted``: its plugins, as requirements; ``way``: makes a command of what is to be done.
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
            questions = open_questions(journal.entries(info.run_id))
            if found := [each.due for each in questions if each.due is not None]:
                dues[info.run_id] = min(found)
    return dues


def answered(questions: Sequence[str], given: Iterable[Any]) -> dict[str, Any]:
    """Return answers by question: those that name one go there, the others in order.

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


def _renewed(
    kept: dict[str, Any], workflow: Workflow, session: Session, allow: frozenset[str]
) -> dict[str, Any]:
    """Return what is kept with a run, with its workflow as it is now, and this leave."""
    now = session.origin(record.source_of(kept), workflow, {**kept, "allow": allow})
    options = {"options": kept.get("options", {})}
    return record.continued({**kept, **now, **options}, {"vars": {}, "allow": allow}, session)


def _leave(
    entries: Sequence[Entry],
    options: argparse.Namespace,
    session: Session,
    *,
    current: bool = False,
) -> frozenset[str]:
    """Return the leave of a run: given now, or kept with it; ``current``: its files have changed,
    and are used as they are now, for which leave is given anew.
    """
    given = frozenset[str](options.allow)
    return given if current else session.granted(ReplayIndex(entries).origin, given)


def _origin(entries: Sequence[Entry], options: argparse.Namespace) -> dict[str, Any]:
    """Return what was kept with a run of how it began, with the variables of ``--set``."""
    kept = ReplayIndex(entries).origin
    given = settings(getattr(options, "set", ()))
    return {**kept, "vars": {**kept.get("vars", {}), **given}} if kept else {}

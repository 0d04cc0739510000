"""``axil run``: run a workflow file, show how it goes, print what it comes to."""

from __future__ import annotations

import argparse
import os
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from axil import (
    MISSING,
    AxilError,
    ConfigError,
    NodeFailed,
    Problem,
    Question,
    Result,
    Workflow,
)
from axil.plugin import (
    ENTRY,
    Channel,
    MissingKeys,
    has_failed,
    is_messages,
    render,
    text_of,
)
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import (
    Exit,
    Session,
    equipped,
    error_lines,
    is_debugging,
    misuse,
    read_text,
)
from axil_cli.findings import check_input, not_taken
from axil_cli.folder import RunFolder, placed
from axil_cli.job import Job
from axil_cli.plain import as_json, plain, refused, summary
from axil_cli.record import changed, leave_of, needed_leave, source_of, way_on
from axil_cli.source import (
    TARGET,
    as_data,
    as_input,
    check_breaks,
    settings,
    with_breaks,
    workflow_of,
)
from axil_cli.wants import opened
from axil_cli.watch import Lines, Record

if TYPE_CHECKING:
    from axil_cli.launch import Launch
    from axil_cli.page import Page
    from axil_cli.progress import Progress
    from axil_journals import Entry


_PDF: Final = "%PDF-"
_LIMITS: Final = {"AX412": "firings", "AX413": "tokens", "AX414": "cost", "AX415": "seconds"}
"""The limit of a run by the error of one that reached it."""


class Run:
    """Run a workflow file.

    The output goes to standard output, everything else to standard error. The exit code says how it
    ended: 0 done, 1 a node failed, 2 the file or an option cannot be used, 3 paused with open
    questions, 4 a limit was reached, 130 interrupted.
    """

    prepares_options = True

    def refuse(self, error: AxilError, options: argparse.Namespace, session: Session) -> None:
        """Say as data, too, with ``--format json``, that the file or an option cannot be used."""
        if options.format == "json" and not is_debugging():
            session.say_json(refused(error))

    def configure(self, parser: argparse.ArgumentParser) -> None:
        self.workflow = parser.add_argument("file", metavar="WORKFLOW", help=TARGET)
        given = parser.add_mutually_exclusive_group()
        given.add_argument(
            "--input",
            metavar="TEXT",
            help="the input: a text; for graphs of fields a text or a JSON object",
        )
        given.add_argument(
            "--input-file", metavar="P", help="the input, from a file; - is standard input"
        )
        add_shared_arguments(parser, "--workflow", "--journal")
        parser.add_argument(
            "--workspace",
            metavar="DIR",
            help="the run's folder; without it axil-runs/<run>, if something needs one",
        )
        parser.add_argument(
            "--attach",
            nargs="+",
            action="extend",
            default=[],
            metavar="FILE",
            help="copy files into the run's folder",
        )
        parser.add_argument(
            "--run-id",
            metavar="ID",
            default="",
            help="the run's name; by default a name that is not yet used",
        )
        parser.add_argument(
            "--thread",
            metavar="NAME",
            default="",
            help="continue the conversation NAME",
        )
        add_watching_arguments(parser)

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Run the file; see ``Exit``."""
        reading = session.reading(options)
        with session.launch(options.file, reading=reading, allow=reading["allow"]) as launch:
            launch.running.setdefault("run_id", options.run_id or os.urandom(4).hex())
            folder = placed(launch.running, options.workspace)
            folder.attach(options.attach)
            needed = "--thread" if options.thread else "--run-id" if options.run_id else ""
            journal = session.journal(options, needed)
            if journal is not None:
                launch.within.callback(journal.close)
            begun: Sequence[Entry] = ()
            if journal is not None and options.run_id:
                begun = journal.entries(options.run_id)
            kept = _origin(begun)
            allow = reading["allow"] | _leave(kept, launch, session)
            launch.reading["allow"] = allow
            if allow > reading["allow"]:
                session = launch.within.enter_context(
                    equipped(session, kept.get("functions"), allow)
                )
                launch.registry, launch.functions = session.registry, session.functions
            workflow = _opened(launch, options, session)
            for name in _unused(reading["vars"], launch.file, workflow):
                session.tell(
                    f"warning: nothing in {launch.file} is called {name}; "
                    f"--set {name}=… has no effect."
                )
            text = options.input
            if options.input_file:
                text = _input_text(options, session)
            if begun:
                session.resume(kept, launch, begun)
            if text is None and not launch.inputs and not begun:
                check_input(workflow, launch.registry)
            input: Any = as_input(text, workflow.plan.graph.spec.payload)
            for change in launch.inputs:
                input = change(input, workflow)
            if journal is not None:
                origin = session.origin(launch.file, workflow, launch.reading)
                launch.running = {
                    "journal": journal,
                    "thread": options.thread,
                    "origin": {**origin, "workspace": str(folder.path)},
                    **launch.running,
                }
            launch.running |= limits_given(options, workflow, begun)
            job = Job(workflow, input, launch.running, launch.observers)
            return watched(job, folder, options, session)


def _input_text(options: argparse.Namespace, session: Session) -> str:
    """Return the text of a file of an input. Raises: ConfigError (AX700): it is no text."""
    path: str = options.input_file
    try:
        text = read_text(path, "--input-file")
    except ConfigError as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
        text = _PDF
    if text.startswith(_PDF):  # which may be written in plain letters
        command = shlex.join(["run", options.file, "--input", "TEXT", "--attach", path])
        hint = f"Attach it, for a tool as load_file: {session.program} {command}"
        raise misuse("--input-file", f"{path} is a document or an image, and no text.", hint)
    return text


def _origin(begun: Sequence[Entry]) -> dict[str, Any]:
    """Return what is kept with a run that was begun before; empty: it was not."""
    if not begun:
        return {}
    from axil_journals import ReplayIndex  # journals, which a first run may do without

    return ReplayIndex(begun).origin


def _leave(kept: Mapping[str, Any], launch: Launch, session: Session) -> frozenset[str]:
    """Return the leave that a run which was begun before keeps, if it is the same workflow's."""
    file = os.path.realpath(launch.file)
    is_same = source_of(kept) == file and kept.get("vars") == launch.reading["vars"]
    return session.granted(kept) if is_same and not changed(kept) else frozenset()


def _opened(launch: Launch, options: argparse.Namespace, session: Session) -> Workflow:
    """Return the workflow of a launch, which is given the words that the person allows."""
    here = replace(session, registry=launch.registry)
    hooks = with_breaks(options.breaks, session.hooks)
    reading = launch.reading
    is_asking = options.format == "text" and options.input_file != "-" and session.stdin.isatty()
    workflow, allow = opened(
        lambda words: workflow_of(launch.file, here, hooks=hooks, **{**reading, "allow": words}),
        frozenset(reading["allow"]),
        launch.file,
        session,
        asks=is_asking,
    )
    reading["allow"] = launch.running["allow"] = allow
    check_breaks(options.breaks, workflow)
    return workflow


def add_watching_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of each command that starts or continues one run."""
    parser.add_argument(
        "--answers",
        metavar="FILE",
        help="answers to questions, in order: a JSON list, or one answer a line",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "events"),
        default="text",
        help="events: one JSON object a line, as it happens",
    )
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show what happens; without it: on a terminal, with text",
    )
    parser.add_argument(
        "--break",
        dest="breaks",
        action="append",
        default=[],
        metavar="NODE",
        help="stop before NODE and ask; * is all; may be repeated",
    )
    parser.add_argument(
        "--limit",
        dest="limits",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="the run's limit of firings, seconds, concurrency, tokens or cost, in place of what "
        "the file says or the run had; null is none; may be repeated",
    )


def limits_given(
    options: argparse.Namespace, workflow: Workflow, entries: Sequence[Entry]
) -> dict[str, Any]:
    """Return ``limits`` as an option of a run, those of ``--limit`` and the rest as it had them;
    nothing where none are given. ``entries``: what the run has done before.

    Raises: ConfigError (AX700); SpecError: AX128, AX130.
    """
    if not (given := settings(options.limits, "--limit", "cost=0.5")):
        return {}
    limits = workflow.spec.limits
    if entries:
        from axil_journals import ReplayIndex  # journals, which a first run may do without

        limits = ReplayIndex(entries).limits or limits
    return {"limits": limits.changed(given)}


def watched(job: Job, folder: RunFolder, options: argparse.Namespace, session: Session) -> int:
    """Run the job, show it, print its result and return the exit code."""
    is_shown = options.progress
    if is_shown is None:
        is_shown = options.format == "text" and session.stderr.isatty()
    progress = None
    if is_shown:
        from axil_cli.progress import Progress

        progress = Progress(session.stderr, job.input)
    asked = set[str]()
    job.options.setdefault("channel", _channel(options, session, progress, asked))
    seen = Record()
    job.observers.insert(0, seen)
    lines = Lines(session.stdout, job.stop) if options.format == "events" else None
    job.observers.extend(each for each in (lines, progress) if each is not None)
    # what bodies print must not spoil the output, and questions are none
    with folder, redirect_stdout(session.stderr):
        result = job.run(session)
    if lines is not None and lines.fault is not None:
        raise lines.fault
    if (unfit := _unfit(result)) is not None:
        raise unfit
    answers = job.options["channel"]
    if result.status == "done" and isinstance(answers, Answers) and answers.left:
        session.tell(
            f"warning: {len(answers.left)} of the answers in {options.answers} had no question."
        )
    if options.format == "json":
        session.say_json({**summary(result), **folder.as_data(), "activations": seen.activations})
    elif options.format == "text":
        page = progress.page if progress is not None else None
        _print(result, session, page, asked, lambda: not_taken(job.workflow.plan, seen.activations))
        if result.status != "done" and "journal" in job.options:
            origin = job.options.get("origin", {})
            # what failed is mended first, and a graph in Python has its leave for its text alone
            is_mended = result.status == "failed" and bool(origin.get("python"))
            leave = leave_of(origin) if is_mended else needed_leave(origin)
            run_id = result.run_id
            doing = f"answer {run_id} ANSWER" if result.questions else f"resume {run_id}"
            if result.error is not None and (limit := _LIMITS.get(result.error.id)):
                doing += f" --limit {limit}=MORE"
            session.tell(f"The run is kept: {way_on(doing, session, options, leave)}")
    if options.format != "json":
        folder.tell(session)
    if is_debugging() and result.error is not None:
        import traceback

        session.tell("".join(traceback.format_exception(result.error)).rstrip())
    return Exit.of(result.status)


# --------------------------------------------------------------------------------------------------


def _unused(variables: Mapping[str, Any], file: str, workflow: Workflow) -> list[str]:
    """Return variables that neither the file nor one that it may include can mean."""
    if not variables or any(
        node.use is not None and node.use.type == "subgraph" for node in workflow.spec.nodes
    ):
        return []
    text = read_text(file, "FILE")
    return [name for name in variables if name not in text]


def _unfit(result: Result) -> ConfigError | None:
    """Return the fault of the input, if it is why nothing fired."""
    error = result.error
    if not isinstance(error, NodeFailed) or error.path != ENTRY or result.usage.firings:
        return None
    cause = error.__cause__
    if not isinstance(cause, MissingKeys):
        return ConfigError(Problem("AX120", "--input", f"the input cannot be used: {cause}"))
    lacks, has = (", ".join(f'"{name}"' for name in names) for names in (cause.missing, cause.has))
    wanted = as_json(dict.fromkeys(cause.missing, "…"), indent=None)
    hint = f"Write --input '{wanted}'." if set(cause.has) <= {"message"} else ""
    return ConfigError(
        Problem("AX120", "--input", f"the input lacks {lacks}; it has {has or 'no fields'}.", hint)
    )


class _Terminal:
    """A channel to a person: progress is quiet during a question, and open ones are noted."""

    def __init__(
        self, channel: Channel, session: Session, progress: Progress | None, asked: set[str]
    ) -> None:
        self._channel, self._session = channel, session
        self._progress, self._asked = progress, asked

    async def ask(self, question: Question) -> Any:
        """Return the person's answer."""
        with self._progress.quiet() if self._progress is not None else nullcontext():
            answer = await self._channel.ask(question)
            if answer is MISSING:
                self._asked.add(question.id)
                self._session.tell()  # the cursor is behind the prompt
        return answer


class Answers:
    """A channel with answers in the order of the questions; without one the run pauses."""

    def __init__(self, answers: Iterable[Any]) -> None:
        self.left = deque(answers)
        """The answers that no question has taken."""

    async def ask(self, question: Question) -> Any:
        """Return the next answer."""
        return self.left.popleft() if self.left else MISSING


def answers_in(text: str) -> list[Any]:
    """Return the answers in a file: a JSON list, or one a line. Raises: ConfigError (AX700).

    >>> answers_in('["yes", {"score": 3}]'), answers_in("yes\\nno\\n")
    (['yes', {'score': 3}], ['yes', 'no'])
    >>> answers_in("one\\x0cline")
    ['one\\x0cline']
    """
    if not text.lstrip().startswith("["):
        return text.removesuffix("\n").split("\n") if text else []
    data = as_data(text)
    if not isinstance(data, list):
        raise misuse(
            "--answers",
            "the file begins like a JSON list and is none.",
            'Write ["yes", "no"], or one answer a line.',
        )
    return cast("list[Any]", data)


def _channel(
    options: argparse.Namespace, session: Session, progress: Progress | None, asked: set[str]
) -> Channel | None:
    if options.answers is not None:
        return Answers(answers_in(read_text(options.answers, "--answers")))
    channel = session.terminal("axil run")
    return None if channel is None else _Terminal(channel, session, progress, asked)


# --------------------------------------------------------------------------------------------------


def _print(
    result: Result,
    session: Session,
    page: Page | None,
    asked: set[str],
    ways: Callable[[], Iterable[str]],
) -> None:
    """Print the output for people, and all other messages on standard error.

    ``asked``: questions that were on the terminal. ``ways``: finds the edges that carried nothing.
    """
    if result.status == "done":
        if result.output is not None and (result.output != {} or result.exits):
            if page is not None:
                page.rule("output")
            session.say(_output(result))
            if has_failed(list(result.messages) or result.output):
                session.tell(
                    "note: that is the report of a program that failed; an edge with the "
                    "condition code_fail leads on from it."
                )
        else:
            session.tell("The run is done, and nothing reached its exit.")
            for way in ways():
                session.tell(f"    nothing went along {way}")
    if page is not None:
        page.write(
            f"{page.styled(page.sign('─') * 2, 'dim')} "
            f"{page.styled(result.status, 'good' if result.status == 'done' else 'bad')}"
        )
        from axil_cli.page import Paragraph

        used = Paragraph(page, 3, column=3 + len(result.status), style="dim")
        used.feed(f": {_used(result)}")
        used.end()
    if result.status == "done":
        return
    if result.questions:
        _ask([question for question in result.questions if question.id not in asked], session)
    elif result.error is not None:
        for line in error_lines(result.error):
            session.tell(line)


def _ask(questions: Iterable[Question], session: Session) -> None:
    from axil_cli.picture import question_lines
    from axil_journals import format_time

    for question in questions:
        due = [f"due at {format_time(question.due)}"] if question.due is not None else []
        lines = "".join(f"\n    {line}" for line in (*question_lines(question), *due))
        session.tell(f"{question.node} asks:{lines}")
    session.tell("The run is paused: answer on a terminal, or with --answers FILE.")


def _output(result: Result) -> str:
    """Write the output as text: messages one after the other, of a state with a conversation the
    last one, else fields one a line, or nothing.
    """
    if result.messages:
        return "\n".join(_said(plain(m)) for m in result.messages)
    output = plain(result.output)
    if not isinstance(output, dict):
        return "" if output is None else render(output)
    fields = cast("dict[str, Any]", output)
    said: Any = fields.get("messages")
    if said and is_messages(said):  # a conversation in the state
        return _said(said[-1])
    if set(fields) == {"message"}:
        return _shown(fields["message"])
    return "\n".join(f"{n}: {_shown(v)}" for n, v in fields.items())


def _said(message: Any) -> str:
    content = message.get("content")
    return _shown(content) if isinstance(content, list) else text_of(message)


def _shown(value: Any) -> str:
    """Return a value as text, with labels for images, files and recordings."""
    if isinstance(value, (dict, list)):
        from axil_models import content_text, is_content, is_part

        parts = cast("list[Any]", value if isinstance(value, list) else [value])
        if is_content(parts) and any(map(is_part, parts)):
            return content_text(parts)
    return render(cast("object", value))


def _used(result: Result) -> str:
    from axil_cli.picture import spent

    usage = result.usage
    parts = [f"{usage.firings} firing{'s' if usage.firings != 1 else ''}", f"{usage.seconds:.1f} s"]
    parts += spent(usage.tokens, usage.cost)
    for path, tally in result.cycles.items():
        ends = ", ".join(
            end if count == 1 else f"{end} ×{count}" for end, count in tally.ends.items()
        )
        parts.append(f"{path}: {tally.rounds} round{'s' if tally.rounds != 1 else ''} ({ends})")
    return " · ".join(parts)


__all__ = [
    "Answers",
    "Run",
    "add_watching_arguments",
    "answers_in",
    "limits_given",
    "watched",
]

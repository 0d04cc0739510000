"""Sub-commands and what they are given: the contract of the entry-point group ``axil.commands``.

    [project.entry-points."axil.commands"]
    hello = "acme_hello:Hello"

An entry point names a class without arguments, or an object, with two methods:

    class Hello:
        \"\"\"say hello\"\"\"                            # the text of `axil hello --help`

        def configure(self, parser): ...            # add arguments to an argparse.ArgumentParser
        def run(self, options, session) -> int: ... # do it, and give the exit code

It is imported when it is typed. What it raises as ``AxilError`` is printed as problems, with exit
code 2.

A command may have more: ``refuse(self, error, options, session)`` is called before such an error is
printed; ``prepares_options = True`` says that it calls ``session.launch`` itself for the options of
plugins; ``takes`` lists its parsers that have another command's, with that command's name.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from axil import AxilError, ConfigError, Problem
from axil.plugin import Registry, UnknownComponent, format_names, use_registry

if TYPE_CHECKING:
    from axil import Workflow
    from axil.plugin import Channel
    from axil_cli.launch import Given, Launch
    from axil_journals import Entry


class Exit(IntEnum):
    """The meaning of the command's exit code."""

    DONE = 0
    FAILED = 1
    MISUSE = 2
    """A file, an option or an input that cannot be used; nothing ran."""
    PAUSED = 3
    LIMITED = 4
    INTERRUPTED = 130
    UNREAD = 141
    """The reader of the output has gone, ``axil … | head``, or it cannot be written."""

    @classmethod
    def of(cls, status: str) -> Exit:
        """Return the code for the status of a result."""
        return {
            "done": cls.DONE,
            "failed": cls.FAILED,
            "paused": cls.PAUSED,
            "limited": cls.LIMITED,
            "cancelled": cls.INTERRUPTED,
        }[status]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The session of a sub-command: components under the policy in force, and streams."""

    registry: Registry
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    hooks: Any = None
    """A plugin manager with the hook plugins that were asked for; None: none were."""
    program: str = "axil"
    """The words of the command: ``axil``, or ``flow axil`` in a distribution of its own."""
    options: tuple[Given, ...] = ()
    """Options of plugins that were given; see ``axil_cli.launch``."""
    functions: str | None = None
    """The folder of ``--functions``, which are among the components."""

    def workflow(self, target: str, **reading: object) -> Workflow:
        """Return the workflow that a target names, as ``axil_cli.source.workflow_of`` does."""
        from axil_cli.source import workflow_of

        return workflow_of(target, self, **reading)

    def reading(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return arguments of ``axil_files.load``: ``vars`` and ``allow``, from ``--set`` and
        ``--allow``.

        Raises: ConfigError (AX700): a variable is not ``name=value``.
        """
        from axil_cli.source import settings

        return {"vars": settings(options.set), "allow": frozenset[str](options.allow)}

    def origin(
        self, target: str, workflow: Workflow, reading: Mapping[str, object]
    ) -> dict[str, Any]:
        """Return what is kept with the runs of a workflow: what they are resumed with."""
        from axil_cli.launch import kept_options
        from axil_cli.record import origin

        kept = origin(target, workflow, reading, self.functions)
        options = kept_options(self.options)
        return {**kept, "options": options} if options else kept

    def granted(
        self, kept: Mapping[str, object], allow: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Return the leave of a kept run: ``allow``, and what this user gave when it began.

        Raises: ConfigError (AX700): its functions have changed, which ``allow`` has to cover.
        """
        from axil_cli.record import granted

        return granted(kept, allow, self)

    def reopened(self, kept: Mapping[str, object], allow: frozenset[str]) -> Workflow:
        """Return the workflow of a kept run, from its origin. Raises: ConfigError."""
        from axil_cli.record import reopened

        return reopened(kept, self, allow=allow)

    def journal(self, options: argparse.Namespace, needed: str = "") -> Any:
        """Return the journal that ``--journal`` names; see ``axil_cli.record``."""
        from axil_cli.record import opened

        return opened(options, self, needed=needed)

    @contextmanager
    def launch(
        self,
        file: str,
        *,
        entries: Sequence[Entry] = (),
        kept: Mapping[str, object] | None = None,
        reading: Mapping[str, object] | None = None,
        **running: object,
    ) -> Generator[Launch]:
        """Give the launch of a run, as the options of plugins want it.

        Args:
            entries: those of the journal, of a run that is resumed.
            kept: its origin, for the options that it was begun with.
            reading: arguments of ``axil_files.load``.
            running: fields of ``axil.Options``.
        """
        from axil_cli.launch import Launch, recorded

        made = Launch(
            file=file,
            registry=self.registry,
            tell=self.tell,
            reading=dict(reading or {}),
            running=running,
            functions=self.functions,
            recorded=recorded(entries) if entries else (),
        )
        with made.within:
            for each in self.options:
                each.option.prepare(each.value, made)
            self.resume(kept or {}, made, entries)
            yield made

    def resume(self, kept: Mapping[str, Any], launch: Launch, entries: Sequence[Entry]) -> None:
        """Prepare a launch with the options that were kept with a run, and are not given anew."""
        if options := kept.get("options"):
            from axil_cli.launch import recorded, resume

            launch.recorded = recorded(entries)
            resume(options, launch, self.options)

    @contextmanager
    def around(self, kept: Mapping[str, Any], entries: Sequence[Entry]) -> Generator[None]:
        """Give what an engine executes a run within: the options that it was begun with."""
        if not kept.get("options"):
            yield
            return
        with replace(self, options=()).launch("") as launch:
            self.resume(kept, launch, entries)
            yield

    def interruptible(self, stop: Callable[[], object]) -> AbstractContextManager[None]:
        """Call ``stop`` at the first interrupt; see ``axil_cli.signals``."""
        from axil_cli.signals import interruptible

        return interruptible(stop)

    def terminal(self, where: str) -> Channel | None:
        """Return the channel to the person at the terminal; None: there is none, or no plugin that
        could ask.
        """
        if not self.stdin.isatty():
            return None
        try:
            found = self.registry.resolve("channels", "terminal", where)
        except UnknownComponent:
            return None
        from axil.plugin import make_component  # settings, which --help does without

        return make_component(found, {}, where)

    def confirms(self, question: str) -> bool:
        """Return whether the person says yes to a question."""
        write(self.stderr, f"{question} [y/N] ")
        return self.stdin.readline().strip().lower() in ("y", "yes")

    def say(self, text: str = "") -> None:
        """Write a result to standard output; for a terminal, without control characters."""
        write(self.stdout, (clean(text) if self.stdout.isatty() else text) + "\n")

    def say_json(self, value: object, *, indent: int | None = 2) -> None:
        """Write a result as JSON, on one line without ``indent``; see ``axil_cli.as_json``."""
        from axil_cli.plain import as_json

        self.say(as_json(value, indent=indent))

    def tell(self, text: str = "") -> None:
        """Write something about the work itself to standard error."""
        write(self.stderr, clean(text) + "\n")


@contextmanager
def equipped(session: Session, folder: str | None, allow: Iterable[str]) -> Generator[Session]:
    """Give the session with the functions of a folder; unchanged, where it has some already or no
    folder is named. Raises: ConfigError (AX700, AX884).
    """
    if folder is None or session.functions is not None:
        yield session
        return
    if "code" not in allow:
        raise misuse(
            "--functions",
            "functions are code, which this run does not allow.",
            "Add --allow code, if you trust them.",
        )
    from axil_files import with_functions

    with use_registry(with_functions(session.registry, folder, session.tell)) as registry:
        yield replace(session, registry=registry, functions=folder)


class Command(Protocol):
    """A sub-command; its docstring is its help."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        ...

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Do it and give the exit code."""
        ...


_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def clean(text: str) -> str:
    r"""Return ``text`` with its control characters as escapes, so that it steers no terminal.

    >>> clean("a\x1b[2Jb\tc")
    'a\\x1b[2Jb\tc'
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class Unwritten(OSError):
    """Output cannot be written: the disk is full."""


def write(stream: TextIO, text: str) -> None:
    """Write and flush, with escapes for what the stream's encoding lacks.

    Raises: BrokenPipeError; Unwritten.
    """
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritten(error.errno, error.strerror) from error


def can_show(stream: TextIO, text: str) -> bool:
    """Return whether the stream's encoding has all of these characters."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def read_text(path: str, option: str) -> str:
    """Return the text of a file, or of standard input for ``-``.

    Raises: ConfigError (AX700): it cannot be read.
    """
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8-sig")
    except OSError as error:
        from axil_files import like_file

        message = f"{path} cannot be read: {error.strerror or error}."
        raise misuse(option, message, like_file(path)) from error
    except UnicodeDecodeError as error:
        raise misuse(
            option, f"{path} cannot be read: this is not text in UTF-8.", "Save it as UTF-8."
        ) from error


def misuse(option: str, message: str, hint: str = "") -> ConfigError:
    """Return an option that cannot be used as it was given."""
    return ConfigError(Problem("AX700", option, message, hint))


def problems_of(error: AxilError) -> tuple[Problem, ...]:
    """Return the problems that an error holds."""
    several = getattr(error, "problems", None)
    if several:
        return tuple(several)
    return (getattr(error, "problem", None) or Problem(error.id, "", str(error)),)


def without_repeats(problems: Iterable[Problem]) -> list[str]:
    """Write problems as lines; one that is found at several places is written once, with them."""
    places: dict[Problem, dict[str, None]] = {}
    for problem in problems:
        places.setdefault(replace(problem, where=""), {})[problem.where] = None
    lines: list[str] = []
    for problem, (first, *others) in places.items():
        files = [place.rpartition("/")[2] for place in others]
        also = f" Also at {format_names(files)}." if files else ""
        lines.append(f"{replace(problem, where=first)}{also}")
    return lines


def error_lines(error: AxilError) -> list[str]:
    """Write an error as lines: its problems, and the errors that came with it."""
    others: Sequence[Any] = getattr(error, "others", ())
    return [
        *(f"error: {line}" for line in without_repeats(problems_of(error))),
        *([f"    at {place}"] if (place := getattr(error, "place", "")) else ()),
        *(f"also: {other}" for other in others),
    ]


def is_debugging() -> bool:
    """Return whether tracebacks are wanted: ``AXIL_DEBUG=1``."""
    return os.environ.get("AXIL_DEBUG", "") not in ("", "0")

"""Sub-commands and what they are given: the contract of the entry-point group ``axil.commands``.

    [project.entry-points."axil.commands"]
    hello = "acme_hello:Hello"

An entry point names a class without arguments, or an object, with two methods; nothing has to be
inherited or imported:

    class Hello:
        \"\"\"say hello\"\"\"                            # the text of `axil hello --help`

        def configure(self, parser): ...            # add arguments to an argparse.ArgumentParser
        def run(self, options, session) -> int: ... # do it, and give the exit code

It is imported when it is typed. What it raises as ``AxilError`` is printed as problems, with exit
code 2.

A command may have more: ``refuse(self, error, options, session)`` is called before such an error is
printed; ``prepares_options = True`` says that it prepares the ``workflow`` options of plugins
itself.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from axil import AxilError, ConfigError, Problem
from axil.plugin import Registry, format_names, use_registry

if TYPE_CHECKING:
    from axil import Workflow
    from axil_cli.launch import Given, Launch


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The session of a sub-command: the installed components under the policy in force, and the
    output streams.
    """

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
    """The folder whose functions are among the components; None: there is none."""

    def workflow(self, target: str, **reading: Any) -> Workflow:
        """Return the workflow that a target names: a file, or a graph in Python.

        ``reading``: arguments of ``axil_files.load``. Raises: as ``axil_cli.source.workflow_of``.
        """
        from axil_cli.source import workflow_of

        return workflow_of(target, self, **reading)

    def variables(self, given: Iterable[str]) -> dict[str, Any]:
        """Return ``NAME=VALUE`` options as variables of workflow files. Raises: ConfigError."""
        from axil_cli.source import settings

        return settings(given)

    def reading(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return arguments of ``axil_files.load``, from ``--allow`` and (where it is) ``--set``.

        Raises: ConfigError (AX700): a variable is not ``name=value``.
        """
        reading: dict[str, Any] = {"allow": frozenset[str](options.allow)}
        if variables := self.variables(getattr(options, "set", ())):
            reading["vars"] = variables
        return reading

    def origin(self, target: str, workflow: Workflow, reading: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is kept with the runs of a workflow, so that they are resumed with what they
        began with.
        """
        from axil_cli.record import origin

        return origin(target, workflow, dict(reading), self.functions)

    def reopened(self, kept: Mapping[str, Any], allow: frozenset[str]) -> Workflow:
        """Return the workflow of a kept run, from its origin. Raises: ConfigError."""
        from axil_cli.record import reopened

        return reopened(dict(kept), self, allow=allow)

    def journal(self, options: argparse.Namespace, needed: str = "") -> Any:
        """Return the journal that ``--journal`` names; see ``axil_cli.record``."""
        from axil_cli.record import opened

        return opened(options, self, needed=needed)

    def launch(self, file: str, *, entries: Iterable[Any] = (), **running: Any) -> Launch:
        """Return the launch of a run, with the options of plugins that were given. The caller
        enters its ``within``.

        Args:
            entries: those of the journal, of a run that is resumed.
            running: fields of ``axil.Options``.
        """
        from axil_cli.launch import Launch, prepared, recorded

        made = Launch(
            file=file,
            registry=self.registry,
            tell=self.tell,
            running=running,
            functions=self.functions,
            recorded=recorded(entries),
        )
        return prepared(made, self.options)

    def interruptible(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``stop`` at the first interrupt; see ``axil_cli.signals``."""
        from axil_cli.signals import interruptible

        return interruptible(stop)

    def say(self, text: str = "") -> None:
        """Write a result to standard output; on a terminal without characters that would steer
        it.
        """
        write(self.stdout, (clean(text) if self.stdout.isatty() else text) + "\n")

    def tell(self, text: str = "") -> None:
        """Something about the work itself, on standard error."""
        write(self.stderr, clean(text) + "\n")


@contextmanager
def equipped(session: Session, folder: str | None, allow: Iterable[str]) -> Generator[Session]:
    """Give the session with the functions of a folder among its components; unchanged, where it has
    those of ``--functions`` already, or no folder is named.

    Raises: ConfigError (AX700, AX884).
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
    r"""``text`` with its control characters shown instead of obeyed: models and files do not steer
    a terminal.

    >>> clean("a\x1b[2Jb\tc")
    'a\\x1b[2Jb\tc'
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class Unwritten(OSError):
    """Output cannot be written: the disk is full."""


def write(stream: TextIO, text: str) -> None:
    """Write and flush; what the stream's encoding lacks is written as an escape.

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
    except (OSError, UnicodeDecodeError) as error:
        why = (
            error.strerror or str(error)
            if isinstance(error, OSError)
            else "this is not text in UTF-8"
        )
        raise misuse(option, f"{path} cannot be read: {why}.") from error


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
    return [
        f"{replace(problem, where=first)}{_also(others)}"
        for problem, (first, *others) in places.items()
    ]


def _also(places: list[str]) -> str:
    """Name the other places of a problem, without their folders; empty: there are none."""
    return f" Also at {format_names([_short(place) for place in places])}." if places else ""


def _short(place: str) -> str:
    """Return a place without its folder."""
    return place.rpartition("/")[2]


def is_debugging() -> bool:
    """Return whether tracebacks are wanted: ``AXIL_DEBUG=1``."""
    return os.environ.get("AXIL_DEBUG", "") not in ("", "0")

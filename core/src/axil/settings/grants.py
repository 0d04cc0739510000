"""Grants: what a workflow file may do beyond working on its input.

A file is data. What it names (paths, environment variables, hosts, programs, import paths) is
confined to what its user has granted. What Python code names has the leave of that code.

A specification that was read from a file carries its grants (``GraphSpec.extras["grants"]``). The
compiler puts them in force while it makes the file's components (``granted``); what is made then
asks for them (``current_grants``). Where none are in force nothing is refused. Settings are checked
where they are decoded (``decode_config``): fields say what they are by their types, ``ReadPath``
and others, and ``Secret``.
"""

from __future__ import annotations

import ipaddress
import itertools
import os
import re
import stat
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from axil.errors import ConfigError, Problem, did_you_mean, one_line
from axil.settings.excerpts import format_value
from axil.settings.wants import Gathering, Want, gathering, is_granted, note_want, noted

if TYPE_CHECKING:
    from axil.spec.graph import Place

Act = Literal["read", "write"]

WORDS: Final = ("code", "env", "import", "mcp", "network", "program", "read", "write")
"""The words that grant a whole kind of action."""
_NAMED: Final = {
    "env": "NAME",
    "import": "MODULE",
    "mcp": "PROGRAM",
    "net": "HOST",
    "program": "NAME",
    "read": "PATH",
    "write": "PATH",
}
"""The texts behind the colons of narrower words."""
_NARROW: Final = tuple(_NAMED)
OWN_FOLDER: Final = ".axil"
"""The folder beside a workflow file that the file may write to."""
_AXILS: Final = frozenset(
    {".gitignore", "attachments.json", "audit.jsonl", "leave.key", "lock", "sessions", "values"}
)
"""The entries of a folder ``.axil``, beside the database of runs, that are axil's own."""
_RUNS: Final = "runs.db"
"""The database of runs, wherever it lies; what SQLite puts beside it begins so, too."""
_REFUSED: Final = os.path.join(OWN_FOLDER, "not-granted")
"""Stands for a path that is refused, where the refusal comes later (``noting_wants``)."""
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_DOES: Final = {
    "code": "run code",
    "env": "read variables of the environment",
    "import": "import {}",
    "mcp": "start the MCP server {}",
    "net": "use the network: {}",
    "network": "use the network",
    "program": "start the program {}",
}


class Declared:
    """Names in a file's settings that need no leave, and what its components made for themselves:
    gathered while they are decoded, for the confinement below them.
    """

    __slots__ = ("addresses", "folders", "hosts", "names")

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        """Hosts that the file chose for its models and servers."""
        self.addresses: set[str] = set()
        """Addresses that these and granted hosts were found to have."""
        self.folders: set[str] = set()
        """Temporary files and folders, and the workspaces of its runs."""
        self.names: set[str] = set()
        """Texts in its settings that could be names of modules."""

    def note_text(self, text: str) -> None:
        """Note a setting that says nothing about itself."""
        if len(text) < 100 and _MODULE.fullmatch(text):
            parts = text.partition(":")[0].split(".")
            self.names.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))


_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[\w.]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """The actions that a workflow file may take.

    >>> given = Grants(words=frozenset({"env:API_KEY", "network"}))
    >>> given.allows("env:API_KEY"), given.allows("env:HOME"), given.allows("net:example.org")
    (True, False, True)
    """

    words: frozenset[str] = frozenset()
    """``code``, ``network`` …, or narrower: ``env:API_KEY``, ``read:PATH`` with a whole path."""
    folder: str = ""
    """The workflow's own folder, where relative paths begin; empty: the working folder."""
    declared: Declared = field(default_factory=Declared, compare=False, repr=False)

    @staticmethod
    def of(given: Iterable[str], folder: str = "") -> Grants:
        """Return the grants that a user wrote; paths begin in the working folder.

        Raises: ConfigError (AX136): a word is unknown, or these are no words.
        """
        if isinstance(given, (str, bytes)) or not isinstance(cast("Any", given), Iterable):
            message = f"expected words, found {format_value(given)}."
            shown = given if isinstance(given, str) and given in WORDS else "code"
            raise ConfigError(Problem("AX136", "allow", message, f'Write allow={{"{shown}"}}.'))
        return Grants(words=frozenset(_word(each) for each in given), folder=folder)

    def at(self, folder: str) -> Grants:
        """Return the same grants for a file in another folder."""
        return replace(self, folder=folder)

    def allows(self, what: str, /) -> bool:
        """Return whether a word is granted, itself or by a wider one. For paths see ``path``."""
        return is_granted(self.words, what)

    def path(self, given: str, act: Act, where: str = "") -> str:
        """Return the real path of what a file names, without links.

        A file reads below its own folder and writes below ``.axil`` in it; elsewhere it needs a
        grant. What axil keeps for itself (``is_axils``) no grant opens. Raises: ConfigError
        (AX137): it is elsewhere, or axil's; or it is a pipe or a device, which may have no end.
        """
        if "\0" in given:
            message = "a path contains the character NUL, which is not allowed."
            raise ConfigError(Problem("AX137", where, message, "Correct the path."))
        root = os.path.realpath(self.folder or ".")
        try:
            real = os.path.realpath(os.path.join(root, given))
            real.encode("utf-8")
        except (OSError, ValueError) as error:
            message = f"the path {given!r} cannot be resolved: {error}."
            raise ConfigError(Problem("AX137", where, message, "Correct the path.")) from error
        want = self.wanted_path(given, real, act, where)
        is_noted = note_want(want) if not is_axils(real) else False
        if want.problem is None:
            if want.status == "own" and (fault := _fault(real)):
                message = f"the path {one_line(given[:80])} {fault}."
                raise ConfigError(Problem("AX137", where, message, "Name a file or a folder."))
            return real
        if is_noted:
            return os.path.join(root, _REFUSED)
        raise ConfigError(want.problem)

    def wanted_path(self, given: str, real: str, act: Act, where: str = "") -> Want:
        """Return the want of a path, with the refusal where it is not granted.

        Args:
            given: as it was named.
            real: without links.
        """
        word = f"{act}:{one_line(real)}"
        if is_axils(real):
            message = f"the workflow file tries to {act} {one_line(given)}, which is axil's own."
            problem = Problem("AX137", where, message, "Name another file.")
            return Want(word=word, where=where, status="missing", problem=problem)
        root = os.path.realpath(self.folder or ".")
        own = root if act == "read" else os.path.join(root, OWN_FOLDER)
        if _is_below(real, own):
            return Want(word=word, where=where, status="own")
        prefix = f"{act}:"
        granted = (each[len(prefix) :] for each in self.words if each.startswith(prefix))
        if act in self.words or any(_is_below(real, each) for each in granted):
            return Want(word=word, where=where)
        place = "its folder" if act == "read" else f"the folder {OWN_FOLDER} beside it"
        message = (
            f"the workflow file tries to {act} {one_line(given)}, which is outside of {place}."
        )
        hint = f"Allow it if you trust the workflow: --allow {word}"
        problem = Problem("AX137", where, message, hint)
        return Want(word=word, where=where, status="missing", problem=problem)

    def need(self, what: str, reason: str = "", where: str = "", *, later: bool = False) -> bool:
        """Return whether a word is granted; refuse it where it is not.

        Args:
            reason: what the file would do, as a sentence.
            later: the refusal may come later, from those who note wants (``noting_wants``).
        Raises: ConfigError (AX138): it is not granted.
        """
        wanted = self.wanted(what, reason, where)
        is_noted = note_want(wanted)
        if wanted.problem is not None and not (later and is_noted):
            raise ConfigError(wanted.problem)
        return wanted.problem is None

    def wanted(
        self, what: str, reason: str = "", where: str = "", *, is_late: bool = False
    ) -> Want:
        """Return what a file wants, with the refusal where it is not granted."""
        if self.allows(what):
            return Want(word=what, where=where, is_late=is_late)
        hint = f"Allow it if you trust the workflow: --allow {one_line(what)}"
        problem = Problem(
            "AX138", where, reason or f"the workflow file tries to {_doing(what)}.", hint
        )
        return Want(word=what, where=where, status="missing", problem=problem, is_late=is_late)

    def note(self, word: str, where: str, problem: Problem | None) -> None:
        """Note what a file names and the compiler decides about; ``problem``: it is missing."""
        status = "granted" if problem is None else "missing"
        note_want(Want(word=word, where=where, status=status, problem=problem))

    def gathering(self) -> AbstractContextManager[Gathering]:
        """Gather what files want while the plan of this one is made."""
        return gathering()

    def note_later(self, made: object, where: str | Place = "") -> None:
        """Note what a component asks its run for later: its attribute ``wants``."""
        if noted() is None:
            return
        words: object = getattr(made, "wants", ())
        for word in cast("Iterable[Any]", words) if isinstance(words, (tuple, list)) else ():
            note_want(self.wanted(str(word), where=str(where), is_late=True))


def host_of(url: str) -> str:
    """Return the host of a URL, or of ``HOST`` and ``HOST:PORT``, in lower case; empty: it has
    none.
    """
    from urllib.parse import urlsplit

    try:
        return (urlsplit(url if "//" in url else f"//{url}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_axils(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is one of the files that axil keeps for itself: recorded runs, their
    locks, lists of attachments, the key of leave.

    >>> is_axils("/flows/.axil/runs.db-wal"), is_axils("/flows/.axil/notes.jsonl")
    (True, False)
    >>> is_axils("/keys/.axil/leave.key")
    True
    """
    parts = os.path.realpath(path).casefold().split(os.sep)  # some systems ignore case
    after = (name for folder, name in itertools.pairwise(parts) if folder == OWN_FOLDER)
    return any(name in _AXILS for name in after) or any(
        name == _RUNS or name.startswith(f"{_RUNS}-") for name in parts
    )


def _doing(what: str) -> str:
    kind, _, name = what.partition(":")
    return _DOES.get(kind, f"{kind} {{}}").format(one_line(name) or "of any kind")


def _fault(real: str) -> str:
    """Return why a path cannot be used without leave; empty: it is a file, a folder, or not there
    yet.
    """
    try:
        mode = os.stat(real).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else "is a pipe, a socket or a device"


def _is_below(path: str, root: str) -> bool:
    try:
        return os.path.commonpath([path, root]) == root
    except ValueError:  # on another drive
        return False


def _host(given: str) -> str:
    """Return a host as it is granted; empty: it is not a host."""
    bare = given.lower().rstrip(".")
    plain = bare.removeprefix("[").removesuffix("]")
    try:
        return str(
            ipaddress.ip_network(plain, strict=False)
            if "/" in plain
            else ipaddress.ip_address(plain)
        )
    except ValueError:
        return bare if _HOST.fullmatch(bare) else ""


def _word(given: str) -> str:
    if not isinstance(cast("Any", given), str):
        message = f"expected a word, found {format_value(given)}."
        raise ConfigError(Problem("AX136", "allow", message, 'Write allow={"code"}.'))
    kind, _, name = given.partition(":")
    if not name and given in WORDS:
        return given
    if not name and kind in _NARROW:
        whole = "network" if kind == "net" else kind
        message = f'"{one_line(given)}" names no {_NAMED[kind]}.'
        hint = f"Write {kind}:{_NAMED[kind]}, or {whole} for all."
        raise ConfigError(Problem("AX136", "allow", message, hint))
    if kind not in _NARROW:
        narrow = ", ".join(f"{each}:{named}" for each, named in _NAMED.items())
        words = f"Available: {', '.join(WORDS)}, and {narrow}."
        hint = did_you_mean(kind, {*WORDS, *_NARROW}) or words
        raise ConfigError(
            Problem("AX136", "allow", f'"{one_line(given)}" is not a permission.', hint)
        )
    if kind in ("read", "write"):
        return f"{kind}:{os.path.realpath(os.path.expanduser(name))}"
    if kind == "net":
        if not (host := _host(name)):
            message = f"{one_line(name)!r} is not a host."
            hint = "Write net:HOST, or net:*.HOST for its subdomains, without scheme and port."
            raise ConfigError(Problem("AX136", "allow", message, hint))
        return f"net:{host}"
    return given


# ------------------------------------------------------------------------------------ in force

_in_force: ContextVar[Grants | None] = ContextVar("axil.grants", default=None)
"""The grants of the file whose components are being made or run. A specification that was read from
a file carries them (``GraphSpec.extras["grants"]``); the compiler puts them in force.
"""


def current_grants() -> Grants | None:
    """Return the grants of the file whose components are being made or run; None: Python code's,
    which is not confined.
    """
    return _in_force.get()


@contextmanager
def granted(grants: Grants | None) -> Generator[None]:
    """Put grants in force; None: what follows is not the file's."""
    if grants is not None:
        from axil.settings import confinement

        confinement.install()
    token = _in_force.set(grants)
    try:
        yield
    finally:
        _in_force.reset(token)


def note_own(word: str, where: str = "") -> None:
    """Note what a file does without leave, such as sending to a host of its choice."""
    if (grants := current_grants()) is not None:
        kind, _, name = word.partition(":")
        if kind == "net":
            grants.declared.hosts.add(name)
        note_want(Want(word=word, where=where, status="own"))

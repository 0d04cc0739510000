"""Grants in force: what the workflow file may do whose components are being made or run.

A specification that was read from a file carries its grants (``GraphSpec.extras["grants"]``). The
compiler puts them in force while it makes the file's components (``granted``); what is made then
asks for them (``current_grants``). Where none are in force nothing is refused: what Python code
names has the leave of that code. Grants themselves are axil-config's.

Each question is a ``Want``. ``noting_wants`` gathers them, refused ones too, so that all of them
are known before anything starts. What a component asks its run for later (``ctx.allows``) it says
in an attribute ``wants``: words as of ``--allow``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from axil.errors import Problem

if TYPE_CHECKING:
    from axil_config.grants import Grants

_WIDER: Final = {
    "net": ("network",),
    "import": ("code",),
    "program": ("code",),
    "mcp": ("code",),
}
"""Words that grant the whole of a kind, beside the kind itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A capability that a file names."""

    word: str
    """The narrowest word that grants it: ``env:NAME``, ``net:HOST`` …"""
    where: str = ""
    status: Literal["own", "granted", "missing"] = "granted"
    """``own``: it needs no leave."""
    problem: Problem | None = None
    """The refusal, where it is missing."""
    is_late: bool = False
    """True if the grant is asked for at its use, rather than when the plan is made."""

    def at(self, where: str) -> Want:
        """Return the same want at a place of a file, if it has none in that file."""
        file = where.partition(" ")[0].rpartition(":")[0]
        if self.where and (not file or self.where.startswith(file)):
            return self
        where = f"{where} ({self.where})" if self.where else where
        problem = None if self.problem is None else replace(self.problem, where=where)
        return replace(self, where=where, problem=problem)


def is_granted(words: Collection[str], what: str) -> bool:
    """Return whether ``what`` is among the granted words, itself or by a wider one.

    >>> given = {"env:API_KEY", "network"}
    >>> [is_granted(given, what) for what in ("env:API_KEY", "env:HOME", "net:example.org")]
    [True, False, True]
    """
    kind, _, name = what.partition(":")
    if kind == "net" and "/" in name:  # a network, which may be an inner one: by its own word only
        return what in words
    if what in words or kind in words or (kind == "net" and _is_granted_host(name, words)):
        return True
    return bool(name or kind in ("mcp", "program", "import")) and any(
        wider in words for wider in _WIDER.get(kind, ())
    )


def _is_granted_host(name: str, words: Iterable[str]) -> bool:
    """Return whether one of ``net:HOST`` is this host; ``net:*.HOST`` are those below it."""
    host = name.lower().rstrip(".")
    for word in words:
        kind, _, granted = word.partition(":")
        wanted = granted.lower().rstrip(".") if kind == "net" else ""
        if host == wanted or (wanted.startswith("*.") and host.endswith(wanted[1:])):
            return bool(host)
    return False


_in_force: ContextVar[Grants | None] = ContextVar("axil.grants", default=None)


def current_grants() -> Grants | None:
    """Return the grants of the file whose components are being made or run; None: Python code's,
    which is not confined.
    """
    return _in_force.get()


@contextmanager
def granted(grants: Grants | None) -> Generator[None]:
    """Put grants in force."""
    token = _in_force.set(grants)
    try:
        yield
    finally:
        _in_force.reset(token)


_noted: ContextVar[list[Want] | None] = ContextVar("axil.wants", default=None)


@contextmanager
def noting_wants() -> Generator[list[Want]]:
    """Yield a list to which everything that files want is added.

    Paths and variables that are not granted are not refused meanwhile, and are replaced: the caller
    has to refuse what is missing (``refusals_of``).
    """
    wants: list[Want] = []
    token = _noted.set(wants)
    try:
        yield wants
    finally:
        _noted.reset(token)


def noted() -> list[Want] | None:
    """Return what has been gathered so far; None: nothing gathers it."""
    return _noted.get()


def note_own(word: str, where: str = "") -> None:
    """Note what a file does without leave, such as sending to a host of its choice."""
    if _in_force.get() is not None:
        note_want(Want(word=word, where=where, status="own"))


def refusals_of(wants: Iterable[Want], *, late: bool = True) -> list[Problem]:
    """Return the refusals of wants that are missing, each once. ``late``: those that are asked for
    when they are used, too.
    """
    found = (each.problem for each in wants if late or not each.is_late)
    return list(dict.fromkeys(problem for problem in found if problem is not None))


def note_want(want: Want) -> bool:
    """Return whether wants are gathered; add this one to them."""
    wants = _noted.get()
    if wants is None:
        return False
    wants.append(want)
    return True


def one_line(text: str) -> str:
    """Return a text of a file as messages show it: on one line, of at most 400 characters.

    >>> one_line("a\\nb")
    'a?b'
    """
    return re.sub(r"[^\x20-\x7e\u00a0-\ud7ff\ue000-\uffff]", "?", text)[:400]

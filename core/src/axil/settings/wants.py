"""Wants: what workflow files name that needs leave, or is done without.

Each question to the grants in force is a ``Want``. ``noting_wants`` gathers them, refused ones too,
so that all of them are known before anything starts. What a component asks its run for later
(``ctx.allows``) it says in an attribute ``wants``: words as of ``--allow``.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Literal

from axil.errors import Problem

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


def refusals_of(wants: Iterable[Want], *, late: bool = True) -> list[Problem]:
    """Return the refusals of wants that are missing, each once. ``late``: those that are asked for
    when they are used, too.
    """
    refusals: dict[tuple[str, str], Problem] = {}
    for problem in (each.problem for each in wants if late or not each.is_late):
        if problem is not None:  # a file may want what its component wants, and knows other ways
            refusals.setdefault((problem.where, problem.message), problem)
    return list(refusals.values())


def note_want(want: Want) -> bool:
    """Return whether wants are gathered; add this one to them."""
    wants = _noted.get()
    if wants is None:
        return False
    wants.append(want)
    return True


@dataclass(frozen=True, slots=True)
class Gathering:
    """The wants that are gathered while a plan is made, as the compiler meets them."""

    wants: list[Want]
    refuses: bool
    """True if what is missing is refused with the plan; else whatever gathers them refuses it."""

    def __len__(self) -> int:
        return len(self.wants)

    def placed(self, since: int, where: str, problems: Sequence[Problem]) -> list[Problem]:
        """Give a place to the wants that were gathered ``since`` and lack one in the file; return
        problems with the places of those wants whose refusals they are.
        """
        wants = self.wants[since:]
        if not wants:
            return list(problems)
        self.wants[since:] = [each.at(where) for each in wants]
        placed = {each.problem: each.at(where).problem for each in wants}
        return [placed.get(problem) or problem for problem in problems]

    def refusals(self) -> list[Problem]:
        """Return the refusals of what is missing when the plan is made."""
        return refusals_of(self.wants, late=False) if self.refuses else []


@contextmanager
def gathering() -> Generator[Gathering]:
    """Gather wants while a plan is made; where they are gathered already, with those."""
    outer = noted()
    if outer is not None:
        yield Gathering(outer, refuses=False)
        return
    with noting_wants() as wants:
        yield Gathering(wants, refuses=True)

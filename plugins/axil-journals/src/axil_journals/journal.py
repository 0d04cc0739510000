"""The journal: facts about a run, in plain data, from which a pure function rebuilds where it
stood.

An entry says what happened under the name of an activation, never under a position: ``done`` (what
it wrote and what each edge carried), ``round`` (how a round of a cycle ended), ``clock``,
``slept``, ``step`` (what a body read or did), ``asked`` and ``answer``. Nothing that is in the
journal runs again. Values are made canonical in ``values`` and nowhere else: what cannot be held
exactly is refused, never changed.

Entries are appended in the order in which they took effect, and are safe in that order: a crash
loses an end of them, never one from among them. What a run only worked out for itself may be lost
and is worked out again; so it waits for the journal before a body starts that the world could
notice, before a run continues after a step, and before it says how it ended.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from axil import Activation
from axil.driver import Frame, Ordinal
from axil.plugin import JournalError
from axil_journals.threads import admit_run


@dataclass(frozen=True, slots=True)
class Entry:
    """One fact. ``data`` is JSON data."""

    kind: str
    """One of ``KINDS``."""
    frame: Frame = ()
    node: str = ""
    ordinal: Ordinal = ()
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def activation(self) -> Activation:
        """The activation to which the fact belongs."""
        return Activation(self.frame, self.node, self.ordinal)


KINDS = (
    "run",
    "resumed",
    "began",
    "done",
    "round",
    "clock",
    "slept",
    "step",
    "asked",
    "answer",
    "ended",
)
"""The kinds of entries: the run began (``run``), was resumed (``resumed``), ended (``ended``); a
body with effects outside was about to run (``began``), an activation ended (``done``), a round of a
cycle ended (``round``), a body read the clock, slept, took a step, asked a person; a person gave an
``answer``."""


class Journal(Protocol):
    """``axil.journals``: an append-only store of entries per run, in order."""

    def open(self, run_id: str) -> JournalWriter:
        """Return the writer of a run. Opening it claims nothing yet."""
        ...

    def entries(self, run_id: str) -> Iterable[Entry]:
        """Everything known of a run, in the order it was appended; entries that a later one
        supersedes may be missing.
        """
        ...

    def thread(self, name: str) -> Sequence[str]:
        """Return the ids of the runs of a thread, oldest first."""
        ...

    def runs(self) -> Sequence[RunInfo]:
        """Return the runs of the journal, the last touched first."""
        ...

    def forget(self, run_id: str) -> None:
        """Drop all that is known of a run.

        Raises: JournalError (AX503): there is no such run; AX506: it is at work.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """The facts about a run that a journal reports without reading it."""

    run_id: str
    graph: str = ""
    status: str = "open"
    """Its status; ``running``: it is at work; ``open``: it broke off, and can be resumed."""
    thread: str = ""
    begun: float = 0.0
    """Seconds since 1970, as all times here."""
    touched: float = 0.0
    entries: int = 0
    forked_from: str = ""


class JournalWriter(Protocol):
    """One run's part of a journal, held by the process that runs it.

    The first ``append`` claims the run, until ``close``. It is refused (JournalError AX506) where
    another holder is alive, or has written since this writer was opened: so a run is never at work
    twice, and who was overtaken notices at its next entry.
    """

    @property
    def entries(self) -> Sequence[Entry]:
        """The entries at the time when the writer was opened."""
        ...

    def append(self, entry: Entry) -> None:
        """Take ``entry``, behind all before it.

        It may not be safe yet; see ``kept``. Raises: JournalError.
        """
        ...

    def kept(self) -> Awaitable[None] | None:
        """Return None: all appended entries are safe.

        Else an awaitable: when it is done, it is. Raises: JournalError.
        """
        ...

    def close(self) -> None:
        """Release the run; nothing is appended after that. May be called again."""
        ...


class Cipher(Protocol):
    """``axil.ciphers``: encrypts what a journal stores. It holds the keys.

    ``about`` is what a text belongs to; a text that was moved elsewhere does not open.
    """

    def seal(self, text: bytes, about: bytes) -> bytes:
        """Return ``text``, encrypted. Raises: JournalError (AX513): there is no usable key."""
        ...

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """Return the text that was sealed.

        Raises: JournalError: AX513 there is no usable key; AX514 it was sealed with another key, or
        was changed.
        """
        ...

    def digest(self, text: bytes) -> bytes:
        """Return a digest of at least 16 bytes that depends on the key.

        Raises: JournalError (AX513).
        """
        ...

    def is_current(self, sealed: bytes) -> bool:
        """Return whether this was sealed with the key that seals now, and not with an older one."""
        ...


T = TypeVar("T")


class Compactor(Generic[T]):
    """The rule by which later entries of a run supersede earlier ones: the entry that ends an
    activation, a round, or a stretch of rounds holds all that they did. ``T`` is the journal's own
    id of an entry.
    """

    def __init__(self) -> None:
        self._root: _Branch[T] = _Branch()

    def add(self, entry: Entry, known_by: T) -> list[T]:
        """Take in ``entry``; gives those that it supersedes.

        Cost: O(depth of its frame), and what is given.
        """
        branch = self._root
        for part in entry.frame:
            kid = branch.kids.get(part)
            if kid is None:
                kid = branch.kids[part] = _Branch()
            branch = kid
        who, kind = (entry.node, entry.ordinal), entry.kind
        gone: list[T] = []
        if kind == "done":
            if branch.facts:
                gone += branch.facts.pop(who, ())
            if branch.rounds:
                gone += branch.rounds.pop(who, ())
            branch.done.append(known_by)
        elif kind == "round":
            if "total" in entry.data:
                gone += branch.rounds.pop(who, ())
            branch.rounds.setdefault(who, []).append(known_by)
        else:
            branch.facts.setdefault(who, []).append(known_by)
            return gone
        if entry.node in branch.kids:
            inside: list[str | int] = [entry.node]
            if entry.ordinal:
                inside.append("#" + ".".join(map(str, entry.ordinal)))
            if kind == "round":
                inside.append(entry.data["round"])
            gone += _cut(branch, inside)
        return gone


class _Branch(Generic[T]):
    """The entries of one frame, and of the frames inside it."""

    __slots__ = ("done", "facts", "kids", "rounds")

    def __init__(self, kids: dict[str | int, _Branch[T]] | None = None) -> None:
        self.kids = {} if kids is None else kids
        self.facts: dict[tuple[str, Ordinal], list[T]] = {}
        self.rounds: dict[tuple[str, Ordinal], list[T]] = {}
        self.done: list[T] = []

    def all(self) -> Iterator[T]:
        stack: list[_Branch[T]] = [self]
        while stack:
            branch = stack.pop()
            yield from branch.done
            for several in (*branch.facts.values(), *branch.rounds.values()):
                yield from several
            stack.extend(branch.kids.values())


def _cut(branch: _Branch[T], path: Sequence[str | int]) -> Iterable[T]:
    for part in path[:-1]:
        if part not in branch.kids:
            return ()
        branch = branch.kids[part]
    inside = branch.kids.pop(path[-1], None)
    if inside is None or not (inside.kids or inside.facts or inside.rounds):
        return () if inside is None else inside.done
    others = {part: kid for part, kid in inside.kids.items() if str(part).startswith("#")}
    if others:  # other firings of the same node, which may be under way
        branch.kids[path[-1]] = _Branch(others)
        inside.kids = {part: kid for part, kid in inside.kids.items() if part not in others}
    return inside.all()


@dataclass(slots=True)
class _Shelf:
    """One run in memory."""

    entries: dict[int, Entry] = field(default_factory=dict[int, Entry])
    superseding: Compactor[int] = field(default_factory=Compactor[int])
    count: int = 0
    holder: _MemoryWriter | None = None
    is_forgotten: bool = False
    begun: float = field(default_factory=time.time)
    touched: float = 0.0
    ended: str = ""
    header: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def status(self) -> str:
        return self.ended or ("open" if self.holder is None else "running")

    def info(self, run_id: str) -> RunInfo:
        header = self.header
        return RunInfo(
            run_id=run_id,
            graph=header.get("graph", ""),
            status=self.status,
            thread=header.get("thread", ""),
            begun=self.begun,
            touched=self.touched,
            entries=len(self.entries),
            forked_from=header.get("forked_from", ""),
        )


class MemoryJournal:
    """A journal in this process's memory: for tests, and for runs that pause and continue in one
    process.

    Superseded entries are dropped.
    """

    def __init__(self) -> None:
        self._shelves: dict[str, _Shelf] = {}
        self._threads: dict[str, list[str]] = {}

    def open(self, run_id: str) -> JournalWriter:
        """See ``Journal``."""
        return _MemoryWriter(run_id, self._shelves, self._threads)

    def entries(self, run_id: str) -> Sequence[Entry]:
        """See ``Journal``."""
        shelf = self._shelves.get(run_id)
        return [] if shelf is None else list(shelf.entries.values())

    def thread(self, name: str) -> Sequence[str]:
        """See ``Journal``."""
        return tuple(self._threads.get(name, ()))

    def runs(self) -> Sequence[RunInfo]:
        """See ``Journal``."""
        infos = [shelf.info(run_id) for run_id, shelf in list(self._shelves.items()) if shelf.count]
        return sorted(infos, key=lambda info: -info.touched)

    def forget(self, run_id: str) -> None:
        """See ``Journal``."""
        shelf = self._shelves.get(run_id)
        if shelf is None or not shelf.count:
            raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")
        if shelf.holder is not None:
            raise claimed_error(run_id, "in this process")
        del self._shelves[run_id]
        shelf.is_forgotten = True
        for runs in self._threads.values():
            if run_id in runs:
                runs.remove(run_id)


class _MemoryWriter:
    """See ``JournalWriter``: memory is as safe as it gets at once."""

    def __init__(
        self, run_id: str, shelves: dict[str, _Shelf], threads: dict[str, list[str]]
    ) -> None:
        self.run_id, self._shelves, self._threads = run_id, shelves, threads
        self._shelf = shelves.setdefault(run_id, _Shelf())
        self.entries, self._seen = tuple(self._shelf.entries.values()), self._shelf.count

    def append(self, entry: Entry) -> None:
        # there was no run when this was opened: what came and went since is nothing to it
        if not self._seen and self._shelf.is_forgotten:
            self._shelf = self._shelves.setdefault(self.run_id, _Shelf())
        shelf = self._shelf
        if shelf.holder is not self:
            if shelf.is_forgotten or shelf.holder is not None or shelf.count != self._seen:
                raise claimed_error(self.run_id, "in this process")
            header = entry.data if entry.kind == "run" else shelf.header
            if header.get("thread"):
                runs = self._threads.setdefault(header["thread"], [])
                admit_run(header, self.run_id, runs, lambda run_id: self._shelves[run_id].status)
                runs += [self.run_id] if self.run_id not in runs else []
            shelf.holder, shelf.header = self, header
        shelf.count += 1
        for gone in shelf.superseding.add(entry, shelf.count):
            del shelf.entries[gone]
        shelf.entries[shelf.count] = entry
        shelf.touched = time.time()
        shelf.ended = entry.data["status"] if entry.kind == "ended" else ""

    def kept(self) -> None:
        return None

    def close(self) -> None:
        self._seen = -1
        if self._shelf.holder is self:
            self._shelf.holder = None


def claimed_error(run_id: str, by: str) -> JournalError:
    """Return another holder runs it, or went on with it."""
    message = f'the run "{run_id}" is at work elsewhere ({by}), or was resumed there.'
    return JournalError(
        message, id="AX506", hint="Wait until it has ended, or cancel it there; then resume it."
    )

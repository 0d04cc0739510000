"""The journal: facts about a run, in plain data, from which a pure function rebuilds where it stood.

An entry says what happened under the name of an activation, never under a position: ``done`` (what it wrote and what each
edge carried), ``round`` (how a round of a cycle ended), ``clock``, ``slept``, ``step`` (what a body read or did), ``asked``
and ``answer``. Nothing that is in the journal runs again. Values are made canonical here and nowhere else: what cannot be
held exactly is refused, never changed.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from axil.errors import JournalError
from axil.fields import NO_RESET, Change
from axil.state import Schema
from axil.tokens import Activation, Frame, Ordinal
from axil.values import MISSING, Log

_TAG = "@"
_DEEPEST = 200


def encode(value: Any, depth: int = 0) -> Any:
    """``value`` as JSON data from which ``decode`` makes an equal value of the same type.

    Scalars (NaN, infinities, lone surrogates and huge integers too), bytes, lists, tuples, sets and dicts, nested up to
    200 deep. Raises: JournalError (AX501): anything else.

    >>> encode({"a": (1, 2.5)})
    {'a': {'@': 'tuple', 'v': [1, 2.5]}}
    """
    kind: type[Any] = cast("type[Any]", type(value))
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -(2**53) < value < 2**53 else {_TAG: "int", "v": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {_TAG: "float", "v": repr(value)}
    if depth >= _DEEPEST:
        raise JournalError(f"a value is nested deeper than {_DEEPEST} levels.", id="AX502", hint="Keep large structures in files.")
    if kind is list:
        return [encode(item, depth + 1) for item in value]
    if kind is Log:
        return {_TAG: "log", "v": [encode(item, depth + 1) for item in value.raw()]}
    if kind is dict:
        if _TAG not in value and all(type(key) is str for key in value):
            return {key: encode(item, depth + 1) for key, item in value.items()}
        return {_TAG: "dict", "v": [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in value.items()]}
    if kind is tuple:
        return {_TAG: "tuple", "v": [encode(item, depth + 1) for item in value]}
    if kind is set or kind is frozenset:
        return {_TAG: kind.__name__, "v": sorted((encode(item, depth + 1) for item in value), key=repr)}
    if kind is bytes:
        return {_TAG: "bytes", "v": base64.b64encode(value).decode()}
    if value is MISSING:
        return {_TAG: "missing"}
    raise JournalError(
        f"a value of type {kind.__module__}.{kind.__qualname__} cannot be kept in a journal.",
        id="AX501",
        hint="Return plain data, declare the field in a typed schema, or hand the object in as deps.",
    )


def decode(data: Any) -> Any:
    """The value that ``encode`` was given."""
    if isinstance(data, list):
        return [decode(item) for item in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    table = cast("dict[str, Any]", data)
    if _TAG not in table:
        return {key: decode(item) for key, item in table.items()}
    inner: Any = table.get("v")
    tag = table[_TAG]
    if tag == "int":
        return int(inner, 16)
    if tag == "float":
        return float(inner)
    if tag == "bytes":
        return base64.b64decode(inner)
    if tag == "missing":
        return MISSING
    if tag == "dict":
        return {decode(key): decode(item) for key, item in inner}
    items = [decode(item) for item in inner]
    return {"tuple": tuple, "set": set, "frozenset": frozenset, "log": Log}[tag](items)


def encode_delta(delta: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """A checked delta or a frame's changes, each field by its schema. Raises: JournalError, naming the field."""

    def one(name: str, value: Any) -> Any:
        to_plain = schema.of(name).encode
        try:
            return encode(to_plain(value) if to_plain is not None and value is not MISSING else value)
        except JournalError as error:
            raise JournalError(f'field "{name}": {error.message}', id=error.id, hint=error.hint) from None

    plain: dict[str, Any] = {}
    for name, value in delta.items():
        if type(value) is Change:
            plain[name] = {_TAG: "change", "v": [one(name, d) for d in value.deltas]}
            if value.reset is not NO_RESET:
                plain[name]["reset"] = one(name, value.reset)
        else:
            plain[name] = one(name, value)
    return plain


def decode_delta(plain: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The delta that ``encode_delta`` was given."""

    def one(name: str, data: Any) -> Any:
        value = decode(data)
        to_value = schema.of(name).decode
        return to_value(value) if to_value is not None and value is not MISSING else value

    delta: dict[str, Any] = {}
    for name, data in plain.items():
        if isinstance(data, dict) and cast("dict[str, Any]", data).get(_TAG) == "change":
            change = cast("dict[str, Any]", data)
            reset = one(name, change["reset"]) if "reset" in change else NO_RESET
            delta[name] = Change(tuple(one(name, d) for d in change["v"]), reset)
        else:
            delta[name] = one(name, data)
    return delta


@dataclass(frozen=True, slots=True)
class Entry:
    """One fact. ``data`` is JSON data."""

    kind: str
    """``run``, ``done``, ``round``, ``clock``, ``slept``, ``step``, ``asked``, ``answer``, ``ended``."""
    frame: Frame = ()
    node: str = ""
    ordinal: Ordinal = ()
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def activation(self) -> Activation:
        """Whose fact it is."""
        return Activation(self.frame, self.node, self.ordinal)


class Journal(Protocol):
    """``axil.journals``: an append-only store of entries per run."""

    def append(self, run_id: str, entry: Entry) -> Awaitable[None] | None:
        """Keep ``entry``. None: it is kept. An awaitable: it is kept when that is done; its effects wait for it."""
        ...

    def entries(self, run_id: str) -> Iterable[Entry]:
        """Everything kept of a run, in the order it was appended; entries that a later one supersedes may be missing."""
        ...


class MemoryJournal:
    """A journal in this process's memory: for tests, and for runs that pause and go on within one process.

    What a finished scope or a finished round did inside itself is dropped: its own entry says all of it.
    """

    def __init__(self) -> None:
        self._runs: dict[str, _Branch] = {}
        self._count = 0

    def append(self, run_id: str, entry: Entry) -> None:
        self._count += 1
        branch = self._runs.setdefault(run_id, _Branch())
        for part in entry.frame:
            branch = branch.kids.setdefault(part, _Branch())
        if entry.kind in ("done", "round"):
            inside = [entry.node, *(["#" + ".".join(map(str, entry.ordinal))] if entry.ordinal else [])]
            if entry.kind == "round":
                inside.append(entry.data["round"])
            _prune(branch, inside)
        branch.entries.append((self._count, entry))

    def entries(self, run_id: str) -> Sequence[Entry]:
        found: list[tuple[int, Entry]] = []
        stack = [self._runs.get(run_id, _Branch())]
        while stack:
            branch = stack.pop()
            found.extend(branch.entries)
            stack.extend(branch.kids.values())
        return [entry for _, entry in sorted(found, key=lambda item: item[0])]

    def runs(self) -> Sequence[str]:
        """The ids of the runs that have entries."""
        return list(self._runs)


@dataclass(slots=True)
class _Branch:
    entries: list[tuple[int, Entry]] = field(default_factory=list[tuple[int, Entry]])
    kids: dict[str | int, _Branch] = field(default_factory=dict[str | int, "_Branch"])


def _prune(branch: _Branch, path: Sequence[str | int]) -> None:
    for part in path[:-1]:
        if part not in branch.kids:
            return
        branch = branch.kids[part]
    inside = branch.kids.pop(path[-1], None)
    others = {part: kid for part, kid in inside.kids.items() if str(part).startswith("#")} if inside is not None else {}
    if others:  # other firings of the same node, which may be under way
        branch.kids[path[-1]] = _Branch(kids=others)


class Replay:
    """What a journal knows about a run, indexed by activation."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.done: dict[Activation, Entry] = {}
        self.rounds: dict[Activation, list[Entry]] = {}
        self.clock: dict[tuple[Activation, int], float] = {}
        self.slept: dict[tuple[Activation, int], float] = {}
        self.steps: dict[tuple[Activation, str], Any] = {}
        self.answers: dict[str, Any] = {}
        self.asked: dict[str, Entry] = {}
        self.order: dict[Frame, list[Activation]] = {}
        self.header: Entry | None = None
        self.elapsed = 0.0
        for entry in entries:
            self._read(entry)

    def _read(self, entry: Entry) -> None:
        kind, data, who = entry.kind, entry.data, entry.activation
        if kind == "done":
            self.done[who] = entry
            self.order.setdefault(who.frame, []).append(who)
        elif kind == "round":
            self.rounds.setdefault(who, []).append(entry)
        elif kind == "clock":
            self.clock[who, data["call"]] = data["value"]
        elif kind == "slept":
            self.slept[who, data["call"]] = data["until"]
        elif kind == "step":
            self.steps[who, data["name"]] = decode(data["value"])
        elif kind == "asked":
            self.asked[data["id"]] = entry
        elif kind == "answer":
            self.answers[data["id"]] = decode(data["value"])
        elif kind == "run":
            self.header = entry
        self.elapsed = max(self.elapsed, float(data.get("at", 0.0)))

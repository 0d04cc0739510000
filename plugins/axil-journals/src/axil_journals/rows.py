"""Entries as rows of text with checksums, for journals in databases."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from axil.driver import Frame, Ordinal, inner_frame, new_tuple
from axil.plugin import JournalError, without_secrets
from axil_journals.journal import Entry, RunInfo


def _encoder() -> Callable[[Any], str]:
    """Return an encoder as ASCII JSON without spaces, which ``json`` would make for each call."""
    usual = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)
    quick: Any = getattr(json.encoder, "c_make_encoder", None)
    if quick is None:
        return usual.encode
    ascii = json.encoder.encode_basestring_ascii
    parts = quick(None, usual.default, ascii, None, ":", ",", False, False, False)
    return lambda value: "".join(parts(value, 0))


_encode = _encoder()

_ROUND = ("round", "changes", "exits", "returns", "end", "at", "used")
_JOINED = "+round"
"""The keys that a row of two entries has beside those of the first."""


class EntryRow(NamedTuple):
    """One entry of a run, as text; or two of them, see ``joined_row``."""

    seq: int
    kind: str
    who: str
    """Frame, node and ordinal, as JSON; empty: all empty."""
    body: str
    """Its content, as JSON."""

    @property
    def crc(self) -> int:
        """A checksum over all of it."""
        before = f"{self.seq}\0{self.kind}\0{self.who}\0".encode()
        return zlib.crc32(self.body.encode(), zlib.crc32(before))


def entry_row(seq: int, entry: Entry) -> EntryRow:
    """Return the row of an entry, without the secrets of this process.

    Raises: JournalError (AX501): it holds something that is not JSON data.
    """
    who = _encode([entry.frame, entry.node, entry.ordinal]) if entry.node or entry.frame else ""
    try:
        body = _encode(data_without_secrets(entry.data))
    except (TypeError, ValueError) as error:
        message = f"an entry cannot be kept: {error}."
        raise JournalError(message, id="AX501", hint="Entries hold JSON data.") from None
    return new_tuple(EntryRow, (seq, entry.kind, who, body))


def data_without_secrets(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of an entry without the secrets of this process."""
    left = without_secrets(data)
    if "origin" in data:  # the text of files, and how they were read
        left = {**left, "origin": data["origin"]}
    if "origin" in data.get("now", ()):
        left = {**left, "now": {**left["now"], "origin": data["now"]["origin"]}}
    return left


def joined_row(row: EntryRow, done: Entry, round: Entry) -> EntryRow | None:
    """Return one row for a round and the firing before it, or None if each needs its own row.

    They share a row, with the number of the round, if the firing is one of this round, which then
    supersedes it, and if the round wrote and sent what the firing did: so that is kept once.

    Args:
        row: the row of ``done`` alone.
        round: the entry right behind it.
    """
    data, did = round.data, done.data
    if tuple(data) != _ROUND or "sends" not in did:
        return None
    # rounds that end beside one another often have the same content
    if done.frame != (*inner_frame(round.frame, round.node, round.ordinal), data["round"]):
        return None
    if data["used"] != did["used"] or not _same(data["changes"], did["delta"]):
        return None
    sends, edges, ordinal = did["sends"], [edge for edge, _, _ in did["sends"]], list(done.ordinal)
    exits, returns = list[int](), list[int]()
    for sent, places in ((data["exits"], exits), (data["returns"], returns)):
        for edge, payload, values, its in sent:
            if edge not in edges or its != ordinal:
                return None
            _, carried, wrote = sends[at := edges.index(edge)]
            if not ((payload is carried or _same(payload, carried)) and _same(values, wrote)):
                return None
            places.append(at)
    end = '""' if data["end"] == "" else _encode(data["end"])
    who = _who(round.frame, round.node, round.ordinal)
    left = _encode(exits) if exits else "[]"
    back = _encode(returns) if returns else "[]"
    message = (
        f'{{"who":{who},"round":{data["round"]},"end":{end},"at":{data["at"]!r},'
        f'"exits":{left},"returns":{back}}}'
    )
    return new_tuple(
        EntryRow, (row.seq + 1, "done", row.who, f'{row.body[:-1]},"{_JOINED}":{message}}}')
    )


@lru_cache(maxsize=1024)
def _who(frame: Frame, node: str, ordinal: Ordinal) -> str:
    return _encode([frame, node, ordinal])


def _same(one: Any, other: Any) -> bool:
    """Return whether both are the same JSON text."""
    if one is other:
        return True
    kind: Any = type(one)  # pyright: ignore[reportUnknownVariableType]  # anything may come
    if kind is not type(other):
        return False
    if kind is dict:
        return list(one) == list(other) and all(
            _same(value, other[name]) for name, value in one.items()
        )
    if kind is list:
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) if kind in (str, int, bool) else _encode(one) == _encode(other)


def row_entries(row: EntryRow, crc: int, run_id: str) -> list[tuple[int, Entry]]:
    """Return the entries of a row, with their numbers.

    Raises: JournalError (AX511): it is not what was stored.
    """
    if row.crc != crc:
        raise damaged_error(run_id, row.seq, "its checksum is wrong")
    frame, node, ordinal = json.loads(row.who) if row.who else ((), "", ())
    data: dict[str, Any] = json.loads(row.body)
    joined = data.pop(_JOINED, None) if row.kind == "done" else None
    entry = Entry(row.kind, tuple(frame), node, tuple(ordinal), data)
    if joined is None:
        return [(row.seq, entry)]
    frame, node, ordinal = joined["who"]
    exits, returns = (
        [[*data["sends"][at], list(entry.ordinal)] for at in joined[name]]
        for name in ("exits", "returns")
    )
    given = {
        "round": joined["round"],
        "changes": data["delta"],
        "exits": exits,
        "returns": returns,
        "end": joined["end"],
        "at": joined["at"],
        "used": data["used"],
    }
    round = Entry("round", tuple(frame), node, tuple(ordinal), given)
    return [(row.seq - 1, entry), (row.seq, round)]


class Damage(NamedTuple):
    """The damage of a record."""

    run_id: str
    """Empty: the database itself."""
    problem: str
    """Empty: there is none."""
    good: int = 0
    """The number of sound entries before it."""


def damage_of(run_id: str, entries: Iterable[object]) -> Damage:
    """Return the damage of a run, whose entries are read here."""
    good, problem = 0, ""
    try:
        for _ in entries:
            good += 1
    except JournalError as error:
        problem = error.message
    return Damage(run_id, problem, good)


class Cut(NamedTuple):
    """The place at which a record is cut."""

    row: int
    """The number of the first row to be deleted."""
    kept: Sequence[tuple[int, Entry]]
    """The entries of this row that stay, with their numbers."""
    next: int
    """The number of the next entry."""


def find_cut(
    rows: Iterable[Any], read: Callable[[Any], Sequence[tuple[int, Entry]]], at: int
) -> Cut | None:
    """Return the place behind the first ``at`` entries; None: there are no more.

    Args:
        rows: as stored, beginning with number and kind; the numbers have gaps.
        read: returns the entries of a row.
    """
    left = at
    for row in rows:
        try:
            several = read(row)
        except JournalError:
            several = [(row[0], Entry(row[1]))]
        if len(several) > left:
            return Cut(row[0], several[:left], several[left][0])
        left -= len(several)
    return None


def run_info(row: Sequence[Any], is_held: Callable[[], bool]) -> RunInfo:
    """Return the facts about a run.

    Args:
        row: run, graph, status, thread, begun, touched, next, forked_from, due.
        is_held: returns whether a living process holds the run; asked if it has not ended.
    """
    run, graph, status, thread, begun, touched, entries, source, due = row
    if status in ("open", "running"):
        status = "running" if is_held() else "open"
    return RunInfo(
        run_id=run,
        graph=graph,
        status=status,
        thread=thread,
        begun=begun,
        touched=touched,
        entries=entries,
        forked_from=source,
        due=due,
    )


def damaged_error(run_id: str, seq: int, how: str) -> JournalError:
    """Return the error for an entry that differs from what was stored."""
    message = f'entry {seq} of the run "{run_id}" is damaged: {how}.'
    hint = "What follows it is not read; other runs are not affected. See axil runs doctor."
    return JournalError(message, id="AX511", hint=hint)

"""Entries as rows of text, for journals in databases, with a checksum over each row, so that a
flipped bit is found, never believed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from axil.driver import Frame, Ordinal, inner_frame, new_tuple
from axil.plugin import JournalError, without_secrets
from axil_journals.journal import Entry


def _encoder() -> Callable[[Any], str]:
    """Return JSON without spaces, in ASCII, so that any text survives.

    What ``json`` makes anew for each call is made once.
    """
    usual = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)
    quick: Any = getattr(json.encoder, "c_make_encoder", None)
    if quick is None:
        return usual.encode
    parts = quick(
        None,
        usual.default,
        json.encoder.encode_basestring_ascii,
        None,
        ":",
        ",",
        False,
        False,
        False,
    )
    return lambda value: "".join(parts(value, 0))


_encode = _encoder()

_ROUND = ("round", "changes", "exits", "returns", "end", "at", "used")
_JOINED = "+round"
"""The keys that a row of two entries has beside those of the first."""


class EntryRow(NamedTuple):
    """One entry of a run, as text; or two of them, see ``joined``."""

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
        return zlib.crc32(self.body.encode(), zlib.crc32(before))  # a body may be long: one copy


def entry_row(seq: int, entry: Entry) -> EntryRow:
    """Return the row of an entry, without the secrets of this process.

    Raises: JournalError (AX501): it holds something that is not JSON data.
    """
    who = _encode([entry.frame, entry.node, entry.ordinal]) if entry.node or entry.frame else ""
    try:
        body = _encode(_kept(entry.data))
    except (TypeError, ValueError) as error:
        raise JournalError(
            f"an entry cannot be kept: {error}.", id="AX501", hint="Entries hold JSON data."
        ) from None
    return new_tuple(EntryRow, (seq, entry.kind, who, body))


def _kept(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of an entry without secrets, but for the source of a run's graph: that is
    the text of files, and how they were read.
    """
    kept = without_secrets(data)
    return {**kept, "origin": data["origin"]} if "origin" in data else kept


def joined_row(row: EntryRow, done: Entry, round: Entry) -> EntryRow | None:
    """Return one row for a round and the firing before it, or None if each needs its own row.

    They share a row if the firing is one of this round, so that the round supersedes it, and if
    the round says nothing that the firing does not say. Most loops end their rounds with such a
    firing; what it wrote and sent is then kept once. The row has the number of the round.

    Args:
        row: the row of ``done`` alone.
        done: the firing.
        round: the entry right behind it.
    """
    data, did = round.data, done.data
    if tuple(data) != _ROUND or "sends" not in did:
        return None
    # The content alone does not prove this: rounds that end beside one another often say the same.
    if done.frame != (*inner_frame(round.frame, round.node, round.ordinal), data["round"]):
        return None
    if not (_same(data["changes"], did["delta"]) and _same(data["used"], did["used"])):
        return None
    sends, edges, ordinal = did["sends"], [edge for edge, _, _ in did["sends"]], list(done.ordinal)
    exits, returns = list[int](), list[int]()
    for sent, places in ((data["exits"], exits), (data["returns"], returns)):
        for edge, payload, values, its in sent:
            if edge not in edges or its != ordinal:
                return None
            _, carried, wrote = sends[at := edges.index(edge)]
            if not (_same(payload, carried) and _same(values, wrote)):
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
    """Return the ids of a cycle's round as JSON: the same for all rounds of a cycle."""
    return _encode([frame, node, ordinal])


def _same(one: Any, other: Any) -> bool:
    """Return whether both are the same JSON text."""
    if one is other:
        return True
    kind = cast("type[Any]", type(one))
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
    report = data.pop(_JOINED, None) if row.kind == "done" else None
    entry = Entry(row.kind, tuple(frame), node, tuple(ordinal), data)
    if report is None:
        return [(row.seq, entry)]
    frame, node, ordinal = report["who"]
    left = {
        name: [[*data["sends"][at], list(entry.ordinal)] for at in report[name]]
        for name in ("exits", "returns")
    }
    given = {
        "round": report["round"],
        "changes": data["delta"],
        **left,
        "end": report["end"],
        "at": report["at"],
        "used": data["used"],
    }
    return [
        (row.seq - 1, entry),
        (row.seq, Entry("round", tuple(frame), node, tuple(ordinal), given)),
    ]


def damaged_error(run_id: str, seq: int, how: str) -> JournalError:
    """Return the error for an entry that differs from what was stored."""
    return JournalError(
        f'entry {seq} of the run "{run_id}" is damaged: {how}.',
        id="AX511",
        hint="Nothing from there on is believed; other runs are not touched. "
        "axil runs doctor says what is left.",
    )

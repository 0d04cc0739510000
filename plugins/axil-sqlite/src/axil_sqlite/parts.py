"""Long bodies in parts: text that several entries share is stored once.

Theory of operation
-------------------
A thread's runs begin and end with all its messages, and a body may write a growing list whole at
every round. Stored whole, n turns cost n² bytes. So a body longer than ``LONG`` is cut into
*parts*, each named by the digest of its contents and stored once. Cuts follow from the text near
them, not from positions: where a list has grown at its end, or lost items at its beginning, nearly
all parts are those of the turn before. The names of the parts are a list that grows, too; it is cut
in the same way, into *lists*, until the rest is short enough for the row. A turn then costs what it
adds, a part, and a list for each level.

Triggers of the database count the rows and lists that name a part, and delete a part that nothing
names. So space is given back in the transaction that deletes a row, whichever way it is deleted.

Invariant: where a list is stored, so are all parts that it names. So a list that is there needs no
look at its parts.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

LONG: Final = 8_192
"""Bytes above which a body is stored in parts."""

_PART: Final = 1_024
"""Bytes of a part, on average."""
_TEXT, _LONGEST = 4_096, 16_384
"""Bytes of a text, and of several, above which they are cut anywhere."""
_LIST: Final = 32
"""Names in a list, on average."""
_SEAM: Final = b'","'
"""The pattern at which values may be cut: between two texts of a JSON list or object."""

TABLES = """
create table sealing (id integer primary key check (id = 1), proof blob not null);
create table parts (
    id integer primary key,
    name text not null unique,
    uses integer not null default 0,
    kind text not null,
    body blob not null
);
create trigger parts_of_new_entry after insert on entries when substr(new.body, 1, 1) = '#' begin
    update parts set uses = uses + 1
    where name in (select value from json_each(substr(new.body, 2)));
end;
create trigger parts_of_gone_entry after delete on entries when substr(old.body, 1, 1) = '#' begin
    update parts set uses = uses - 1
    where name in (select value from json_each(substr(old.body, 2)));
end;
create trigger parts_of_new_list after insert on parts when new.kind = 'list' begin
    update parts set uses = uses + 1 where name in (select value from json_each(new.body));
end;
create trigger parts_of_gone_list after delete on parts when old.kind = 'list' begin
    update parts set uses = uses - 1 where name in (select value from json_each(old.body));
end;
create trigger parts_not_named after update of uses on parts when new.uses = 0 begin
    delete from parts where id = new.id;
end;
"""


Part = tuple[str, bytes]
"""The kind of a part, ``part`` or ``list``, and what it holds."""
Seal = Callable[[bytes, bytes], bytes]
"""``seal`` or ``open`` of a cipher."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A body that was cut."""

    names: Sequence[str]
    """The names that its row has."""
    made: dict[str, bytes | list[str]] = field(default_factory=dict[str, bytes | list[str]])
    """Contents of parts, and names in lists, by name."""


def plain_digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=24).digest()


def cut(raw: bytes, digest: Callable[[bytes], bytes] = plain_digest) -> Pieces:
    """Cut a body into parts, and the list of their names into lists."""
    made: dict[str, bytes | list[str]] = {}
    names: list[str] = []
    for part in _cuts(raw):
        names.append(name := digest(b"part" + part).hex())
        made[name] = part
    while len(names) > 2 * _LIST:
        lists = list(_groups(names))
        if len(lists) == len(names):  # no digest of this level is a place to cut
            break
        names = []
        for several in lists:
            names.append(name := digest(b"list" + "".join(several).encode()).hex())
            made[name] = several
    return Pieces(names, made)


def _cuts(raw: bytes) -> Iterator[bytes]:
    """Yield the parts of ``raw``. A cut is behind a text whose checksum is small for its size: so
    parts have ``_PART`` bytes on average, however short the texts are.
    """
    start = end = 0
    for text in raw.split(_SEAM):
        if len(text) > _TEXT:
            if start < end:
                yield raw[start:end]
            start, end = end, min(end + len(text) + len(_SEAM), len(raw))
            yield from (raw[at : min(at + _TEXT, end)] for at in range(start, end, _TEXT))
            start = end
            continue
        end += len(text) + len(_SEAM)
        if crc32(text) % _PART <= len(text) or end - start > _LONGEST:
            yield raw[start:end]
            start = end
    if start < len(raw):
        yield raw[start:]


def _groups(names: Sequence[str]) -> Iterator[list[str]]:
    several: list[str] = []
    for name in names:
        several.append(name)
        if int(name[:8], 16) % _LIST == 0 or len(several) == 8 * _LIST:
            yield several
            several = []
    if several:
        yield several


def put(connection: sqlite3.Connection, pieces: Pieces, seal: Seal | None = None) -> str:
    """Store the pieces that are not there; return the body for the row."""

    def store(names: Sequence[str]) -> None:
        asked = "select name from parts where name in (select value from json_each(?))"
        there = {name for (name,) in connection.execute(asked, (json.dumps(names),))}
        for name in names:
            if name not in there:
                there.add(name)
                connection.execute(_INSERT, (name, *row(name, pieces.made[name])))

    def row(name: str, piece: bytes | list[str]) -> tuple[str, bytes | str]:
        if isinstance(piece, list):
            store(piece)
            return "list", json.dumps(piece)
        return ("part", piece) if seal is None else ("sealed", seal(piece, name.encode()))

    store(pieces.names)
    return f"#{json.dumps(pieces.names)}"


_INSERT = "insert into parts (name, kind, body) values (?, ?, ?)"


def get(
    connection: sqlite3.Connection,
    body: str,
    fault: Callable[[str], Exception],
    unseal: Seal | None = None,
    known: dict[str, Part] | None = None,
) -> bytes:
    """Return the body that ``put`` stored.

    Args:
        fault: returns the error for a damage.
        known: parts that were read before, by name; those that are read are added.
    """
    known = {} if known is None else known
    names, listed = [body], {body: ("list", body[1:].encode())}
    while listed:
        try:
            names = [
                inner
                for name in names
                for inner in (json.loads(listed[name][1]) if name in listed else [name])
            ]
        except ValueError:
            raise fault("a list of its parts is not what was stored") from None
        unknown = [name for name in dict.fromkeys(names) if name not in known]
        for name, kind, piece in connection.execute(_PARTS, (json.dumps(unknown),)):
            if kind == "sealed":
                if unseal is None:
                    raise fault("its parts are encrypted")
                kind, piece = "part", unseal(piece, name.encode())
            known[name] = kind, piece
        if missing := [name for name in unknown if name not in known]:
            raise fault(f"its part {missing[0]} is gone")
        listed = {name: known[name] for name in names if known[name][0] == "list"}
    return b"".join(known[name][1] for name in names)


_PARTS = "select name, kind, body from parts where name in (select value from json_each(?))"

"""Rows as the table has them: long bodies in parts, all bodies sealed where there is a cipher."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Final
from zlib import crc32

from axil.plugin import JournalError
from axil_journals import (
    Cipher,
    Entry,
    EntryRow as Row,
    damaged_error as damaged,
    entry_row as row_of,
)
from axil_sqlite.files import Files
from axil_sqlite.parts import LONG, Part, cut, get, put
from axil_sqlite.store import Store, unusable

Stored = tuple[int, str, str, str | bytes, int]
"""A row as the table has it: number, kind, who, body, checksum.

A body of bytes is sealed, with the who before it; one that begins with ``#`` is the names of its
parts; one that begins with ``@`` the name of its file. The checksum is of the whole; of what is
sealed, which has an authentication of its own, it is of the names of parts only, so that it says
nothing of the text.
"""
_PROOF: Final = b"axil journal"
"""The text that is sealed in a journal so that a wrong key is noticed before anything is written.
"""


class Codec:
    """Writes and reads the rows of one journal."""

    def __init__(self, folder: Path, cipher: Cipher | None) -> None:
        self.cipher, self.files = cipher, Files(folder / "values")

    def admit(self, store: Store) -> None:
        """Check that the journal can be read and written with this cipher, or without one.

        Raises: JournalError: AX510 it is damaged; AX515 it is encrypted, and there is no cipher;
        AX513 there is no key; AX514 it is the wrong one.
        """
        try:
            found = store.one("select proof from sealing")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise unusable(store.folder, f"{error}", "A backup may be needed.") from None
        if self.cipher is None:
            if found is not None:
                raise JournalError(
                    f"the journal in {store.folder} is encrypted.",
                    id="AX515",
                    hint="Set AXIL_JOURNAL_KEY or AXIL_JOURNAL_KEY_FILE, or give SqliteJournal "
                    "the cipher.",
                )
            return
        if found is not None:
            self.cipher.open(found[0], _PROOF)
            if self.cipher.is_current(found[0]):
                return
        proof = self.cipher.seal(_PROOF, _PROOF)
        with store.writing() as connection:
            connection.execute("insert or replace into sealing (id, proof) values (1, ?)", (proof,))

    def stored(self, connection: sqlite3.Connection, run_id: str, row: Row) -> Stored:
        """Return ``row`` as the table has it; the parts of a long body are stored before that."""
        seq, kind, who, body = row
        if self.cipher is None:
            kept = body if len(body) <= LONG else put(connection, cut(body.encode()))
            return seq, kind, who, kept, row.crc
        raw = f"{who}\0{body}".encode()
        if len(raw) <= LONG:
            sealed = self.cipher.seal(raw, _about(run_id, seq, kind))
            return seq, kind, "", sealed, 0
        names = put(connection, cut(raw, self.cipher.digest), self.cipher.seal)
        return seq, kind, "", names, crc32(names.encode())

    def row(
        self,
        connection: sqlite3.Connection,
        run_id: str,
        stored: Stored,
        known: dict[str, Part] | None = None,
    ) -> tuple[Row, int]:
        """Return the row that was stored, and the checksum that it ought to have.

        Args:
            known: see ``parts.get``.
        Raises: JournalError: AX511 it is damaged; AX514 it was sealed with another key.
        """
        seq, kind, who, body, crc = stored
        cipher = self.cipher
        if isinstance(body, bytes):
            if cipher is None:
                raise damaged(run_id, seq, "it is encrypted")
            raw = cipher.open(body, _about(run_id, seq, kind))
        elif body.startswith("#"):
            unseal = None if cipher is None else cipher.open
            raw = get(connection, body, lambda how: damaged(run_id, seq, how), unseal, known)
        else:
            return Row(seq, kind, who, self.files.get(body, run_id, seq)), crc
        text = raw.decode("ascii", "replace")
        if cipher is None or text.startswith("{"):
            return Row(seq, kind, who, text), crc
        if isinstance(body, str) and crc32(body.encode()) != crc:
            raise damaged(run_id, seq, "its checksum is wrong")
        who, _, body = text.partition("\0")
        row = Row(seq, kind, who, body)
        return row, row.crc

    def letter(self, run_id: str, entry: Entry) -> tuple[str | None, str | bytes]:
        """Return the question of an answer, as a name of it, and the body of a letter."""
        name = str(entry.data["id"]) if entry.kind == "answer" else None
        body = row_of(0, entry).body
        if self.cipher is None:
            return name, body
        name = name and self.cipher.digest(f"{run_id}\0{name}".encode()).hex()
        return name, self.cipher.seal(body.encode(), _about(run_id, 0, entry.kind))

    def entry(self, run_id: str, kind: str, body: str | bytes) -> Entry:
        """Return the entry in a letter. Raises: JournalError (AX513, AX514)."""
        if isinstance(body, bytes) and self.cipher is not None:
            body = self.cipher.open(body, _about(run_id, 0, kind))
        return Entry(kind, data=json.loads(body))


def _about(run_id: str, seq: int, kind: str) -> bytes:
    return f"{run_id}\0{seq}\0{kind}".encode()

"""Rows as the table has them: long bodies in parts, all bodies sealed where there is a cipher."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from zlib import crc32

from axil_journals import Cipher, EntryRow, RowCodec, about_row, damaged_error
from axil_sqlite.files import Files
from axil_sqlite.parts import LONG, Part, cut, get, put
from axil_sqlite.store import Store, unusable

Stored = tuple[int, str, str, str | bytes, int]
"""A row as the table has it: number, kind, who, body, checksum.

A body of bytes is sealed, with the who before it; one that begins with ``#`` is the names of its
parts; one that begins with ``@`` the name of its file. The checksum is of the whole row; if it is
sealed, which authenticates it, of the names of parts only, so that it tells nothing of the text.
"""


class Codec(RowCodec):
    """The form in which the rows of one journal are stored."""

    def __init__(self, folder: Path, cipher: Cipher | None) -> None:
        super().__init__(cipher)
        self.files = Files(folder / "values")

    def admit(self, store: Store) -> None:
        """Check that the journal can be read and written with this cipher, or without one.

        Raises: JournalError: AX510 it is damaged; and as ``new_proof``.
        """
        try:
            found = store.one("select proof from sealing")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise unusable(store.folder, f"{error}", "A backup may be needed.") from None
        stored = None if found is None else found[0]
        what = f"the journal in {store.folder}"
        proof = self.new_proof(stored, what=what, journal="SqliteJournal")
        if proof is None:
            return
        with store.writing() as connection:
            connection.execute("insert or replace into sealing (id, proof) values (1, ?)", (proof,))

    def stored(self, connection: sqlite3.Connection, run_id: str, row: EntryRow) -> Stored:
        """Return ``row`` as the table has it; the parts of a long body are stored here."""
        seq, kind, who, body = row
        if self.cipher is None:
            kept = body if len(body) <= LONG else put(connection, cut(body.encode()))
            return seq, kind, who, kept, row.crc
        raw = f"{who}\0{body}".encode()
        if len(raw) <= LONG:
            sealed = self.cipher.seal(raw, about_row(run_id, seq, kind))
            return seq, kind, "", sealed, 0
        names = put(connection, cut(raw, self.cipher.digest), self.cipher.seal)
        return seq, kind, "", names, crc32(names.encode())

    def row(
        self,
        connection: sqlite3.Connection,
        run_id: str,
        stored: Stored,
        known: dict[str, Part] | None = None,
    ) -> tuple[EntryRow, int]:
        """Return the row that was stored, and the checksum that it ought to have.

        Args:
            known: see ``parts.get``.
        Raises: JournalError: AX511 it is damaged; AX514 it was sealed with another key.
        """
        seq, kind, who, body, crc = stored
        cipher = self.cipher
        if isinstance(body, bytes):
            if cipher is None:
                raise damaged_error(run_id, seq, "it is encrypted")
            raw = cipher.open(body, about_row(run_id, seq, kind))
        elif body.startswith("#"):
            unseal = None if cipher is None else cipher.open
            raw = get(connection, body, lambda how: damaged_error(run_id, seq, how), unseal, known)
        else:
            return EntryRow(seq, kind, who, self.files.get(body, run_id, seq)), crc
        text = raw.decode("ascii", "replace")
        if cipher is None or text.startswith("{"):
            return EntryRow(seq, kind, who, text), crc
        if isinstance(body, str) and crc32(body.encode()) != crc:
            raise damaged_error(run_id, seq, "its checksum is wrong")
        who, _, body = text.partition("\0")
        row = EntryRow(seq, kind, who, body)
        return row, row.crc

"""Rows as the table has them: as text, or sealed where there is a cipher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axil_journals import Entry, EntryRow, RowCodec, about_row, damaged_error, row_entries
from axil_postgres.database import Database

Record = tuple[tuple[int, int], Sequence[Any]]
"""Epoch and number of the next entry of a run, and the rows of its entries."""
Stored = tuple[int, str, str, str | None, bytes | None, int]
"""Number, kind, who, body, sealed, checksum: of a sealed row who and body are empty."""


class Codec(RowCodec):
    """The form in which the rows of one journal are stored."""

    def admit(self, database: Database) -> None:
        """Check that the journal can be read and written with this cipher, or without one.

        Raises: JournalError, as ``new_proof``.
        """
        found = database.rows("select proof from sealing")
        stored = bytes(found[0][0]) if found else None
        proof = self.new_proof(stored, what="the journal", journal="PostgresJournal")
        if proof is not None:
            sql = (
                "insert into sealing values (1, %s) on conflict (id) do update set proof = "
                "excluded.proof"
            )
            database.rows(sql, (proof,))

    def stored(self, run_id: str, row: EntryRow) -> Stored:
        """Return ``row`` as the table has it."""
        seq, kind, who, body = row
        if self.cipher is None:
            return seq, kind, who, body, None, row.crc
        raw = f"{who}\0{body}".encode()
        return seq, kind, "", None, self.cipher.seal(raw, about_row(run_id, seq, kind)), 0

    def entries(self, run_id: str, stored: Any) -> list[tuple[int, Entry]]:
        """Return the entries of a row, with their numbers.

        Raises: JournalError: AX511 it is damaged; AX514 it was sealed with another key.
        """
        seq, kind, who, body, sealed, crc = stored
        if sealed is None:
            return row_entries(EntryRow(seq, kind, who, body), crc, run_id)
        if self.cipher is None:
            raise damaged_error(run_id, seq, "it is encrypted")
        text = self.cipher.open(bytes(sealed), about_row(run_id, seq, kind)).decode()
        who, _, body = text.partition("\0")
        row = EntryRow(seq, kind, who, body)
        return row_entries(row, row.crc, run_id)

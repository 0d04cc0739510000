"""Rows as the table has them: as text, or sealed where there is a cipher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from axil.plugin import JournalError
from axil_journals import (
    Cipher,
    Entry,
    EntryRow,
    RowCodec,
    RunObjects,
    about_row,
    damaged_error,
    row_entries,
)
from axil_postgres.database import Database

Record = tuple[tuple[int, int], Sequence[Any]]
"""Epoch and number of the next entry of a run, and the rows of its entries."""
Stored = tuple[int, str, str, str | None, bytes | None, int]
"""Number, kind, who, body, sealed, checksum: of a sealed row who and body are empty."""


LARGE: Final = 256 * 1024
"""Characters of a body beyond which it is an object, where objects are kept."""


class Codec(RowCodec):
    """The form in which the rows of one journal are stored."""

    def __init__(self, cipher: Cipher | None, objects: RunObjects | None = None) -> None:
        super().__init__(cipher)
        self.objects = objects

    def moved(self, run_id: str, rows: Sequence[EntryRow]) -> list[EntryRow]:
        """Store large bodies as objects, and return the rows, which name them: ``#DIGEST``.

        Raises: JournalError (AX512).
        """
        return [row if len(row.body) <= LARGE else self._moved(run_id, row) for row in rows]

    def _moved(self, run_id: str, row: EntryRow) -> EntryRow:
        if self.objects is None:
            return row
        try:
            digest = self.objects.put(run_id, row.body.encode(), set())
        except Exception as error:  # noqa: BLE001  # of many classes
            hint = "Check the object storage; then resume the run: what was safe before is."
            message = f"a large value cannot be stored: {error}."
            raise JournalError(message, id="AX512", hint=hint) from None
        return row._replace(body=f"#{digest}")

    def _fetched(self, run_id: str, row: EntryRow, crc: int) -> list[tuple[int, Entry]]:
        if row.body.startswith("#"):
            if self.objects is None:
                how = "it is an object, and the setting objects does not say where"
                raise damaged_error(run_id, row.seq, how)
            if row.crc != crc:
                raise damaged_error(run_id, row.seq, "its checksum is wrong")
            row = row._replace(body=self.objects.get(run_id, row.body[1:]).decode())
            crc = row.crc
        return row_entries(row, crc, run_id)

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
            return self._fetched(run_id, EntryRow(seq, kind, who, body), crc)
        if self.cipher is None:
            raise damaged_error(run_id, seq, "it is encrypted")
        text = self.cipher.open(bytes(sealed), about_row(run_id, seq, kind)).decode()
        who, _, body = text.partition("\0")
        row = EntryRow(seq, kind, who, body)
        return self._fetched(run_id, row, row.crc)

"""Rows as the table has them: as text, or sealed where there is a cipher."""

from __future__ import annotations

import json
from typing import Any, Final

from axil.plugin import JournalError
from axil_journals import Cipher, Entry, EntryRow, damaged_error, entry_row, row_entries
from axil_postgres.database import Database

Stored = tuple[int, str, str, str | None, bytes | None, int]
"""Number, kind, who, body, sealed, checksum: of a sealed row who and body are empty."""
_PROOF: Final = b"axil journal"
"""The text that is sealed in a journal so that a wrong key is noticed before anything is written.
"""


class Codec:
    """Writes and reads the rows of one journal."""

    def __init__(self, cipher: Cipher | None) -> None:
        self.cipher = cipher

    def admit(self, database: Database) -> None:
        """Check that the journal can be read and written with this cipher, or without one.

        Raises: JournalError: AX515 it is encrypted, and there is no cipher; AX513 there is no key;
        AX514 it is the wrong one.
        """
        found = database.rows("select proof from sealing")
        if self.cipher is None:
            if found:
                raise JournalError(
                    "the journal is encrypted.",
                    id="AX515",
                    hint="Set AXIL_JOURNAL_KEY or AXIL_JOURNAL_KEY_FILE, or give PostgresJournal "
                    "the cipher.",
                )
            return
        if found:
            self.cipher.open(bytes(found[0][0]), _PROOF)
            if self.cipher.is_current(bytes(found[0][0])):
                return
        sql = (
            "insert into sealing values (1, %s) on conflict (id) do update set proof = "
            "excluded.proof"
        )
        database.rows(sql, (self.cipher.seal(_PROOF, _PROOF),))

    def stored(self, run_id: str, row: EntryRow) -> Stored:
        """Return ``row`` as the table has it."""
        seq, kind, who, body = row
        if self.cipher is None:
            return seq, kind, who, body, None, row.crc
        raw = f"{who}\0{body}".encode()
        return seq, kind, "", None, self.cipher.seal(raw, _about(run_id, seq, kind)), 0

    def entries(self, run_id: str, stored: Any) -> list[tuple[int, Entry]]:
        """Return the entries of a row, with their numbers.

        Raises: JournalError: AX511 it is damaged; AX514 it was sealed with another key.
        """
        seq, kind, who, body, sealed, crc = stored
        if sealed is None:
            return row_entries(EntryRow(seq, kind, who, body), crc, run_id)
        if self.cipher is None:
            raise damaged_error(run_id, seq, "it is encrypted")
        text = self.cipher.open(bytes(sealed), _about(run_id, seq, kind)).decode()
        who, _, body = text.partition("\0")
        row = EntryRow(seq, kind, who, body)
        return row_entries(row, row.crc, run_id)

    def letter(self, run_id: str, entry: Entry) -> tuple[str | None, str | None, bytes | None]:
        """Return the name of an answer's question, and the body of a letter, plain or sealed."""
        name = str(entry.data["id"]) if entry.kind == "answer" else None
        body = entry_row(0, entry).body
        if self.cipher is None:
            return name, body, None
        name = name and self.cipher.digest(f"{run_id}\0{name}".encode()).hex()
        return name, None, self.cipher.seal(body.encode(), _about(run_id, 0, entry.kind))

    def opened(self, run_id: str, kind: str, body: str | None, sealed: Any) -> Entry:
        """Return the entry in a letter. Raises: JournalError (AX513, AX514)."""
        raw: Any = body
        if sealed is not None and self.cipher is not None:
            raw = self.cipher.open(bytes(sealed), _about(run_id, 0, kind))
        return Entry(kind, data=json.loads(raw))


def _about(run_id: str, seq: int, kind: str) -> bytes:
    return f"{run_id}\0{seq}\0{kind}".encode()


__all__ = ["Codec", "Stored"]

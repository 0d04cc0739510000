"""The encryption of rows and mail, for journals in databases."""

from __future__ import annotations

import json
from typing import Final

from axil.plugin import JournalError
from axil_journals.journal import Cipher, Entry
from axil_journals.rows import entry_row

_PROOF: Final = b"axil journal"
"""A text that a journal keeps sealed, so that a wrong key is noticed before anything is written."""


class RowCodec:
    """The part of a database's codec of rows that its tables have no influence on."""

    def __init__(self, cipher: Cipher | None) -> None:
        self.cipher = cipher

    def new_proof(self, stored: bytes | None, *, what: str, journal: str) -> bytes | None:
        """Check that a journal with this proof can be read and written with this cipher, or without
        one, and return the proof to be stored instead, if any.

        Args:
            what: the journal, in a message.
            journal: the name of its class.
        Raises: JournalError: AX515 it is encrypted, and there is no cipher; AX513 there is no key;
            AX514 it is the wrong one.
        """
        if self.cipher is None:
            if stored is None:
                return None
            key = "Set AXIL_JOURNAL_KEY or AXIL_JOURNAL_KEY_FILE"
            hint = f"{key}, or give {journal} the cipher."
            raise JournalError(f"{what} is encrypted.", id="AX515", hint=hint)
        if stored is not None:
            self.cipher.open(stored, _PROOF)
            if self.cipher.is_current(stored):
                return None
        return self.cipher.seal(_PROOF, _PROOF)

    def encode_mail(self, run_id: str, entry: Entry) -> tuple[str | None, str | bytes]:
        """Return the name of an answer's question, and the body of an entry, plain or sealed."""
        name = str(entry.data["id"]) if entry.kind == "answer" else None
        body = entry_row(0, entry).body
        if self.cipher is None:
            return name, body
        name = name and self.cipher.digest(f"{run_id}\0{name}".encode()).hex()
        return name, self.cipher.seal(body.encode(), about_row(run_id, 0, entry.kind))

    def decode_mail(self, run_id: str, kind: str, body: str | bytes) -> Entry:
        """Return the entry of a body. Raises: JournalError (AX513, AX514)."""
        if isinstance(body, bytes) and self.cipher is not None:
            body = self.cipher.open(body, about_row(run_id, 0, kind))
        return Entry(kind, data=json.loads(body))


def about_row(run_id: str, seq: int, kind: str) -> bytes:
    """Return what a row belongs to, for ``Cipher``."""
    return f"{run_id}\0{seq}\0{kind}".encode()

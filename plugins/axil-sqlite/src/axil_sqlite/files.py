"""Files of databases of version 1."""

from __future__ import annotations

import hashlib
from pathlib import Path

from axil_journals import damaged_error


class Files:
    """Large bodies of databases of version 1, each in a file named by its contents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, body: str, run_id: str, seq: int) -> str:
        """Return the value that ``body`` stands for. Raises: JournalError (AX511)."""
        if not body.startswith("@"):
            return body
        name = body[1:]
        try:
            raw = (self.folder / name[:2] / name).read_bytes()
        except OSError as error:
            how = f"its file cannot be read ({error.strerror or error})"
            raise damaged_error(run_id, seq, how) from None
        if hashlib.sha256(raw).hexdigest() != name:
            raise damaged_error(run_id, seq, "its file is not what was stored")
        return raw.decode()

    def is_used(self) -> bool:
        return next(self.folder.glob("??/*"), None) is not None

    def sweep(self, used: set[str]) -> int:
        """Remove files that no row names; return how many."""
        gone = 0
        for path in self.folder.glob("??/*"):
            if f"@{path.name}" not in used:
                path.unlink(missing_ok=True)
                gone += 1
        return gone

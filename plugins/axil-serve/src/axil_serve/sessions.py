"""Sessions of browsers, and sign-ins under way.

One file each, named by the digest of the cookie, in the folder of a server's files: so they outlive
a restart, and all servers with the folder have them. No cookie is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from axil_serve.errors import Busy

SESSIONS: Final = ".axil/sessions"
"""The folder, in that of a server's files. No workflow file is granted it."""
_MOST: Final = 20_000
"""Files that are kept at once."""


class Sessions:
    """A folder of short-lived facts."""

    def __init__(self, folder: str | Path, *, now: Callable[[], float] = time.time) -> None:
        """Store the folder; it is made when it is needed."""
        self._folder, self.now = Path(folder), now

    def put(self, data: Mapping[str, Any], seconds: float) -> str:
        """Keep data for so long, and return the secret by which they are had.

        Raises: Busy (AX964): too many are kept.
        """
        self._folder.mkdir(0o700, parents=True, exist_ok=True)
        if len(os.listdir(self._folder)) >= _MOST and self.tidy() >= _MOST:
            raise Busy("AX964", "too many sessions are open.", "Try again later.")
        secret = secrets.token_urlsafe(32)
        place = self._place(secret)
        text = json.dumps({**data, "until": self.now() + seconds})
        temporary = place.with_suffix(".new")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as opened:
            opened.write(text)
        os.replace(temporary, place)
        return secret

    def get(self, secret: str) -> dict[str, Any] | None:
        """Return what is kept for a secret; None: nothing, or not any more."""
        return self._read(self._place(secret)) if secret else None

    def take(self, secret: str) -> dict[str, Any] | None:
        """Return what is kept for a secret, once: of several takers only one has it."""
        place = self._place(secret)
        own = place.with_suffix(f".{secrets.token_hex(8)}")
        try:
            os.rename(place, own)
        except OSError:
            return None
        try:
            return self._read(own)
        finally:
            own.unlink(missing_ok=True)

    def remove(self, secret: str) -> None:
        """Forget what is kept for a secret."""
        self._place(secret).unlink(missing_ok=True)

    def tidy(self) -> int:
        """Remove what is over, and return how many are left."""
        left = 0
        for place in self._folder.iterdir():
            if not place.suffix:
                left += self._read(place) is not None
                continue
            with suppress(OSError):  # of a process that was killed while it wrote
                if place.stat().st_mtime < time.time() - 60:
                    place.unlink()
        return left

    def _read(self, place: Path) -> dict[str, Any] | None:
        try:
            found: Any = json.loads(place.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        data = cast("dict[str, Any]", found) if isinstance(found, dict) else dict[str, Any]()
        if self.now() < data.get("until", 0.0):
            return data
        place.unlink(missing_ok=True)
        return None

    def _place(self, secret: str) -> Path:
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / digest


__all__ = ["SESSIONS", "Sessions"]

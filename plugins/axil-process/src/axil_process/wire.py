"""The format of the pipes: JSON, each piece behind its length."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

LENGTH: Final = struct.Struct(">I")


def packed(message: Any) -> bytes:
    """Return a message as bytes."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body

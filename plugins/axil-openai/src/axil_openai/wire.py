"""Small translations that both APIs need."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any


def joined_base64(pieces: Sequence[str]) -> str:
    """Return what came in pieces, each of which may be padded, as one.

    >>> joined_base64(["YQ==", "YmM="])
    'YWJj'
    """
    data = b"".join(base64.b64decode(piece) for piece in pieces)
    return base64.b64encode(data).decode()


def data_url(part: Mapping[str, Any]) -> str:
    """Return a part's data as a URL."""
    return f"data:{part.get('media_type') or 'application/octet-stream'};base64,{part['data']}"


def file_name(part: Mapping[str, Any]) -> str:
    """Return a name for a file that is sent; the API insists on one."""
    suffix = mimetypes.guess_extension(str(part.get("media_type") or "")) or ""
    return str(part.get("name") or f"file{suffix}")

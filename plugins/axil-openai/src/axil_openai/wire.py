"""Small translations that both APIs need."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from typing import Any

from axil_agent.errors import PartError
from axil_agent.parts import label


def data_url(part: Mapping[str, Any]) -> str:
    """A part's data as a URL."""
    return f"data:{part.get('media_type') or 'application/octet-stream'};base64,{part['data']}"


def file_name(part: Mapping[str, Any]) -> str:
    """A name for a file that is sent; the API insists on one."""
    suffix = mimetypes.guess_extension(str(part.get("media_type") or "")) or ""
    return str(part.get("name") or f"file{suffix}")


def refuse(part: Mapping[str, Any], api: str) -> PartError:
    """The error of a part that cannot be sent in the way in which it is given."""
    source = next((key for key in ("url", "file_id", "data") if part.get(key)), "path")
    hint = "Give its bytes." if source in ("url", "file_id") else "Let an agent send it: it reads paths in the workspace of the run."
    return PartError("AX801", f"{api} cannot be sent {label(part)} by its {source}.", hint)


def sound(text: str) -> str:
    """A text that can be written as UTF-8: lone surrogates become question marks.

    >>> sound("a\\ud800b")
    'a?b'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text

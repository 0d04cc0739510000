"""Files as documents: a text is one, a PDF one for each page, a picture one found by its name.

A page's document is called ``handbook.pdf#page=3``; offsets count in the text of the page.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from axil.plugin import install_advice
from axil_models import ContextError, Document

log = logging.getLogger("axil.context")

PICTURES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""Names of files that are pictures, by how they end."""
_PDF: Final = ".pdf"
_GAP: Final = re.compile(r"[\W_]+")


def documents_of(data: bytes, where: str, encoding: str) -> list[Document]:
    """Read a file's bytes as documents.

    Raises: ContextError (AX890): it cannot be read; AX940: pypdf is needed, and not installed.
    """
    file = Path(where)
    suffix = file.suffix.lower()
    if suffix in PICTURES:
        name = _GAP.sub(" ", file.stem).strip() or file.name
        return [Document(text=name, uri=where, metadata={"path": where}, part=part_of(where))]
    if suffix == _PDF:
        texts = pages_of(data, where)
        if not any(text.strip() for text in texts):
            log.warning('"%s" contains no text (perhaps scanned): searches never find it.', where)
        about = {"path": where, "pages": len(texts)}
        return [
            Document(
                text=text,
                uri=f"{where}#page={number}",
                title=f"{file.name}, page {number}",
                metadata={**about, "page": number},
            )
            for number, text in enumerate(texts, 1)
        ]
    try:
        text = data.decode(encoding)  # line ends stay as they are: offsets count them
    except (UnicodeDecodeError, LookupError) as error:
        message = f'"{where}" is not {encoding}: {error}.'
        raise ContextError("AX890", message, "Set its encoding, or exclude the file.") from error
    return [Document(text=text, uri=where, metadata={"path": where})]


def part_of(where: str) -> dict[str, Any]:
    """Return a file as a content part that names it."""
    suffix = Path(where).suffix.lower()
    media_type = PICTURES.get(suffix) or ("application/pdf" if suffix == _PDF else "")
    return {
        "type": "image" if suffix in PICTURES else "file",
        "path": where,
        **({"media_type": media_type} if media_type else {}),
    }


def pages_of(data: bytes, where: str) -> Sequence[str]:
    """Return the text of each page of a PDF.

    Raises: ContextError (AX890): it cannot be read; AX940: pypdf is not installed.
    """
    try:
        import pypdf
    except ImportError as error:
        hint = f"{install_advice('axil-context[pdf]')}, or exclude PDF files."
        message = f'"{where}" is a PDF, and pypdf, which reads PDF files, is not installed.'
        raise ContextError("AX940", message, hint) from error
    try:
        return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages]
    except Exception as error:  # a broken file makes the library raise whatever it stumbles over
        why = str(error) or type(error).__name__
        message = f'"{where}" cannot be read as a PDF: {why}.'
        hint = "Check that it opens in a PDF viewer without a password."
        raise ContextError("AX890", message, hint) from error

"""Files as documents: a text is one, a PDF one for each page, a picture one found by its name.

A page's document is called ``handbook.pdf#page=3``; offsets count in the text of the page. Office
files and web pages are one document each, in Markdown; an e-mail is one, and one more for each
attachment that can be read: ``mail.eml#attachment=1/prices.xlsx``.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from axil.plugin import install_advice
from axil_context.retrieval.mail import mail_of
from axil_context.retrieval.office import FORMS, markdown_of
from axil_models import ContextError, Document

log = logging.getLogger("axil.context")

T = TypeVar("T")

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
_MEDIA_TYPES: Final = {**PICTURES, _PDF: "application/pdf"}
_PAGES: Final = (".html", ".htm", ".xhtml")
_MAIL: Final = ".eml"
TAKEN_APART: Final = frozenset({_PDF, *FORMS, *_PAGES, _MAIL})
"""Names of files that take long to read, by how they end."""
_TEXTS: Final = (".md", ".txt", ".rst", ".csv")
_MAILS_IN_MAILS: Final = 5
_CHARSET: Final = re.compile(rb"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
_DEPTH: Final = 200
"""Elements of a page that may be in each other; what is deeper is not read."""


def documents_of(data: bytes, where: str, encoding: str) -> list[Document]:
    """Read a file's bytes as documents.

    Raises: ContextError (AX890): it cannot be read; AX940: a library is needed, and not installed.
    """
    file = Path(where)
    suffix = file.suffix.lower()
    if suffix in PICTURES:
        name = _GAP.sub(" ", file.stem).strip() or file.name
        return [Document(text=name, uri=where, metadata={"path": where}, part=part_of(where))]
    if suffix == _PDF:
        return _of_pages(data, where)
    if suffix == _MAIL:
        return list(_of_mail(data, where, encoding))
    if form := FORMS.get(suffix):
        text = _read(where, "office", "office-oxide", lambda: markdown_of(data, form))
    elif suffix in _PAGES:
        text = page_text(data, where, encoding)
    else:
        text = _decoded(data, where, encoding)
    return [Document(text=text, uri=where, metadata={"path": where})]


def part_of(where: str) -> dict[str, object]:
    """Return a file as a content part that names it."""
    suffix = Path(where).suffix.lower()
    media_type = _MEDIA_TYPES.get(suffix)
    return {
        "type": "image" if suffix in PICTURES else "file",
        "path": where,
        **({"media_type": media_type} if media_type else {}),
    }


def pages_of(data: bytes, where: str) -> Sequence[str]:
    """Return the text of each page of a PDF.

    Raises: ContextError (AX890): it cannot be read; AX940: pypdf is not installed.
    """

    def read() -> list[str]:
        import pypdf

        return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages]

    return _read(where, "pdf", "pypdf", read)


def page_text(data: bytes, where: str, encoding: str) -> str:
    """Return a web page as Markdown, without what a browser does not show.

    Raises: ContextError (AX890): it cannot be read; AX940: html-to-markdown is not installed.
    """
    stated = _CHARSET.search(data[:2048])
    charset = stated[1].decode("ascii") if stated and b"\0" not in data[:100] else encoding
    page = _decoded(data, where, charset)

    def read() -> str:
        from html_to_markdown import ConversionOptions, convert

        options = ConversionOptions(
            extract_metadata=False,
            hidden_content="drop",
            exclude_selectors=['[aria-hidden="true"]', "svg"],
            inline_data_media="alt_text_only",
            max_depth=_DEPTH,
        )
        return convert(page, options).content or ""

    return _read(where, "html", "html-to-markdown", read)


def _read(where: str, extra: str, library: str, read: Callable[[], T]) -> T:
    kind = Path(where).suffix.lower().removeprefix(".").upper()
    try:
        return read()
    except ImportError as error:
        hint = f"{install_advice(f'axil-context[{extra}]')}, or exclude {kind} files."
        message = f'"{where}" is read by {library}, which is not installed.'
        raise ContextError("AX940", message, hint) from error
    except Exception as error:  # a broken file makes a library raise whatever it stumbles over
        why = (str(error) or type(error).__name__).rstrip(".")
        message = f'"{where}" cannot be read as {kind}: {why}.'
        hint = "Check that a program for such files opens it without a password."
        raise ContextError("AX890", message, hint) from error


def _decoded(data: bytes, where: str, encoding: str) -> str:
    try:
        return data.decode(encoding)  # line ends stay as they are: offsets count them
    except (UnicodeError, LookupError) as error:
        message = f'"{where}" is not {encoding}: {error}.'
        raise ContextError("AX890", message, "Set its encoding, or exclude the file.") from error


def _of_pages(data: bytes, where: str) -> list[Document]:
    texts = pages_of(data, where)
    if not any(text.strip() for text in texts):
        log.warning('"%s" contains no text (perhaps scanned): searches never find it.', where)
    about = {"path": where, "pages": len(texts)}
    return [
        Document(
            text=text,
            uri=f"{where}#page={number}",
            title=f"{Path(where).name}, page {number}",
            metadata={**about, "page": number},
        )
        for number, text in enumerate(texts, 1)
    ]


def _of_mail(data: bytes, where: str, encoding: str, depth: int = 1) -> Iterator[Document]:
    mail = _read(where, "", "Python", lambda: mail_of(data))
    text = mail.text or (page_text(mail.html, where, "utf-8") if mail.html else "")
    about: Mapping[str, object] = {
        "path": where,
        **{name.lower(): value for name, value in mail.headers.items()},
    }
    title = mail.headers.get("Subject")
    yield Document(text=f"{mail.head}\n\n{text}", uri=where, title=title, metadata=about)
    for number, (name, attached) in enumerate(mail.attachments, 1):
        suffix = Path(name).suffix.lower()
        place = f"{where}#attachment={number}/{Path(name).name}"
        if suffix == _MAIL and depth < _MAILS_IN_MAILS:
            found = list(_of_mail(attached, place, encoding, depth + 1))
        elif suffix in TAKEN_APART - {_MAIL} or suffix in _TEXTS:
            found = documents_of(attached, place, encoding)
        else:
            log.warning('the attachment "%s" of "%s" is not read.', name, where)
            continue
        for each in found:
            metadata = {**about, **each.metadata, "path": where, "attachment": Path(name).name}
            yield replace(each, metadata=metadata, title=each.title or Path(name).name)

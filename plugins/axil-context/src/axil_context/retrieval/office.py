"""Office files as Markdown, by office-oxide, without what their authors hid.

The library leaves hidden text of Word files out, and takes neither entities nor bombs. It does not
say which sheets, rows, columns, slides and shapes are hidden: they are taken out before it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final, Literal
from xml.etree import ElementTree
from zipfile import ZipFile

Form = Literal["docx", "pptx", "xlsx"]
FORMS: Final[Mapping[str, Form]] = {".docx": "docx", ".pptx": "pptx", ".xlsx": "xlsx"}
"""Names of Office files that are read, by how they end."""
_LARGEST: Final = 200_000_000
"""Bytes of an unpacked file."""
_TRUE: Final = ("1", "true", "on")
_SLIDE: Final = re.compile(r"ppt/slides/(slide\d+\.xml)")
_SHEET: Final = re.compile(r"xl/worksheets/[^/]+\.xml")
_COLUMN: Final = re.compile("[A-Z]+")


def markdown_of(data: bytes, form: Form) -> str:
    """Return an Office file as Markdown: headings, lists, tables, notes, alternative texts.

    Raises: ImportError: office-oxide is not installed; and whatever a broken file makes it raise.
    """
    from office_oxide import Document

    return Document.from_bytes(shown(data), form).to_markdown()


def shown(data: bytes) -> bytes:
    """Return an Office file without its hidden sheets, rows, columns, slides and shapes.

    Raises: ValueError: it is too large; BadZipFile; ElementTree.ParseError.
    """
    with ZipFile(BytesIO(data)) as given:
        size = sum(each.file_size for each in given.infolist())
        if size > _LARGEST:
            raise ValueError(f"it has {size} bytes when it is unpacked, more than {_LARGEST}")
        names = given.namelist()
        changed = {
            name: edited
            for name in names
            if (edit := _edit(name)) and (edited := _edited(given.read(name), edit))
        }
        if not changed:
            return data
        written = BytesIO()
        # a slide that is hidden has its notes beside it
        gone = {
            f"ppt/slides/_rels/{slide[1]}.rels"
            for name, text in changed.items()
            if (slide := _SLIDE.fullmatch(name)) and b"cSld" not in text
        }
        with ZipFile(written, "w") as kept:
            for name in dict.fromkeys(names):
                if name not in gone:
                    kept.writestr(name, changed.get(name) or given.read(name))
        return written.getvalue()


Edit = Callable[[ElementTree.Element], bool]


def _edit(name: str) -> Edit | None:
    """Return what takes hidden elements out of a part of this name, and says whether it did."""
    if name == "xl/workbook.xml":
        return _sheets
    if _SHEET.fullmatch(name):
        return _cells
    return _slide if _SLIDE.fullmatch(name) else None


def _edited(text: bytes, edit: Edit) -> bytes | None:
    # zeros: it is UTF-16
    if not any(mark in text for mark in (b"idden", b"show", b"\0")):
        return None
    root = ElementTree.fromstring(text)
    return ElementTree.tostring(root) if edit(root) else None


def _without(root: ElementTree.Element, is_hidden: Callable[[Any], bool]) -> bool:
    found = [(parent, each) for parent in root.iter() for each in parent if is_hidden(each)]
    for parent, each in found:
        parent.remove(each)
    return bool(found)


def _sheets(book: ElementTree.Element) -> bool:
    return _without(book, lambda each: each.get("state", "visible") in ("hidden", "veryHidden"))


def _cells(sheet: ElementTree.Element) -> bool:
    spans = [
        range(int(each.get("min", 0)), int(each.get("max", 0)) + 1)
        for each in sheet.findall("{*}cols/{*}col")
        if each.get("hidden") in _TRUE
    ]

    def is_hidden(each: ElementTree.Element) -> bool:
        if each.tag.endswith("}row"):
            return each.get("hidden") in _TRUE
        return each.tag.endswith("}c") and any(_number(each.get("r", "")) in span for span in spans)

    return _without(sheet, is_hidden)


def _number(cell: str) -> int:
    """Return the number of a cell's column: 28 for ``AB7``."""
    letters, number = _COLUMN.match(cell), 0
    for letter in letters[0] if letters else "":
        number = number * 26 + ord(letter) - 64
    return number


def _slide(slide: ElementTree.Element) -> bool:
    if slide.get("show") in ("0", "false", "off"):
        for each in list(slide):
            slide.remove(each)
        return True

    def is_hidden(shape: ElementTree.Element) -> bool:
        about = shape.find("./*/{*}cNvPr")
        return about is not None and about.get("hidden") in _TRUE

    return _without(slide, is_hidden)

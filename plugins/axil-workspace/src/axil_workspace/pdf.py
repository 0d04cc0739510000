"""A text in Markdown as a PDF, by ReportLab; needs ``axil-workspace[pdf]``."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from axil.plugin import install_advice
from axil_workspace.errors import ProgramFault, TextFault

if TYPE_CHECKING:
    from markdown_it.token import Token

_SIZES: Final = {"h1": 20, "h2": 16, "h3": 13, "h4": 12, "h5": 11, "h6": 11}
_MARKS: Final = {
    "strong_open": "<b>",
    "strong_close": "</b>",
    "em_open": "<i>",
    "em_close": "</i>",
    "s_open": "<strike>",
    "s_close": "</strike>",
    "link_close": "</a>",
    "softbreak": " ",
    "hardbreak": "<br/>",
}


def pdf_of(text: str, font: bytes = b"") -> bytes:
    """Return the bytes of the PDF.

    Args:
        font: a TrueType font, for letters that the built-in ones lack.
    Raises: ProgramFault (AX879): the extra ``pdf`` is not installed; TextFault (AX888): ``font`` is
        no TrueType font.
    """
    try:
        from markdown_it import MarkdownIt
        from reportlab.platypus import SimpleDocTemplate
    except ImportError as error:
        message = "a PDF needs ReportLab and markdown-it-py, which are not installed here."
        raise ProgramFault("AX879", message, install_advice("axil-workspace[pdf]")) from error
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    written = io.BytesIO()
    # the same text gives the same bytes
    document: Any = SimpleDocTemplate(written, title="Report", invariant=1)
    document.build(list(_Blocks(_registered(font)).of(tokens)))
    return written.getvalue()


def _registered(font: bytes) -> str:
    """Return the name of a font that was made known; empty: the built-in one."""
    if not font:
        return ""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFError, TTFont

    name = f"axil-{hashlib.sha256(font).hexdigest()[:16]}"
    try:
        made: Any = TTFont(name, io.BytesIO(font))
    except (TTFError, ValueError, IndexError, KeyError) as error:
        message = f"the font is not a TrueType font: {error}."
        raise TextFault("AX888", message, "Use a .ttf file.") from error
    metrics: Any = pdfmetrics
    metrics.registerFont(made)
    metrics.registerFontFamily(name, normal=name, bold=name, italic=name, boldItalic=name)
    return name


class _Blocks:
    """The blocks of a text, as what ReportLab lays out."""

    def __init__(self, font: str) -> None:
        from reportlab.lib.styles import ParagraphStyle

        kind: Any = ParagraphStyle
        base = font or "Helvetica"
        bold = font or "Helvetica-Bold"
        self._style = kind
        self._body = kind(
            "body",
            fontName=base,
            fontSize=10,
            leading=15,
            spaceAfter=6,
            wordWrap="CJK" if font else None,
        )
        self._code = kind("code", fontName=font or "Courier", fontSize=8, leading=10, spaceAfter=6)
        self._headings = {
            tag: kind(
                tag,
                parent=self._body,
                fontName=bold,
                fontSize=size,
                leading=size * 1.3,
                spaceBefore=12,
                keepWithNext=1,
            )
            for tag, size in _SIZES.items()
        }

    def of(self, tokens: Sequence[Token]) -> Iterator[Any]:
        from reportlab.platypus import HRFlowable, Paragraph, Preformatted, Spacer

        paragraph: Any = Paragraph
        items: list[str] = []
        """The marks before the items of the open lists."""
        numbers: list[int] = []
        tag, quoted, number = "", 0, 0
        while number < len(tokens):
            token = tokens[number]
            if token.type == "heading_open":
                tag = token.tag
            elif token.type == "heading_close":
                tag = ""
            elif token.type == "blockquote_open":
                quoted += 1
            elif token.type == "blockquote_close":
                quoted -= 1
            elif token.type in ("bullet_list_open", "ordered_list_open"):
                first = int(token.attrGet("start") or 1)
                numbers.append(first if token.type == "ordered_list_open" else 0)
            elif token.type in ("bullet_list_close", "ordered_list_close"):
                numbers.pop()
            elif token.type == "list_item_open":
                items = [f"{numbers[-1]}." if numbers[-1] else "•"]
                numbers[-1] += bool(numbers[-1])
            elif token.type == "inline":
                style = self._headings.get(tag) or self._inset(len(numbers) + quoted)
                bullet = items.pop() if items else None
                yield paragraph(_inline(token), style, bulletText=bullet)
            elif token.type in ("fence", "code_block", "html_block"):
                yield Preformatted(token.content.rstrip("\n"), self._code, maxLineLength=95)
            elif token.type == "hr":
                yield HRFlowable(width="100%")
            elif token.type == "table_open":
                end = number
                while tokens[end].type != "table_close":
                    end += 1
                yield self._table(tokens[number:end])
                yield Spacer(1, 6)
                number = end
            number += 1

    def _inset(self, depth: int) -> Any:
        """Return the style of a paragraph inside lists and quotes."""
        if not depth:
            return self._body
        return self._style(
            f"inset{depth}", parent=self._body, leftIndent=14 * depth, bulletIndent=14 * depth - 10
        )

    def _table(self, tokens: Sequence[Token]) -> Any:
        from reportlab.platypus import Paragraph, Table

        paragraph: Any = Paragraph
        rows: list[list[Any]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(paragraph(_inline(token), self._body))
        table: Any = Table
        grey = (0.75, 0.75, 0.75)
        return table(
            rows,
            style=[("GRID", (0, 0), (-1, -1), 0.5, grey), ("VALIGN", (0, 0), (-1, -1), "TOP")],
        )


def _inline(token: Token) -> str:
    """Return the text of a paragraph, with ReportLab's marks; no picture is fetched."""
    parts: list[str] = []
    for each in token.children or ():
        if each.type == "link_open":
            target = str(each.attrGet("href") or "")
            parts.append(f'<a href="{escape(target)}" color="blue">')
        elif each.type == "code_inline":
            parts.append(f"<font face='Courier'>{escape(each.content)}</font>")
        else:
            parts.append(_MARKS.get(each.type) or escape(each.content))
    return "".join(parts)

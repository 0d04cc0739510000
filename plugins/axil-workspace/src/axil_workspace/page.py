"""The text of a web page: what is read, without what is run or drawn."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

_UNREAD: Final = frozenset({"script", "style", "template", "noscript", "svg", "head"})
_BLOCKS: Final = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "br",
            "dd",
            "div",
            "dl",
            "dt",
            "fieldset",
            "figcaption",
        ),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr"),
        *("li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul"),
    }
)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._unread: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self.title
        elif tag == "body":
            self._unread.clear()
        elif tag in _UNREAD:
            self._unread.append(tag)
        elif tag in _BLOCKS and not self._unread:
            self.parts.append(
                "\n- "
                if tag == "li"
                else "\n" + "#" * int(tag[1]) + " "
                if re.fullmatch("h[1-6]", tag)
                else "\n"
            )

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._unread:
            while self._unread and self._unread.pop() != tag:
                pass
        elif tag in _BLOCKS and not self._unread:
            self.parts.append("\n")
        elif tag in ("td", "th") and not self._unread:
            self.parts.append("\t")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._unread:
            self.parts.append(re.sub(r"\s+", " ", data))


def text_of_page(html: str) -> str:
    """The title and the text, a line for each block.

    >>> body = "<h1>A &amp; B</h1><script>x()</script><p>one<br>two <ul><li>three</ul>"
    >>> text_of_page(f"<title>T</title>{body}")
    'T\\n\\n# A & B\\none\\ntwo\\n- three'
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = [
        re.sub(r"[ \xa0]+", " ", line).strip(" ") for line in "".join(reader.parts).split("\n")
    ]
    title = " ".join("".join(reader.title).split())
    return "\n".join(
        [*([title, ""] if title else []), *(line for line in lines if line.strip())]
    ).strip()

"""The text of a web page: what is read, without what is run or drawn.

A page is hostile input. The reader goes through it once, from left to right: each search begins
where the last one ended, and one that finds nothing ends the reading, as the HTML standard says of
a tag, a comment or a script that the page does not close. Open elements are counted by name, so
that a closing tag costs the same at any depth. Time and memory are linear in the size of the page.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable
from typing import Final

_RAW: Final = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed"})
"""Elements whose content has no tags: it ends at their own closing tag."""
_UNREAD: Final = frozenset({"template", "noscript", "svg", "head"})
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

_OPENS: Final = re.compile(r"<(?:!--|[!?]|/?[A-Za-z]|/)")
_NAME: Final = re.compile(r"[^\s/>]*+")
_MARK: Final = re.compile(r">|=\s*+([\"'])")
_CLOSES: Final = {tag: re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE | re.ASCII) for tag in _RAW}
_LONG_NUMBER: Final = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9A-Fa-f]{8,}+);?")
_BETWEEN: Final = 1_000
"""Tags between two looks at the clock."""


class _Reader:
    """The parts of a page so far, and the elements that are open."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.title = ""
        self._unread: list[str] = []
        self._counts: Counter[str] = Counter()

    def begin(self, tag: str) -> None:
        if tag == "body":
            self._unread.clear()
            self._counts.clear()
        elif tag in _UNREAD:
            self._unread.append(tag)
            self._counts[tag] += 1
        elif tag in _BLOCKS and not self._unread:
            self.parts.append(
                "\n- "
                if tag == "li"
                else "\n" + "#" * int(tag[1]) + " "
                if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit()
                else "\n"
            )

    def end(self, tag: str) -> None:
        if self._counts[tag]:
            while self._unread:
                last = self._unread.pop()
                self._counts[last] -= 1
                if last == tag:
                    break
        elif tag in _BLOCKS and not self._unread:
            self.parts.append("\n")
        elif tag in ("td", "th") and not self._unread:
            self.parts.append("\t")

    def text(self, text: str) -> None:
        if text and not self._unread:
            self.parts.append(re.sub(r"\s+", " ", _plain(text)))

    def raw(self, tag: str, text: str) -> None:
        if tag == "title":
            if not self.title and self._counts.total() == self._counts["head"]:
                self.title = _plain(text)
        elif tag == "textarea":
            self.text(text)


def text_of_page(page: str, is_over: Callable[[], bool] = lambda: False) -> str:
    """Return the title and the text, a line for each block.

    >>> body = "<h1>A &amp; B</h1><script>x()</script><p>one<br>two <ul><li>three</ul>"
    >>> text_of_page(f"<title>T</title>{body}")
    'T\\n\\n# A & B\\none\\ntwo\\n- three'

    Args:
        is_over: whether to stop; asked now and then.
    Raises: TimeoutError: it said so.
    """
    reader = _Reader()
    at = tags = 0
    while at < len(page):
        opens = _OPENS.search(page, at)
        reader.text(page[at : opens.start()] if opens else page[at:])
        if opens is None:
            break
        tags += 1
        if tags % _BETWEEN == 0 and is_over():
            raise TimeoutError
        if not opens[0][-1].isalpha():
            ends = "-->" if opens[0] == "<!--" else ">"
            # "<!-->" is a comment too
            closes = page.find(ends, opens.end() - (2 if opens[0] == "<!--" else 0))
            at = closes + len(ends) if closes >= 0 else len(page)
            continue
        at = _after_tag(page, opens.end())
        if at < 0:
            break
        name = _NAME.match(page, opens.end() - 1)
        tag = name[0].lower() if name else ""
        if opens[0][1] == "/":
            reader.end(tag)
        elif tag in _RAW:
            closes = _CLOSES[tag].search(page, at)
            reader.raw(tag, page[at : closes.start()] if closes else page[at:])
            at = closes.start() if closes else len(page)
        else:
            reader.begin(tag)
            if page[at - 2] == "/":
                reader.end(tag)
    lines = [
        re.sub(r"[ \xa0]+", " ", line).strip(" ") for line in "".join(reader.parts).split("\n")
    ]
    title = " ".join(reader.title.split())
    return "\n".join(
        [*([title, ""] if title else []), *(line for line in lines if line.strip())]
    ).strip()


def _after_tag(page: str, at: int) -> int:
    """Return where a tag ends that begins before this place; -1: it does not."""
    while mark := _MARK.search(page, at):
        if mark[1] is None:
            return mark.end()
        at = page.find(mark[1], mark.end()) + 1
        if not at:
            return -1
    return -1


def _plain(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))

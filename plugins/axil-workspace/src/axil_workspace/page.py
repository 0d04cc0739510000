"""The text of a web page: what is read, without what is run or drawn.

A page is hostile input. The reader goes through it once: each search begins where the last one
ended, and one that finds nothing ends the reading, as the HTML standard says of a tag, a comment or
a script that is not closed. Open elements are counted by name, so that a closing tag costs the same
at any depth. Time and memory are linear in the size of the page. Of the libraries that do this,
markdownify fails at some thousand open elements, and html2text takes minutes for ``<!--<!--…``.

Links, code and lists are written as Markdown has them; menus and hidden elements are left out.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urljoin

_RAW: Final = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed"})
"""Elements whose content has no tags: it ends at their own closing tag."""
_UNREAD: Final = frozenset({"template", "noscript", "svg", "head", "nav", "dialog"})
_HIDEABLE: Final = frozenset(
    {"article", "aside", "div", "details", "figure", "footer", "form", "header", "ol", "section"}
    | {"span", "table", "ul"}
)
"""Elements that a page has to close; a hidden one is not read."""
_BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset"),
        "figcaption",
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr"),
        *("li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul"),
    }
)

_OPENS: Final = re.compile(r"<(?:!--|[!?]|/?[A-Za-z]|/)")
_NAME: Final = re.compile(r"[^\s/>]*+")
_MARK: Final = re.compile(r">|=\s*+([\"'])")
_CLOSES: Final = {tag: re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE | re.ASCII) for tag in _RAW}
_LONG_NUMBER: Final = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9A-Fa-f]{8,}+);?")
_ATTRIBUTE: Final = re.compile(
    r"""([^\s=/>"']++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"']++)))?+|["'=/>]"""
)
_NOWHERE: Final = ("#", "javascript:", "data:", "mailto:")
"""Beginnings of links that lead to no other page."""
_SPACE: Final = "\0"
"""A space of code, while spaces of text are made one; a page cannot have it."""
_DEEPEST: Final = 8
"""Lists one in another that are shown as such."""
_BETWEEN: Final = 1_000
"""Tags between two looks at the clock."""


class _Reader:
    """The parts of a page so far, and the elements that are open."""

    def __init__(self, url: str) -> None:
        self.parts: list[str] = []
        self.title = ""
        self._url = url
        self._unread: list[str] = []
        self._counts: Counter[str] = Counter()
        self._lists: list[int] = []
        """The number of the last item of each open list; -1: it has no numbers."""
        self._link: tuple[int, str] | None = None
        """The position of the open link among the parts, and its target."""
        self._is_code = False

    def begin(self, tag: str, attributes: str) -> None:
        if tag == "body":
            self._unread.clear()
            self._counts.clear()
        elif tag in _UNREAD or self._counts[tag] or (tag in _HIDEABLE and _is_hidden(attributes)):
            self._unread.append(tag)
            self._counts[tag] += 1
        elif self._unread:
            return
        elif tag == "pre":
            self.parts.append("\n```\n")
            self._is_code = True
        elif tag == "code" and not self._is_code:
            self.parts.append("`")
        elif tag == "a":
            self._end_link()
            self._begin_link(attributes)
        elif tag in _BLOCKS:
            self.parts.append(self._block(tag))

    def _block(self, tag: str) -> str:
        if tag in ("ol", "ul"):
            self._lists.append(0 if tag == "ol" else -1)
        elif tag == "li":
            number = self._lists[-1] if self._lists else -1
            if number >= 0:
                self._lists[-1] = number = number + 1
            indent = _SPACE * 2 * min(len(self._lists) - 1, _DEEPEST)
            return f"\n{indent}{f'{number}.' if number > 0 else '-'} "
        elif len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            return "\n" + "#" * int(tag[1]) + " "
        return "\n"

    def end(self, tag: str) -> None:
        if self._counts[tag]:
            while self._unread:
                last = self._unread.pop()
                self._counts[last] -= 1
                if last == tag:
                    break
        elif self._unread:
            return
        elif tag == "pre":
            if self._is_code:
                self.parts.append("\n```\n")
            self._is_code = False
        elif tag == "code" and not self._is_code:
            self.parts.append("`")
        elif tag == "a":
            self._end_link()
        elif tag in _BLOCKS:
            if tag in ("ol", "ul") and self._lists:
                self._lists.pop()
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append("\t")

    def _begin_link(self, attributes: str) -> None:
        leads = _attributes(attributes).get("href", "").strip() if "href" in attributes else ""
        if leads and not leads.lower().startswith(_NOWHERE):
            with suppress(ValueError):  # what is no address stays as it is
                leads = urljoin(self._url, leads)
            self._link = len(self.parts), re.sub(r"\s", "", leads)
            self.parts.append("")

    def _end_link(self) -> None:
        if self._link is not None:
            begins, leads = self._link
            words = "".join(self.parts[begins:])
            if words.strip():
                spans = "\n" in words.strip()  # a link around whole blocks
                self.parts[begins] = "" if spans else "["
                self.parts.append(f" ({leads})" if spans else f"]({leads})")
            self._link = None

    def text(self, text: str) -> None:
        if text and not self._unread:
            plain = _plain(text)
            code = plain.replace("\r\n", "\n").replace(" ", _SPACE).replace("\t", _SPACE * 4)
            code = re.sub(r"\n(?=\n)", f"\n{_SPACE}", code)  # an empty line of code stays
            self.parts.append(code if self._is_code else re.sub(r"\s+", " ", plain))

    def raw(self, tag: str, text: str) -> None:
        if tag == "title":
            if not self.title and self._counts.total() == self._counts["head"]:
                self.title = _plain(text)
        elif tag == "textarea":
            self.text(text)


def text_of_page(page: str, is_over: Callable[[], bool] = lambda: False, url: str = "") -> str:
    """Return the title and the text, a line for each block.

    >>> body = "<h1>A &amp; B</h1><script>x()</script><p>one<br>two <ul><li>three</ul>"
    >>> text_of_page(f"<title>T</title>{body}")
    'T\\n\\n# A & B\\none\\ntwo\\n- three'

    >>> text_of_page('<ol><li><a href="/a">A</a><li>two</ol>', url="http://h/b")
    '1. [A](http://h/a)\\n2. two'

    Args:
        is_over: whether to stop; asked now and then.
        url: where the page is from; links are made whole with it.
    Raises: TimeoutError: it said so.
    """
    reader = _Reader(url)
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
            reader.begin(tag, page[opens.end() - 1 + len(tag) : at])
            if page[at - 2] == "/":
                reader.end(tag)
    reader.end("a")
    reader.end("pre")
    text, title = "".join(reader.parts), " ".join(reader.title.split())
    lines = [re.sub(r"[ \xa0]+", " ", line).strip(" ") for line in text.split("\n")]
    shown = [line.replace(_SPACE, " ").rstrip() for line in lines if line.strip()]
    return "\n".join([title, "", *shown] if title else shown).strip()


def _after_tag(page: str, at: int) -> int:
    """Return where a tag ends that begins before this place; -1: it does not."""
    while mark := _MARK.search(page, at):
        if mark[1] is None:
            return mark.end()
        at = page.find(mark[1], mark.end()) + 1
        if not at:
            return -1
    return -1


def _attributes(text: str) -> dict[str, str]:
    """Return the attributes of a tag, the first of each name."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(text):
        if name:
            found.setdefault(name.lower(), _plain("".join(values)))
    return found


def _is_hidden(text: str) -> bool:
    if "hidden" not in text and "none" not in text:
        return False
    stated = _attributes(text)
    style = "".join(stated.get("style", "").lower().split())
    return "hidden" in stated or "display:none" in style or stated.get("aria-hidden") == "true"


def _plain(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)).replace(_SPACE, "\ufffd")

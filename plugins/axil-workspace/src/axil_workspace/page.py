"""The text of a web page as Markdown: what a browser shows, by html-to-markdown.

A page is hostile input. Of the libraries that do this, markdownify fails at some thousand open
elements, and html2text takes minutes for ``<!--<!--…``. This one is held to a depth, because each
element adds to all lines that are in it.
"""

from __future__ import annotations

from typing import Any, Final

_DEPTH: Final = 200
"""Elements that may be in each other; what is deeper is not read."""
_HEAD: Final = 20_000
"""Characters in which a page's title is looked for."""


def text_of_page(page: str, url: str = "") -> str:
    """Return the title and the text: headings, lists, tables, code, links, alternative texts.

    >>> body = "<h1>A &amp; B</h1><script>x()</script><p hidden>no<p>one<ul><li>two</ul>"
    >>> text_of_page(f"<title>T</title>{body}")
    'T\\n\\n# A & B\\n\\none\\n\\n- two'

    >>> text_of_page('<ol><li><a href="/a">A</a><li>two</ol>', url="http://h/b")
    '1. [A](http://h/a)\\n2. two'

    Args:
        url: where the page is from; links are made whole with it.
    """
    from html_to_markdown import ConversionOptions, convert

    head: Any = convert(
        page[:_HEAD].partition("<body")[0], ConversionOptions(max_depth=_DEPTH)
    ).metadata
    options = ConversionOptions(
        extract_metadata=False,
        hidden_content="drop",
        exclude_selectors=['[aria-hidden="true"]', "svg"],
        inline_data_media="alt_text_only",
        max_depth=_DEPTH,
        base_url=url or None,
    )
    text = (convert(page, options).content or "").strip()
    title = " ".join(str(head.document.title or "").split())
    return "\n\n".join(each for each in (title, text) if each)

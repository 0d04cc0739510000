"""Tests of the pages: links lead somewhere, ids and names are described, examples run.

The rule for examples: the Python blocks of one page are one program. They run in order, sharing
their names, in a process of their own, in an empty folder, with warnings as errors. A block that is
only an outline opens with ```` ```python sketch ```` and is not run.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from tests.house import programs
from tests.house.checkout import all_pages, faults, shown, text_of

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)(?P=ticks) *$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
INLINE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
ERROR_ID = re.compile(r"\bAX\d{3}\b")


def prose(page: Path) -> str:
    """Return the page without its code."""
    return INLINE.sub("", FENCE.sub("", text_of(page)))


@cache
def anchors(page: Path) -> set[str]:
    """Return what `#…` may name on a page: its headings, as code hosts spell them, and explicit
    `<a id="…">`.
    """
    text = FENCE.sub("", text_of(page))
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(text)
    }
    return headings | set(re.findall(r'<a id="([^"]+)">', text))


def program(page: Path) -> str:
    blocks = [
        match for match in FENCE.finditer(text_of(page)) if match["info"].split() == ["python"]
    ]
    return "\n".join(
        re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE) for match in blocks
    )


def broken_links(page: Path) -> list[str]:
    broken = []
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


def test_every_link_leads_somewhere(pages):
    assert faults(pages, broken_links) == {}


def is_translated(page: Path) -> bool:
    """Return whether a page has the code of another one: test_translations.py."""
    return "zh" in page.parts or page.name.endswith(".zh.md")


@pytest.mark.parametrize(
    "page", [page for page in all_pages() if program(page) and not is_translated(page)], ids=shown
)
def test_the_examples_of_a_page_run(page, tmp_path):
    if "wordllama" in program(page):
        pytest.importorskip("wordllama", reason="it has no wheel for Python 3.14")
    code, errors = programs.run(program(page), tmp_path, timeout_seconds=600)
    assert code == 0, errors


def test_every_page_can_be_reached(root):
    """From docs/index.md, by following links."""
    index = root / "docs/index.md"
    reached, waiting = {index}, [index]
    while waiting:
        page = waiting.pop()
        for target in LINK.findall(prose(page)):
            file = (page.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".md" and file.exists() and file not in reached:
                reached.add(file)
                waiting.append(file)
    assert [
        str(file.relative_to(root))
        for file in sorted((root / "docs").rglob("*.md"))
        if file not in reached
    ] == []


def test_every_error_id_is_explained(root, sources):
    used = {each for file in sources for each in ERROR_ID.findall(file.read_text("utf-8"))}
    explained = set(
        re.findall(
            r"^#+ (AX\d{3})\b|^\| *(AX\d{3})\b",
            (root / "docs/reference/errors.md").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    assert used - {each for pair in explained for each in pair} == set()


def test_no_error_id_is_explained_twice(root):
    ids = re.findall(
        r"^(?:#+|\|) *(AX\d{3})\b",
        (root / "docs/reference/errors.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert sorted(ids) == sorted(set(ids))


def test_every_plugin_is_on_the_page_of_distributions(root, members):
    listed = re.findall(
        r"^\| \[([\w-]+)\]", text_of(root / "docs/reference/distributions.md"), re.MULTILINE
    )
    assert sorted(listed) == sorted(
        each.name for each in members if each.folder.parent.name != "contrib"
    )


def test_everything_a_member_registers_is_documented(root, member):
    pages = [member.folder / "README.md", *sorted((root / "docs/reference").rglob("*.md"))]
    words = set(re.findall(r"[\w.-]+", "\n".join(page.read_text("utf-8") for page in pages)))
    names = {name for table in member.entry_points.values() for name in table}
    assert {name for name in names if name not in words} == set()

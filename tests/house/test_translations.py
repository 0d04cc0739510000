"""Laws of the pages in Chinese: each has the code and the headings of the page it translates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.house.checkout import ROOT, shown, text_of
from tests.house.test_docs import FENCE, HEADING, LINK, prose
from tests.house.translations import INDEX, TRANSLATED, code, original, with_code


def levels(page: Path) -> list[int]:
    """Return the levels of the headings of a page."""
    return [len(found[0].split()[0]) for found in HEADING.finditer(FENCE.sub("", text_of(page)))]


def places(page: Path, *, as_written: bool = False) -> set[Path]:
    """Return the files that a page links to; a translated page as its original, where it is not
    wanted as written.
    """
    found = set()
    for target in LINK.findall(prose(page)):
        if ":" not in target and (name := target.partition("#")[0]):
            file = (page.parent / name).resolve()
            found.add(original(file) if file in TRANSLATED and not as_written else file)
    return found


def test_the_pages_that_newcomers_need_are_translated():
    tutorials = {page.name for page in (ROOT / "docs/tutorials").glob("[!i]*.md")}
    assert {page.name for page in (ROOT / "docs/zh/tutorials").glob("*.md")} == tutorials
    listed = re.findall(
        r"^- \[.*?\]\((.*?)\)", text_of(ROOT / "docs/how-to/index.md"), re.MULTILINE
    )
    assert [name for name in listed[:12] if not (ROOT / "docs/zh/how-to" / name).is_file()] == []
    assert set(TRANSLATED) - places(INDEX, as_written=True) == set()


@pytest.mark.parametrize("page", TRANSLATED, ids=shown)
def test_a_translation_has_the_code_and_the_headings_of_its_original(page):
    assert code(text_of(page)) == code(text_of(original(page))), "make manifests copies code"
    assert levels(page) == levels(original(page))


@pytest.mark.parametrize("page", TRANSLATED, ids=shown)
def test_a_translation_leads_where_its_original_leads(page):
    assert places(original(page)) - places(page) == set()


def test_the_code_of_an_original_is_copied():
    source = "# A\n\n```python\nnew()\n```\n\n    $ new\n\nend\n"
    text = "# 甲\n\n```python\nold()\n```\n\n    $ old\n\n完\n"
    assert with_code(text, source) == "# 甲\n\n```python\nnew()\n```\n\n    $ new\n\n完\n"
    assert with_code("# 甲\n", source) == "# 甲\n"

"""Laws of the site: it is built without a warning, has a page for each error, and fetches nothing.

Building takes half a minute: ``make docs`` does it; ``make test`` holds the rules of splitting.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.house.checkout import text_of

pytest.importorskip("material", reason="the site needs mkdocs-material")

from release import pages

building = pytest.mark.skipif(
    os.environ.get("AXIL_HYPOTHESIS") != "thorough", reason="part of make docs"
)
PAGE = """# Long

[one](other.md)

## axil_a

### Names

```
## axil_b
```

## Rest
"""


def test_a_long_page_is_split_at_its_headings_and_not_inside_code():
    kept, parts = pages.split(PAGE, "reference/long.md", re.compile("axil_"))
    assert list(parts) == ["reference/long/axil_a.md"]
    assert parts["reference/long/axil_a.md"].startswith("# axil_a\n\n## Names\n\n```\n## axil_b\n")
    assert "## Rest" in kept
    assert "- [`axil_a`](long/axil_a.md)" in kept


def test_every_error_has_a_page_that_says_what_to_do(root):
    text = text_of(root / "docs/reference/errors.md")
    written = pages.errors(text)
    ids = re.findall(r"^\| (AX\d{3}) \|", text, re.MULTILINE)
    assert sorted(written) == sorted(f"errors/{each}.md" for each in ids)
    assert "**Do:** correct the name; the message proposes" in written["errors/AX104.md"]
    assert "**For example**, at `edges[1]`: " in written["errors/AX179.md"]
    assert "```yaml\nversion: 1\n" in written["errors/AX179.md"]


class Fetched(HTMLParser):
    """The addresses that a page fetches when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a script, a style, an image or a frame."""
        names = {"script": "src", "img": "src", "iframe": "src", "link": "href"}
        self.found += [value or "" for name, value in attrs if name == names.get(tag)]


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", target],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return target


@building
def test_no_page_of_the_site_fetches_anything_from_another_host(site):
    for page in site.rglob("*.html"):
        looked = Fetched()
        looked.feed(page.read_text("utf-8"))
        assert [each for each in looked.found if re.match(r"(?:[a-z]+:)?//", each)] == [], page


@building
def test_the_site_has_what_it_promises(site, root):
    ids = {file.stem for file in (site / "errors").glob("*.html")}
    assert "AX104" in ids
    start = (site / "index.html").read_text("utf-8")
    assert "axil 0." in start  # the version
    assert "search" in start
    found = (site / "search/search_index.json").read_text("utf-8")
    assert "errors/AX104.html" in found
    assert "zh/" in found
    listed = re.findall(r"\]\(([^)]+\.md)\)", (site / "llms.txt").read_text("utf-8"))
    assert len(listed) > 80
    assert [each for each in listed if not (site / each).is_file()] == []


@building
def test_a_page_that_several_indexes_list_stands_in_the_tab_of_its_own_language(site):
    page = (site / "how-to/import-workflows.html").read_text("utf-8")
    [active] = re.findall(r"md-tabs__item--active.*?</li>", page, re.DOTALL)
    assert "How-to" in active

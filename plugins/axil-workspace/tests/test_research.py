"""Laws of research over files: sources that are kept, and a report in chapters."""

from __future__ import annotations

import asyncio
import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, strategies as st

from axil_models import tool_of
from axil_workspace.chapters import chapters_of, ordered, rewritten, with_chapter, without
from axil_workspace.errors import NothingThere, PathRefused, TextFault
from axil_workspace.research import Research, add_chapter

REPORT = "deep_research/report.md"
TEXT = """# One

first

## Part

inside one

# Two

## Part

inside two

```sh
# no heading
```

# Three
"""


@pytest.fixture
def do(use):
    """``do("name", **arguments)``: what a tool of research says."""
    return lambda name, /, **arguments: use(Research, name, **arguments)


@pytest.fixture
def report(place):
    place.write(REPORT, TEXT.encode())
    return lambda: place.read(REPORT).decode()


def test_every_tool_is_described_and_shows_no_context():
    tools = [tool_of(each) for each in asyncio.run(Research().tools())]
    assert [tool.name for tool in tools] == list(Research.provides)
    for tool in tools:
        assert tool.description
        assert "ctx" not in tool.parameters["properties"]
        assert all(each.get("description") for each in tool.parameters["properties"].values())


def test_a_source_is_kept_and_found_again(do):
    assert do("list_sources") == "No source is saved yet."
    do("save_source", url="http://a", title="A", abs="short", detail="long")
    assert do("list_sources") == "URL: http://a\nTitle: A\nAbstract: short"
    assert do("read_source", url="http://a").endswith("Abstract: short\nDetail: long")


def test_a_newer_text_for_a_source_keeps_what_it_is_important_for(do, place):
    do("save_source", url="http://a", title="A", abs="short", detail="long")
    do("mark_source", url="http://a", keys=["rain", "sun"])
    do("mark_source", url="http://a", keys=["snow", "rain"])
    do("save_source", url="http://a", title="B", abs="short", detail="long")
    assert "Important for: rain, sun, snow\nTitle: B" in do("read_source", url="http://a")
    kept = json.loads(place.read("deep_research/search_results.json"))
    assert kept["http://a"]["highlight_keys"] == ["rain", "sun", "snow"]


@pytest.mark.parametrize(("name", "more"), [("read_source", {}), ("mark_source", {"keys": ["x"]})])
def test_a_source_that_is_not_kept_is_an_error_and_makes_no_file(do, place, name, more):
    with pytest.raises(NothingThere, match="AX875"):
        do(name, url="http://b", **more)
    assert place.stat("deep_research/search_results.json") is None


def test_a_file_that_holds_no_sources_is_not_written_over(do, place):
    place.write("deep_research/search_results.json", b"[1]")
    with pytest.raises(TextFault, match="AX883"):
        do("save_source", url="http://a", title="A", abs="", detail="")
    assert place.read("deep_research/search_results.json") == b"[1]"


def test_sources_that_are_saved_at_once_are_all_kept(firing, called, place):
    def save(number: int) -> None:
        arguments = {"url": f"http://{number}", "title": "", "abs": "", "detail": ""}
        asyncio.run(called(Research, "save_source", arguments, firing))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(save, range(12)))
    kept = json.loads(place.read("deep_research/search_results.json"))
    assert sorted(kept) == sorted(f"http://{number}" for number in range(12))


def test_the_outline_has_no_lines_of_code_in_it(do, report):
    assert do("outline_report").splitlines() == ["# One", "## Part", "# Two", "## Part", "# Three"]


def test_a_chapter_is_read_with_its_line_breaks_and_without_its_heading(do, report):
    assert do("read_chapter", title="One") == "first\n\n## Part\n\ninside one"


def test_a_path_looks_for_a_title_inside_the_chapter_before_it(do, report):
    assert "inside two" in do("read_chapter", title="Two/Part")
    with pytest.raises(TextFault, match=r'AX882.*no chapter "Three/Part".*"One", "Part", "Two"'):
        do("read_chapter", title="Three/Part")


@pytest.mark.parametrize(
    ("title", "level", "outline"),
    [
        ("New", 1, "One Part Two Part Three New"),
        ("|New", 1, "New One Part Two Part Three"),
        ("One|New", 1, "One Part New Two Part Three"),
        ("Two/New", 2, "One Part Two Part New Three"),
        ("Two/|New", 2, "One Part Two New Part Three"),
        ("One/Part|New", 2, "One Part New Two Part Three"),
        ("Three/|New", 2, "One Part Two Part Three New"),
    ],
)
def test_a_new_chapter_goes_where_its_title_says(do, report, title, level, outline):
    do("add_chapter", title=title, level=level, content="text")
    assert " ".join(each.title for each in chapters_of(report().splitlines())) == outline
    assert f"\n\n{'#' * level} New\ntext\n" in f"\n\n{report()}"


@pytest.mark.parametrize("title", ["Nowhere/New", "Nowhere|New", "One/Nowhere|New", "One/", " "])
def test_a_chapter_that_cannot_be_placed_leaves_the_report_as_it_was(do, report, title):
    with pytest.raises(TextFault, match=r"AX882|AX888"):
        do("add_chapter", title=title, level=1, content="")
    assert report() == TEXT


def test_a_chapter_is_rewritten_extended_and_deleted(do, report):
    do("rewrite_chapter", title="One", content="new")
    do("extend_chapter", title="One", content="more\n")
    do("delete_chapter", title="Two")
    assert report() == "# One\nnew\n\nmore\n\n# Three\n"
    assert do("read_report") == report()


def test_chapters_change_places_and_all_else_stays(do, report):
    do("order_chapters", new_order=["Three", "One"])
    assert " ".join(do("outline_report").split()) == "# Three # Two ## Part # One ## Part"


@pytest.mark.parametrize("order", [["One", "One/Part"], ["Two", "Two"]])
def test_chapters_that_overlap_cannot_change_places(do, report, order):
    with pytest.raises(TextFault, match="AX882"):
        do("order_chapters", new_order=order)
    assert report() == TEXT


def test_files_are_inside_the_workspace(firing, called):
    made = add_chapter(add_chapter.Config(folder="../away"))
    arguments = {"title": "A", "level": 1, "content": ""}
    with pytest.raises(PathRefused):
        asyncio.run(called(made, "add_chapter", arguments, firing))


TITLES = st.lists(st.sampled_from("ABCDEF"), min_size=1, max_size=6, unique=True)


@given(TITLES, st.randoms(use_true_random=False))
def test_any_order_of_chapters_can_be_had(titles, random):
    lines: list[str] = []
    for title in titles:
        lines = with_chapter(lines, title, 1, f"text of {title}")
    wanted = random.sample(titles, len(titles))
    new = ordered(lines, wanted)
    assert [each.title for each in chapters_of(new)] == wanted
    assert sorted(filter(None, new)) == sorted(filter(None, lines))


@given(TITLES, st.data())
def test_what_happens_to_one_chapter_happens_to_no_other(titles, data):
    lines: list[str] = []
    for title in titles:
        lines = with_chapter(lines, title, 1, f"text of {title}")
    one = data.draw(st.sampled_from(titles))
    others = [f"text of {title}" for title in titles if title != one]
    for new in (without(lines, one), rewritten(lines, one, "")):
        assert [line for line in new if line.startswith("text")] == others


def pdf_text(data: bytes) -> str:
    pypdf: Any = pytest.importorskip("pypdf")
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)


def test_a_report_becomes_a_pdf(do, place):
    pytest.importorskip("reportlab")
    pytest.importorskip("markdown_it")
    content = (
        "A **bold** word, `code` & <angle> “quotes” ![picture](http://x/y.png).\n\n"
        "1. one\n2. two\n\n- dot\n\n> said\n\n```\nif a < b:\n```\n\n"
        "| h | i |\n|---|---|\n| cell | other |\n\n---\n\n[link](http://a/?b=1&c=2)"
    )
    do("add_chapter", title="Title", level=1, content=content)
    assert json.loads(do("export_report"))["path"] == "deep_research/report.pdf"
    text = pdf_text(place.read("deep_research/report.pdf"))
    for wanted in ("Title", "bold", "code & <angle> “quotes” picture", "two", "said", "cell"):
        assert wanted in text
    first = place.read("deep_research/report.pdf")
    do("export_report")
    assert place.read("deep_research/report.pdf") == first


def test_a_font_that_is_none_is_an_error(firing, called, place):
    pytest.importorskip("reportlab")
    pytest.importorskip("markdown_it")
    place.write("font.ttf", b"no font")
    place.write(REPORT, b"# A\n")
    made = Research(Research.Config(font="font.ttf"))
    with pytest.raises(TextFault, match="AX888"):
        asyncio.run(called(made, "export_report", {}, firing))


def test_an_empty_report_is_not_exported(do):
    with pytest.raises(NothingThere, match="AX875"):
        do("export_report")

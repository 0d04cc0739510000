"""Laws of the page and of a run that is exported as one file, without a browser."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from axil_serve.app import PAGE

from .hostile import HOSTILE, exported, hostile


class Reader(html.parser.HTMLParser):
    """The elements of a page with their attributes, and the text of its data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][1].get("id") == "exported":
            self.data += data


def test_an_exported_run_is_one_file_that_loads_nothing_and_holds_hostile_texts_as_data():
    page = Reader(exported(hostile(), {"name": HOSTILE}))
    names = [name for name, _ in page.elements]
    assert names.count("script") == 2
    assert "img" not in names
    assert "link" not in names
    assert not [a for _, attributes in page.elements for a in attributes if a in ("src", "href")]
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    data = json.loads(page.data)
    assert data["run"]["output"] == {HOSTILE: HOSTILE}
    assert data["states"]


def test_the_assets_of_the_page_are_small():
    place = files("axil_serve") / "page"
    assert {each.name for each in place.iterdir()} == set(PAGE)
    assert sum(len((place / name).read_bytes()) for name in PAGE) < 300_000


def test_the_page_reads_nothing_as_markup_and_asks_no_other_host():
    for name in PAGE:
        text = (files("axil_serve") / "page" / name).read_text("utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, (name, word)
        # imports from a variable or another host could not be kept from an export
        assert "import(" not in text.replace('import("./editor.js")', ""), name
        assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), name


def test_the_page_asks_for_everything_relative_to_its_own_address():
    """A proxy may serve it below a path."""
    for name in PAGE:
        text = (files("axil_serve") / "page" / name).read_text("utf-8")
        assert re.findall(r"""["'`(]/(?:page|v1)\b""", text) == [], name


def test_the_page_shows_the_chunks_that_count(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed; a browser shows the same in make check")
    at = {"activation": "a", "frame": [], "node": "a"}
    inner = {"activation": "b", "frame": ["a", "#inside"], "node": "b"}
    heard = [
        ("started", at),
        ("started", inner),
        ("chunk", {**at, "chunk": {"kind": "reasoning", "text": "Hm, "}}),
        ("chunk", {**at, "chunk": {"kind": "reasoning", "text": "leaves."}}),
        ("chunk", {**at, "chunk": {"kind": "tool_call", "name": "find"}}),
        ("chunk", {**at, "chunk": {"kind": "output", "fields": {}}}),
        ("chunk", {**at, "chunk": {"kind": "text", "text": '{"n": "no"}'}}),
        ("chunk", {**at, "chunk": {"kind": "reset", "chunks": 2}}),
        ("chunk", {**at, "chunk": {"kind": "output", "fields": {}}}),
        ("chunk", {**at, "chunk": {"kind": "text", "text": '{"n": 2}'}}),
        ("chunk", {**at, "chunk": {"kind": "output", "fields": {"n": 2}}}),
        ("chunk", {**inner, "chunk": {"kind": "text", "text": "Half"}}),
        ("chunk", {**at, "chunk": {"kind": "reset", "chunks": 0, "inside": True}}),
    ]
    (tmp_path / "run.mjs").write_bytes((files("axil_serve") / "page" / "run.js").read_bytes())
    script = tmp_path / "heard.mjs"
    script.write_text(
        'import { Live, replyOf } from "./run.mjs"\n'
        f"const live = new Live()\nfor (const [kind, data] of {json.dumps(heard)}) "
        "live.receive(kind, data)\n"
        "console.log(JSON.stringify([...live.firings.values()].map((f) => replyOf(f.chunks))))\n"
    )
    done = subprocess.run([node, script], capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [
        {
            "text": "",
            "fields": {"n": 2},
            "thoughts": "Hm, leaves.",
            "notes": [{"kind": "tool_call", "name": "find"}],
        },
        {"text": "", "fields": None, "thoughts": "", "notes": []},
    ]

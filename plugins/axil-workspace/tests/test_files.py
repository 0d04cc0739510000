"""Laws of the tools that work on files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from typing import Any

import pytest

from axil import ConfigError
from axil_models import tool_of
from axil_workspace.code import Code
from axil_workspace.errors import LimitExceeded, TextFault, WorkspaceError
from axil_workspace.files import Files, write_file
from axil_workspace.search import Budget, compiled
from axil_workspace.web import Web


@pytest.fixture
def files(use):
    """``files("name", **arguments)``: what a file tool gives, as data where it is data."""

    def call(name: str, /, **arguments: Any) -> Any:
        said = use(Files, name, **arguments)
        return (
            json.loads(said)
            if said[:1] in "{["
            and said[-1:] in "}]"
            and not said.endswith("]\n")
            and "[lines" not in said
            else said
        )

    return call


def test_every_tool_is_described_and_shows_no_context():
    tools = [tool_of(each) for each in asyncio.run(Files().tools())]
    assert [tool.name for tool in tools] == list(Files.provides)
    for tool in tools:
        assert tool.description
        assert "ctx" not in tool.parameters["properties"]
        assert [
            name
            for name, shown in tool.parameters["properties"].items()
            if not shown.get("description")
        ] == []


def test_a_tool_can_be_shown_under_another_name_and_does_the_same(firing, place, called):
    kind = write_file(write_file.Config(names={"write_file": "save_file"}))
    asyncio.run(called(kind, "save_file", {"path": "a.txt", "content": "x"}, firing))
    assert place.read("a.txt") == b"x"
    (tool,) = [tool_of(each) for each in asyncio.run(kind.tools())]
    assert list(tool.parameters["properties"]) == ["path", "content", "encoding", "mode"]


def test_a_set_gives_what_is_asked_of_it_and_nothing_else():
    made = Files(Files.Config(only=("read_text", "list_files")))
    assert [each.__name__ for each in asyncio.run(made.tools())] == ["read_text", "list_files"]
    with pytest.raises(ConfigError, match=r'AX887.*Did you mean "read_text"'):
        Files(Files.Config(only=("read_txt",)))


def test_files_are_written_listed_and_described(files):
    files("write_file", path="src/a.py", content="x = 1\n")
    files("write_file", path="src/a.py", content="y = 2\n", mode="append")
    files("create_folder", path="src/deep/er")
    files("write_file", path=".hidden/b", content="")
    assert files("list_files")["files"] == [
        {"path": "src", "kind": "folder"},
        {"path": "src/a.py", "kind": "file", "size": 12},
        {"path": "src/deep", "kind": "folder"},
        {"path": "src/deep/er", "kind": "folder"},
    ]
    assert [each["path"] for each in files("list_folder", path="src")["files"]] == [
        "src/a.py",
        "src/deep",
    ]
    assert files("list_files", limit=1, include_hidden=True) == {
        "files": [{"path": ".hidden", "kind": "folder"}],
        "truncated": True,
    }
    reported = files("describe_file", path="src/a.py")
    assert (reported["size"], reported["lines"], reported["media_type"]) == (12, 2, "text/x-python")
    assert reported["sha256"] == hashlib.sha256(b"x = 1\ny = 2\n").hexdigest()


def test_a_part_of_a_text_says_where_it_goes_on(files):
    files("write_file", path="t", content="".join(f"line {n}\n" for n in range(1, 101)))
    assert (
        files("read_text", path="t", limit=6)
        == "line 1\n[characters 0 to 6 of 792; continue with offset=6]"
    )
    assert files("read_lines", path="t", start_line=99, line_count=5, inline_line_numbers=True) == (
        "99: line 99\n100: line 100\n[lines 99 to 100 of 100]"
    )
    assert (
        files("read_lines", path="t", line_count=1)
        == "line 1\n[lines 1 to 1 of 100; continue with start_line=2]"
    )
    with pytest.raises(TextFault, match=r"AX882.*line 101 does not exist"):
        files("read_lines", path="t", start_line=101)


@pytest.mark.parametrize(
    "data", ["é\n".encode(), "é\n".encode("utf-16"), b"\xef\xbb\xbf" + "é\n".encode(), b"\xe9\n"]
)
def test_an_edit_keeps_the_encoding(files, place, data):
    place.write("t", data)
    files("edit_file", path="t", old_text="é", new_text="ü")
    assert files("read_text", path="t") == "ü\n"
    place.update("t", lambda new: new)
    files("edit_file", path="t", old_text="ü", new_text="é")
    assert place.read("t") == data


def test_an_edit_is_exact_or_nothing(files, place):
    files("write_file", path="t", content="a = 1\nb = 1\n")
    for old, fault in (
        ("c = 1", "does not contain"),
        ("= 1", "2 times"),
        ("", "nothing can be replaced"),
        ("a  =  1", "Line 1 resembles"),
    ):
        with pytest.raises(TextFault, match=f"AX882.*{fault}"):
            files("edit_file", path="t", old_text=old, new_text="x")
    assert place.read("t") == b"a = 1\nb = 1\n"
    assert (
        files("edit_file", path="t", old_text="= 1", new_text="= 2", everywhere=True)["replaced"]
        == 2
    )
    assert place.read("t") == b"a = 2\nb = 2\n"


def test_an_edit_of_a_file_with_crlf_takes_what_a_model_writes(files, place):
    place.write("t", b"a\r\nb\r\nc\r\n")
    files("edit_file", path="t", old_text="a\nb", new_text="x\ny")
    assert place.read("t") == b"x\r\ny\r\nc\r\n"
    files("edit_lines", path="t", start_line=3, replacement="z\nzz")
    assert place.read("t") == b"x\r\ny\r\nz\r\nzz\r\n"


@pytest.mark.parametrize(
    ("arguments", "becomes"),
    [
        ({"start_line": 2, "replacement": "B"}, "a\nB\nc"),
        ({"start_line": 2, "end_line": 3}, "a"),
        ({"start_line": 1, "end_line": 0, "replacement": "0"}, "0\na\nb\nc"),
        (
            {"start_line": 4, "end_line": 3, "replacement": "d", "ensure_trailing_newline": True},
            "a\nb\nc\nd\n",
        ),
        ({"start_line": 1, "end_line": 3, "replacement": "x\ny", "newline": "crlf"}, "x\r\ny"),
    ],
)
def test_lines_are_replaced_inserted_and_removed(files, place, arguments, becomes):
    place.write("t", b"a\nb\nc")
    files("edit_lines", path="t", **arguments)
    assert place.read("t").decode() == becomes


def test_lines_that_are_not_there_are_not_replaced(files, place):
    place.write("t", b"a\nb\nc")
    for start, end in ((5, 5), (2, 4), (3, 1)):
        with pytest.raises(TextFault, match="AX882"):
            files("edit_lines", path="t", start_line=start, end_line=end)
    assert place.read("t") == b"a\nb\nc"


def test_a_search_tells_file_line_and_what_is_around(files, place):
    files("write_file", path="src/a.py", content="import os\n\ndef main():\n    pass\n")
    files("write_file", path="notes.md", content="Main thing\n")
    place.write("blob", b"\0main")
    found = files("search_files", pattern=r"\bmain\b", before_context=1, after_context=1)
    assert [(each["file"], each["line"]) for each in found["matches"]] == [
        ("notes.md", 1),
        ("src/a.py", 3),
    ]
    assert (
        found["matches"][1] | {"column": 5, "before": [""], "after": ["    pass"]}
        == found["matches"][1]
    )
    assert (found["searched_files"], found["passed_over"]) == (2, 1)
    assert (
        files("search_files", pattern="main", case_sensitive=True)["matches"][0]["file"]
        == "src/a.py"
    )
    assert files("search_files", pattern="main()", use_regex=False)["matches"][0]["line"] == 3
    assert files("search_files", pattern="main", globs=["**/*.md"])["searched_files"] == 1
    assert (
        files("search_files", pattern="main", exclude_globs=["*.md", "blob"])["searched_files"] == 1
    )
    assert files("search_files", pattern="main", max_results=1)["limited"] is True


HUGE = "((((a{100}){100}){100}){100}){100}"


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "x" * 1001, "(?P<n>a)(?P<n>", HUGE])
def test_a_pattern_that_is_none_is_reported(files, pattern):
    with pytest.raises(TextFault, match="AX880"):
        files("search_files", pattern=pattern)


def test_a_file_that_is_too_large_to_be_read_is_passed_over_by_a_search(called, firing, place):
    place.write("large", b"main" * 100)
    place.write("small", b"main")
    few = Files(Files.Config(file_bytes=100))
    found = json.loads(asyncio.run(called(few, "search_files", {"pattern": "main"}, firing)))
    assert [each["file"] for each in found["matches"]] == ["small"]


def test_no_pattern_holds_a_search_up(firing, place, called):
    place.write("t", b"a" * 40 + b"!")
    quick = Files(Files.Config(search_seconds=0.2))
    with pytest.raises(LimitExceeded, match="AX880"):
        asyncio.run(called(quick, "search_files", {"pattern": "(?:a{1,1000}){1,1000}b"}, firing))


def test_the_time_of_a_search_is_that_of_all_its_files():
    times = iter([0.0, 1.0, 4.0, 6.0])
    budget = Budget(5, lambda: next(times))
    pattern = compiled("a")
    assert budget.matched(pattern, "a")
    assert budget.matched(pattern, "a")
    with pytest.raises(LimitExceeded):
        budget.matched(pattern, "a")


def test_a_call_that_would_do_more_the_second_time_says_so():
    tools = {
        tool.name: tool
        for each in (Files(), Code(), Web())
        for tool in map(tool_of, asyncio.run(each.tools()))
    }
    assert {name for name, tool in tools.items() if tool.effects == "external"} == {
        "run_code",
        "run_command",
        "edit_lines",
    }
    assert {name for name, tool in tools.items() if tool.effects == "none"} == {
        "http_get",
        "read_web_page",
    }
    assert (
        tools["write_file"].effects_of({"path": "a", "content": "b", "mode": "append"})
        == "external"
    )
    assert tools["write_file"].effects_of({"path": "a", "content": "b"}) == "idempotent"
    assert (
        tools["edit_file"].effects_of({"path": "a", "old_text": "b", "new_text": "bb"})
        == "external"
    )
    assert (
        tools["edit_file"].effects_of({"path": "a", "old_text": "b", "new_text": "c"})
        == "idempotent"
    )
    (run_code,) = asyncio.run(
        Code(Code.Config(only=("run_code",), effects={"run_code": "idempotent"})).tools()
    )
    assert tool_of(run_code).effects == "idempotent"


def test_an_attachment_is_loaded_by_its_name(files, place):
    os.makedirs(place.root / "attachments")
    (place.root / "attachments/in.csv").write_text("a,b\n")
    (place.root / "attachments/in.png").write_bytes(b"\x89PNG\0")
    assert files("load_file", path_or_id="in.csv") == "a,b\n"
    (place.root / "attachments/in.zip").write_bytes(b"PK\0")
    assert files("load_file", path_or_id="in.zip")["media_type"] == "application/zip"


def test_what_a_model_can_be_shown_is_shown(use, place):
    place.write("leaf.png", b"\x89PNG\r\n\x1a\n\0")
    place.write("plan.pdf", b"%PDF-1.4\0")
    reported, part = use(Files, "load_file", path_or_id="leaf.png")
    assert json.loads(reported["text"])["size"] == 9
    assert part == {
        "type": "image",
        "media_type": "image/png",
        "name": "leaf.png",
        "data": "iVBORw0KGgoA",
    }
    assert use(Files, "load_file", path_or_id="plan.pdf")[1]["type"] == "file"
    place.write("plain.pdf", b"%PDF-1.4 of letters alone")  # as some programs write them
    assert use(Files, "load_file", path_or_id="plain.pdf")[1]["type"] == "file"
    small = Files(Files.Config(seen_bytes=8))
    assert json.loads(use(small, "load_file", path_or_id="leaf.png"))["shown"] is False


def test_what_is_missing_is_reported_and_may_be_no_fault(files):
    for name, arguments in (
        ("read_text", {"path": "x"}),
        ("delete_path", {"path": "x"}),
        ("copy_path", {"src": "x", "dst": "y"}),
        ("move_path", {"src": "x", "dst": "y"}),
        ("describe_file", {"path": "x"}),
        ("edit_lines", {"path": "x", "start_line": 1}),
    ):
        with pytest.raises(WorkspaceError, match="AX875"):
            files(name, **arguments)
    assert files("delete_path", path="x", missing_ok=True) == {"path": "x", "deleted": False}
    with pytest.raises(TextFault, match="AX883"):
        files("write_file", path="x", content="\ud800")
    with pytest.raises(TextFault, match="AX883"):
        files("write_file", path="x", content="x", encoding="klingon")
    with pytest.raises(TextFault, match="AX883"):
        files("write_file", path="x", content="x", encoding="utf-8\0")
    files("write_file", path="x", content="x")
    with pytest.raises(TextFault, match="AX883"):
        files("read_text", path="x", encoding="utf-8\0")

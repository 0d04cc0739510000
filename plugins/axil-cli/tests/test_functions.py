"""Laws of ``--functions``: whose functions files may name, and what is refused."""

from __future__ import annotations

import pytest


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own/edge").mkdir(parents=True)
    (tmp_path / "own/helper_of_ours.py").write_text('WORD = "yes"\n', "utf-8")
    (tmp_path / "own/_private.py").write_text("raise RuntimeError\n", "utf-8")
    text = (
        "from ..helper_of_ours import WORD\n\ndef says_it(text: str) -> bool:\n    return text "
        "== WORD\n\ndef _hidden(): pass\n"
    )
    (tmp_path / "own/edge/more.py").write_text(text, "utf-8")
    (tmp_path / "own/shout.py").write_text(
        "def shout(text: str) -> str:\n    return text.upper()\n", "utf-8"
    )
    return tmp_path / "own"


@pytest.fixture
def file(flow):
    edges = [{"from": "a", "to": "b", "condition": "says_it", "process": "shout"}]
    return flow([{"id": "a", "type": "say", "config": {"text": "yes"}}, "b echo"], edges, end=["b"])


def test_functions_of_a_folder_are_what_files_name(axil, file, folder):
    done = axil("run", file, "--allow-code", "--functions", folder)
    assert (done.code, done.out, done.err) == (0, "YES\n", "")


def test_functions_of_the_edge_may_take_the_state_as_devalls_do(axil, flow, folder):
    (folder / "edge/devall.py").write_text(
        "def knows(text, _context=None):\n    return _context.get('no') is None\n", "utf-8"
    )
    (folder / "processors.py").write_text(
        "def uppercase_payload(data, _context):\n"
        "    return data.upper() + str(len(_context)) + '-'\n"
        "def cut(data, width=4):\n    return data[:width]\n",
        "utf-8",
    )
    named = {"type": "function", "config": {"name": "uppercase_payload"}}
    file = flow(
        [{"id": "a", "type": "say", "config": {"text": "yes"}}, "b echo", "c echo"],
        [
            {"from": "a", "to": "b", "condition": "knows", "process": named},
            {"from": "b", "to": "c", "process": "cut"},
        ],
        end=["c"],
    )
    done = axil("run", file, "--allow-code", "--functions", folder)
    assert (done.code, done.out) == (0, "YES0\n")


@pytest.mark.parametrize(
    ("given", "carried"),
    [
        (
            '{"content": text.upper(), "metadata": {"k": 1}, "drop": False}',
            {"content": "YES", "k": 1},
        ),
        ('{"metadata": {"k": 1}}', {"content": "yes", "k": 1}),
        ('Message("YES", {"k": 1})', {"content": "YES", "k": 1}),
        ('{"content": "x", "drop": True}', None),
    ],
)
def test_a_processor_of_devall_gives_content_metadata_or_drops(axil, flow, folder, given, carried):
    (folder / "edge_processor").mkdir()
    (folder / "edge_processor/own.py").write_text(
        "from typing import Any\n"
        "class Message:\n"
        "    def __init__(self, *given): self.given = given\n"
        "    def to_dict(self): return {'role': 'user', **dict(zip(('content', 'metadata'), "
        "self.given))}\n"
        f"def own(text: str, _context: Any) -> Any:\n    return {given}\n",
        "utf-8",
    )
    named = {"type": "function", "config": {"name": "own"}}
    file = flow(
        [{"id": "a", "type": "say", "config": {"text": "yes"}}, "b echo"],
        [{"from": "a", "to": "b", "process": named}],
        end=["b"],
    )
    done = axil("run", file, "--allow-code", "--functions", folder, "--format", "json")
    found = [
        {name: m[name] for name in m if name in ("content", "k")} for m in done.data["messages"]
    ]
    assert found == ([] if carried is None else [carried])


def test_a_check_knows_them_too(axil, file, folder):
    assert axil("check", file).code == 2
    assert axil("check", file, "--allow-code", "--functions", folder).code == 0


def test_functions_are_code_and_need_leave(axil, file, folder):
    done = axil("run", file, "--functions", folder)
    assert (done.code, done.out) == (2, "")
    assert (
        "AX700 --functions: functions are code, which this run does not allow. Add --allow code"
        in done.err
    )


def test_a_function_is_taken_instead_of_an_installed_one_with_a_note(axil, flow, folder):
    (folder / "yes.py").write_text("def yes(text):\n    return False\n", "utf-8")
    file = flow(
        [{"id": "a", "type": "say", "config": {"text": "yes"}}, "b echo"],
        [{"from": "a", "to": "b", "condition": "yes"}],
    )
    done = axil("run", file, "--allow-code", "--functions", folder)
    assert (done.code, done.out) == (0, "")
    assert f"note: conditions of {folder} are taken instead of installed ones: yes" in done.err
    (folder / "yes.py").rename(folder / "tools.py")
    assert axil("run", file, "--allow-code", "--functions", folder).out == "yes\n"


def test_two_functions_of_one_name_are_an_error(axil, file, folder):
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text("def same(text):\n    return False\n", "utf-8")
    done = axil("run", file, "--allow-code", "--functions", folder)
    assert (done.code, done.out) == (2, "")
    assert "AX884" in done.err
    assert '"same" is defined in' in done.err


@pytest.mark.parametrize(
    ("name", "text", "reported"),
    [("empty", None, "no function"), ("broken", "import no_such_module_of_ours\n", "AX884")],
)
def test_a_folder_that_gives_nothing_is_an_error(axil, file, tmp_path, name, text, reported):
    (tmp_path / name).mkdir()
    if text is not None:
        (tmp_path / name / "f.py").write_text(text, "utf-8")
    done = axil("run", file, "--allow-code", "--functions", tmp_path / name)
    assert (done.code, done.out) == (2, "")
    assert reported in done.err


def test_a_folder_that_is_not_there_is_an_error(axil, file, tmp_path):
    assert (
        "is not a folder"
        in axil("run", file, "--allow-code", "--functions", tmp_path / "nowhere").err
    )


def test_a_run_that_goes_on_takes_them_again(axil, flow, folder, tmp_path):
    pytest.importorskip("axil_sqlite", reason="runs are kept by axil-sqlite")
    edges = [{"from": "a", "to": "b", "process": "shout"}]
    file, kept = flow(["a askt", "b echo"], edges, end=["b"]), tmp_path / "kept"
    ways = ("--allow-code", "--functions", folder, "--journal", kept)
    assert axil("run", file, *ways, "--run-id", "r").code == 3
    assert axil("runs", "answer", "r", "ten", *ways).out == "THE ANSWER IS TEN\n"

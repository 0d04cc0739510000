"""Laws of texts and lists that grow: a file that doubles them in every round ends soon, and
small.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GIGABYTE = 1 << 30


def doubling(tmp_path: Path, process: dict[str, object], seconds: float = 60) -> str:
    """Return the path of a file whose cycle doubles its text, if ``process`` does."""
    graph = {
        "start": ["a"],
        "end": ["b"],
        "cycle_limits": {"*": {"rounds": "unlimited"}},
        "limits": {"seconds": seconds},
        "nodes": [{"id": "a", "type": "passthrough"}, {"id": "b", "type": "passthrough"}],
        "edges": [
            {"from": "a", "to": "b", "process": process},
            {"from": "b", "to": "a"},
        ],
    }
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"version": 1, "graph": graph}), "utf-8")
    return str(file)


def started(file: str, given: str = "x" * 1000) -> subprocess.Popen[str]:
    """Start the command on a file, with its usual journal and a gigabyte of addresses."""
    pytest.importorskip("axil_cli")
    return subprocess.Popen(
        [sys.executable, "-m", "axil_cli.main", "run", file, "--input", given],
        cwd=Path(file).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE)),
    )


TWICE = [
    {"type": "regex_extract", "config": {"pattern": "(?s).+", "template": "{match}{match}"}},
    {"type": "template", "config": {"template": "{text}{text}"}},
]


@pytest.mark.third
@pytest.mark.parametrize("process", TWICE, ids=["of an extraction", "of a template"])
def test_a_text_that_doubles_in_every_round_is_an_error(tmp_path: Path, process: dict[str, object]):
    with started(doubling(tmp_path, process)) as child:
        _, err = child.communicate(timeout=50)
    assert "AX639" in err
    assert child.returncode == 1


def test_a_cycle_that_only_turns_hears_a_signal(tmp_path: Path):
    process = {"type": "template", "config": {"template": "{text}"}}
    with started(doubling(tmp_path, process)) as child:
        while not (tmp_path / ".axil" / "runs.db").exists():  # its run begins
            assert child.poll() is None, child.communicate()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=30)
    assert child.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM)


def test_a_cycle_that_only_turns_ends_at_its_limit_of_time(tmp_path: Path):
    process = {"type": "template", "config": {"template": "{text}"}}
    with started(doubling(tmp_path, process, seconds=1)) as child:
        _, err = child.communicate(timeout=30)
    assert "AX415" in err
    assert child.returncode == 4


def several(name: str, **more: object) -> dict[str, object]:
    """Return a node that passes on all that came."""
    return {"id": name, "type": "passthrough", "config": {"only_last_message": False}, **more}


def doubled(tmp_path: Path, width: int, **edge: object) -> str:
    """Return the path of a file whose cycle sends a list of messages on ``width`` ways and back."""
    ways = [f"b{number}" for number in range(width)]
    graph = {
        "start": ["a"],
        "end": ["a"],
        "cycle_limits": {"*": {"rounds": "unlimited"}},
        "limits": {"seconds": 60},
        "nodes": [several("a"), *map(several, ways)],
        "edges": [
            {"from": source, "to": target, **edge}
            for way in ways
            for source, target in (("a", way), (way, "a"))
        ],
    }
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"version": 1, "graph": graph}), "utf-8")
    return str(file)


def mapped(tmp_path: Path) -> str:
    """Return the path of a file that makes each of many items thousands of times as long."""
    longer = {"type": "regex_extract", "config": {"pattern": ".+", "template": "{match}" * 9000}}
    body = {
        "start": ["i"],
        "end": ["j"],
        "nodes": [several("i"), several("j")],
        "edges": [{"from": "i", "to": "j", "process": longer}],
    }
    split = {"type": "regex", "config": {"pattern": "x" * 100}}
    node = {"id": "a", "type": "map", "config": {"body": body, "split": split}}
    graph = {"start": ["a"], "end": ["a"], "nodes": [node], "edges": []}
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"version": 1, "graph": graph}), "utf-8")
    return str(file)


@pytest.mark.third
@pytest.mark.parametrize(
    ("made", "given"),
    [
        (lambda folder: doubled(folder, 2), "x"),  # many small messages
        (lambda folder: doubled(folder, 2), "x" * 1000),
        (lambda folder: doubled(folder, 1, keep_message=True), "x" * 1000),
        (lambda folder: doubled(folder, 60), "x" * 1000),  # much on many edges at once
        (lambda folder: doubled(folder, 300), "x"),
        (mapped, "x" * 9000),
    ],
    ids=["letters", "two", "kept", "sixty", "wide", "mapped"],
)
def test_lists_that_double_end_in_little_memory(tmp_path: Path, made: Any, given: str):
    with started(made(tmp_path), given) as child:
        _, err = child.communicate(timeout=50)
    assert "AX639" in err
    assert child.returncode == 1

"""Laws of texts that grow: a file that doubles a text in every round ends soon, and small."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

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


def started(file: str) -> subprocess.Popen[str]:
    """Start the command on a file, with the journal that it has by default and less memory."""
    pytest.importorskip("axil_cli")
    return subprocess.Popen(
        [sys.executable, "-m", "axil_cli.main", "run", file, "--input", "x" * 1000],
        cwd=Path(file).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 * GIGABYTE, 2 * GIGABYTE)),
    )


TWICE = [
    {"type": "regex_extract", "config": {"pattern": "(?s).+", "template": "{match}{match}"}},
    {"type": "template", "config": {"template": "{text}{text}"}},
]


@pytest.mark.parametrize("process", TWICE, ids=lambda each: each["type"])
def test_a_text_that_doubles_in_every_round_is_an_error(tmp_path: Path, process: dict[str, object]):
    with started(doubling(tmp_path, process)) as child:
        _, err = child.communicate(timeout=50)
    assert "AX639" in err
    assert child.returncode == 1
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < GIGABYTE


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

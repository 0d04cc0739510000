"""Files in DevAll's vocabulary give each node what the real executor gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .devall_files import FILES
from .test_chatdev import _environment, noted, registry, run  # noqa: F401  # fixtures

REAL = json.loads((Path(__file__).parent / "devall_files.json").read_text(encoding="utf-8"))
WITHIN = {
    "a graph within": {"B", "I", "J"},
    "a map beside what is the same": {"B"},
    "a map over parts": {"B"},
}
"""Nodes whose firings here are within another one's."""


@pytest.mark.parametrize("name", sorted(REAL))
def test_each_node_is_given_what_the_real_executor_gives_it(name, tmp_path):
    case = {
        "yaml": json.dumps(FILES[name]),
        "input": "TASK",
        "human_replies": [],
        "stub_replies": {"rules": [], "default": "OK"},
    }
    found = run(case, tmp_path)
    assert found.error is None
    given = {
        node: [sorted(each["text"] for each in got) for got, _ in rows]
        for node, rows in noted(found.log).items()
    }
    for node, firings in REAL[name].items():
        if node not in WITHIN.get(name, ()):
            assert given[node] == [sorted(each) for each in firings], node


def test_all_files_are_compared():
    assert set(FILES) == set(REAL)

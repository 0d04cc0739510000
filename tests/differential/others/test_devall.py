"""Random files in DevAll's vocabulary: what differs, differs by a rule that divergences.md has.

``devall.json`` holds a digest of what the real executor (ChatDev's commit b23950d0) makes of each;
it runs one by one what it would run at once. Where it is installed,
``AXIL_DEVALL=/path/to/its/python:/path/to/its/checkout`` runs it again.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.differential import ways

from . import devall_model as model, devall_program as program

pytest.importorskip("axil_files")

from .devall_here import here  # axil-files is there

KINDS = {"acyclic": 1_000, "cyclic": 2_000}
FEW = {"acyclic": 30, "cyclic": 60}
RECORDED = json.loads((Path(__file__).parent / "devall.json").read_text("utf-8"))
DIFFER: dict[str, dict[tuple[str, ...], int]] = {
    "acyclic": {},
    "cyclic": {
        (model.CLOSED,): 284,
        (model.BESIDE,): 14,
        (model.INNER,): 9,
        (model.CLOSED, model.BESIDE): 6,
        (model.AT_ONCE,): 4,
        (model.CLOSED, model.AT_ONCE): 2,
    },
}
"""Files of which axil makes something else, by the rules of DevAll that axil has not."""
EXAMPLES: dict[str, list[list[Any]]] = {
    model.CLOSED: [["n0", "n1", []], ["n0", "n2", []], ["n1", "n0", ["data"]]],
    model.BESIDE: [
        *(["n0", "n1", []], ["n0", "n2", []], ["n1", "n0", []]),
        *(["n2", "n0", []], ["n1", "n3", []]),
    ],
    model.AT_ONCE: [
        *(["n0", "n1", []], ["n0", "n2", []], ["n1", "n2", ["data"]]),
        *(["n2", "n0", []], ["n2", "n3", []]),
    ],
    model.INNER: [
        *(["n0", "n1", []], ["n0", "n2", []], ["n1", "n2", ["data"]], ["n2", "n3", []]),
        *(["n3", "n0", []], ["n3", "n1", []], ["n3", "n2", []]),
    ],
}
"""The smallest files that differ by one rule alone."""


def graphs(kind: str) -> Iterator[tuple[int, program.Graph]]:
    """Give the files that are tried, with their seeds."""
    for seed in range((KINDS if ways.LONG else FEW)[kind]):
        yield seed, program.random_graph(seed, cyclic=kind == "cyclic")


def reasons(graph: program.Graph) -> tuple[str, ...]:
    """Return the fewest rules of DevAll that turn what axil makes into what DevAll makes."""
    there = model.made(graph)
    every = model.RULES
    sets = [some for count in range(len(every) + 1) for some in combinations(every, count)]
    return next(some for some in sets if model.made(graph, some) == there)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_give_what_devall_gave(kind: str):
    assert len(RECORDED[kind]) == KINDS[kind]
    for seed, graph in graphs(kind):
        assert program.digest(model.made(graph)) == RECORDED[kind][seed], seed


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_rules_that_axil_has_not_they_give_what_axil_gives(kind: str, tmp_path: Path):
    run = here(tmp_path)
    for seed, graph in graphs(kind):
        assert run(graph) == model.made(graph, ()), seed


@pytest.mark.parametrize("kind", KINDS)
def test_what_differs_differs_by_rules(kind: str):
    found = Counter(some for _, graph in graphs(kind) if (some := reasons(graph)))
    assert dict(found) == DIFFER[kind] or not ways.LONG
    assert set(found) <= set(DIFFER[kind])


@pytest.mark.parametrize("rule", EXAMPLES)
def test_each_rule_has_a_smallest_file_that_differs_by_it_alone(rule: str, tmp_path: Path):
    edges = EXAMPLES[rule]
    names = sorted({name for edge in edges for name in edge[:2]})
    graph = {"nodes": dict.fromkeys(names, "says"), "edges": edges}
    assert reasons(graph) == (rule,)
    assert here(tmp_path)(graph) == model.made(graph, ()) != model.made(graph)


@pytest.mark.skipif("AXIL_DEVALL" not in os.environ, reason="the real DevAll is not here")
@pytest.mark.parametrize("kind", KINDS)
def test_devall_gives_what_it_gave(kind: str):
    python, checkout = os.environ["AXIL_DEVALL"].split(":")
    ran = subprocess.run(
        [python, program.__file__, checkout],
        input="\n".join(json.dumps(graph) for _, graph in graphs(kind)),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = ran.stdout.splitlines()
    assert [program.digest(json.loads(line)) for line in lines] == RECORDED[kind][: len(lines)]

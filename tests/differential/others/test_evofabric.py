"""Random programs in EvoFabric's names: what differs, differs by a rule that divergences.md has.

``evofabric.json`` holds a digest of what the real EvoFabric 0.1.4 makes of each. Where it is
installed, ``AXIL_EVOFABRIC=/path/to/its/python`` runs it again.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.differential import ways

from . import evofabric_model as model, evofabric_program as program

pytest.importorskip("evofabric.absent")

KINDS = {"acyclic": 2_000, "cyclic": 300}
FEW = {"acyclic": 60, "cyclic": 20}
RECORDED = json.loads((Path(__file__).parent / "evofabric.json").read_text("utf-8"))
DIFFER = {"acyclic": 658, "cyclic": 170}
"""Programs of which axil makes something else."""


def graphs(kind: str) -> Iterator[tuple[int, program.Graph]]:
    """Give the programs that are tried, with their seeds."""
    for seed in range((KINDS if ways.LONG else FEW)[kind]):
        yield seed, program.random_graph(seed, cyclic=kind == "cyclic")


def here(graph: program.Graph) -> program.Outcome:
    """Give what axil makes of a program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(json.dumps(asyncio.run(program.outcome(graph))))


@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_give_what_evofabric_gave(kind: str):
    assert len(RECORDED[kind]) == KINDS[kind]
    for seed, graph in graphs(kind):
        assert program.digest(model.theirs(graph)[0]) == RECORDED[kind][seed], seed


@pytest.mark.parametrize("kind", KINDS)
def test_what_differs_has_its_reason_in_a_rule(kind: str):
    differ = 0
    for seed, graph in graphs(kind):
        found = model.reasons(graph, here)
        assert found is not None, (seed, program.smallest(graph, is_without_reason))
        differ += found != ()
    assert not ways.LONG or differ == DIFFER[kind]


def is_without_reason(graph: program.Graph) -> bool:
    """Say whether axil differs by no rule."""
    return model.reasons(graph, here) is None


def test_an_acyclic_program_comes_to_what_axils_rules_say():
    for seed, graph in graphs("acyclic"):
        assert here(graph) == model.ours(graph), seed


def test_a_rule_that_is_no_ones_is_no_reason():
    graph = program.random_graph(0)
    assert model.reasons(graph, lambda _: {"status": "done", "seen": [], "state": None}) is None


@pytest.mark.skipif("AXIL_EVOFABRIC" not in os.environ, reason="the real EvoFabric is not here")
@pytest.mark.parametrize("kind", KINDS)
def test_evofabric_gives_what_it_gave(kind: str):
    lines = [json.dumps(graph) for _, graph in graphs(kind)]
    ran = subprocess.run(
        [os.environ["AXIL_EVOFABRIC"], program.__file__],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LOGURU_LEVEL": "CRITICAL"},
    )
    for seed, line in enumerate(ran.stdout.splitlines()):
        found: dict[str, Any] = json.loads(line)
        if found["status"] == "RuntimeError":
            found["state"] = None
        assert program.digest(found) == RECORDED[kind][seed], seed

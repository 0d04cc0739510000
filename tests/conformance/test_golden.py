"""The sentences of the semantics, one small graph each, as data: what fires, what it sees, what
comes of it.

A case names its edges; every node appends its name to ``log`` and writes what the case says. Each
case runs in several ways that must not matter: inline, with bodies that finish in shuffled orders,
with and without a journal.

Keys of a case: ``edges`` (``"a->b"`` or ``["a->b", {when, until, from, when_even, when_odd,
trigger, group, filter}]``), ``join``, ``writes``, ``merge``, ``graphs``, ``limits``, ``at_limit``,
``input``; and what is expected: ``fired``, ``count``, ``skipped``, ``sees`` (the ``log`` that a
node saw at each firing), ``log``, ``x``, ``n``, ``ten``, ``status``, ``ends``, ``error``.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from axil import AxilError, Graph, LimitReached, RootGraph, run_sync
from axil_journals import MemoryJournal

from .recorded import Watch

GOLDEN = Path(__file__).parent / "golden"
FILES = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(GOLDEN.glob("*.json"))}
CASES = [
    pytest.param(case, id=f"{name}-{number}")
    for name, reported in FILES.items()
    for number, case in enumerate(reported)
]
WAYS = {"inline": None, "shuffled 1": 1, "shuffled 2": 2, "shuffled 3": 3}


class Fields(BaseModel):
    log: Annotated[list[str], "append"] = []
    x: str = ""
    n: Annotated[int, "sum"] = 0
    ten: Annotated[int, "sum"] = 10


class Made:
    """A case's graph, with bodies that finish in an order drawn from ``seed``, and what they
    saw.
    """

    def __init__(self, case: dict[str, Any], seed: int | None) -> None:
        self.sees: dict[str, list[tuple[Any, list[str]]]] = {}
        self.chance = random.Random(seed)
        self.seed = seed
        self.graph = RootGraph("golden", state=Fields, cycles="allow")
        self.fill(self.graph, case)
        self.graph.build()

    def fill(self, graph: Graph, case: dict[str, Any]) -> None:
        edges = [(edge, {}) if isinstance(edge, str) else edge for edge in case["edges"]]
        for name in dict.fromkeys(
            name for edge, _ in edges for name in edge.split("->") if name != "@entry"
        ):
            inner = case.get("graphs", {}).get(name)
            if inner is not None:
                self.fill(graph.create_node(Graph, name=name, state=Fields, cycles="allow"), inner)
                continue
            merge = case.get("merge", {}).get(name)
            options = {
                "join": case.get("join", {}).get(name),
                "merge": None if merge is None else lambda states, merge=merge: merge,
            }
            graph.create_node(
                self.body(name, case.get("writes", {}).get(name, {})),
                name=name,
                inline=self.seed is None,
                **options,
            )
        for edge, said in edges:
            source, target = edge.split("->")
            keep = said.get("filter")
            graph.create_edge(
                source,
                target,
                when=condition(said),
                trigger=said.get("trigger", True),
                group=said.get("group", ""),
                state_filter=None
                if keep is None
                else lambda state, keep=keep: {name: getattr(state, name) for name in keep},
            )
        for entry, rounds in case.get("limits", {}).items():
            graph.set_cycle_limit(entry, rounds, case.get("at_limit", "limited"))

    def body(self, name: str, writes: dict[str, Any]) -> Any:
        def work(state: Any, task: Any) -> Any:
            self.sees.setdefault(name, []).append((task.ordinal, list(state.log)))
            return {"log": [name], **writes}

        async def work_later(state: Any, task: Any) -> Any:
            for _ in range(self.chance.randrange(6)):
                await asyncio.sleep(0)
            return work(state, task)

        return work if self.seed is None else work_later


def condition(said: dict[str, Any]) -> Any:
    if "when" in said:
        return lambda state: said["when"]
    for word, holds in {
        "until": lambda count, most: count < most,
        "from": lambda count, most: count >= most,
    }.items():
        if word in said:
            name, most = said[word]
            return lambda state, holds=holds: holds(list(state.log).count(name), most)
    for word, odd in (("when_even", 0), ("when_odd", 1)):
        if word in said:
            return lambda state, odd=odd: list(state.log).count(said[word]) % 2 == odd
    return None


@pytest.mark.filterwarnings("ignore::axil.GraphWarning")  # nodes without in-edges are cases, too
@pytest.mark.parametrize("journal", [None, MemoryJournal], ids=["bare", "journaled"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_a_sentence_holds_whatever_finishes_first(case, way, journal):
    made = Made(case, WAYS[way])
    watch = Watch()
    options = {"observers": [watch], "journal": journal() if journal else None}
    if "error" in case:
        with pytest.raises(AxilError, match=case["error"]):
            run_sync(made.graph.run(case.get("input"), **options))
        return
    result = run_sync(made.graph.run(case.get("input"), **options))
    assert result.status == case.get("status", "done")
    assert isinstance(result.error, LimitReached) == (result.status == "limited")
    fired = Counter(name for name in watch.bodies if name not in case.get("graphs", {}))
    for name in ("fired", "count"):
        if name in case:
            assert fired == Counter(case[name])
    if "skipped" in case:
        assert {activation.node for activation in watch.skipped} == set(case["skipped"])
    for name, logs in case.get("sees", {}).items():
        assert [log for _, log in sorted(made.sees.get(name, []))] == logs
    for name in ("x", "n", "ten"):
        if name in case:
            assert getattr(result.state, name) == case[name]
    if "log" in case:
        assert list(result.state.log) == case["log"]
    if "ends" in case:
        assert [tally.ends for tally in result.cycles.values()] == [case["ends"]]


def test_every_case_names_its_sentence():
    assert all(case.values[0]["sentence"].endswith(".") for case in CASES)

"""The table of pairs: rows in which every two values that may meet do meet, and what each comes to.

The array is greedy and deterministic: the next row is the one that has most of what is missing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, pairwise, product
from operator import or_
from typing import Any
from unittest.mock import patch

from tests.differential import graphs, model
from tests.journeys.pair_parts import LARGE

Row = dict[str, str]
Pair = frozenset[tuple[str, str]]
SERVED = ("serve", "openai", "a2a", "agui")
FACTORS = {
    "front": ("run", "python", *SERVED, "mcp", "batch", "worker"),
    "journal": ("off", "memory", "normal", "full", "postgres"),
    "engine": ("none", "local", "worker", "temporal"),
    "body": ("inline", "async", "thread", "process", "ray"),
    "happening": (
        *("done", "failed", "paused", "limited"),
        *("cancelled", "killed", "tiny", "large"),
    ),
    "graph": ("fields", "messages", "typed", "devall", "team"),
}


def pairs_of(row: Mapping[str, str]) -> set[Pair]:
    """Return the pairs that a row covers."""
    return {frozenset(pair) for pair in combinations(row.items(), 2)}


def covering(
    factors: Mapping[str, Sequence[str]], allowed: Callable[[Row], bool]
) -> tuple[list[Row], set[Pair]]:
    """Return rows, and the pairs that no allowed row has.

    >>> rows, never = covering({"a": "12", "b": "12", "c": "12"}, lambda row: row != {})
    >>> len(rows), never
    (4, set())
    """
    values = [(name, value) for name, several in factors.items() for value in several]
    bits = {
        frozenset(pair): 1 << at
        for at, pair in enumerate(p for p in combinations(values, 2) if p[0][0] != p[1][0])
    }
    whole = (dict(zip(factors, each, strict=True)) for each in product(*factors.values()))
    found = [(sum(map(bits.__getitem__, pairs_of(row))), row) for row in whole if allowed(row)]
    random.Random(0).shuffle(found)  # so that what is free in a row is not always the first value
    possible = missing = reduce(or_, (mask for mask, _ in found))
    rows: list[Row] = []
    while missing:
        mask, row = max(found, key=lambda each: (each[0] & missing).bit_count())
        rows.append(row)
        missing &= ~mask
    return rows, {pair for pair, bit in bits.items() if not bit & possible}


def _meets(**values: tuple[str, ...]) -> Callable[[Row], bool]:
    return lambda row: all(row[name] in several for name, several in values.items())


IMPOSSIBLE: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    (
        "a server has its own engine",
        _meets(front=SERVED, engine=("none", "worker", "temporal")),
    ),
    (
        "a command executes its runs itself",
        _meets(front=("run", "batch", "mcp"), engine=("local", "worker", "temporal")),
    ),
    ("a worker is an engine", _meets(front=("worker",), engine=("none", "local"))),
    (
        "only a command and a program run without a journal",
        lambda row: (
            row["journal"] == "off"
            and (row["front"] not in ("run", "python") or row["engine"] != "none")
        ),
    ),
    (
        "a journal in memory is of one process, and no command but that of MCP has it",
        lambda row: (
            row["journal"] == "memory"
            and (row["front"] not in ("python", "mcp") or row["engine"] in ("worker", "temporal"))
        ),
    ),
    (
        "commands have no setting for SQLite's log",
        lambda row: row["journal"] == "normal" and row["front"] != "python",
    ),
    (
        "axil mcp serve keeps runs in memory or in a folder",
        _meets(front=("mcp",), journal=("postgres",)),
    ),
    (
        "what nobody keeps cannot be continued",
        _meets(journal=("off",), happening=("paused", "killed")),
    ),
    (
        "what is in memory does not outlive the process",
        _meets(journal=("memory",), happening=("killed",)),
    ),
    (
        "a run of MCP in memory is seen by no one after its call was cancelled",
        _meets(front=("mcp",), journal=("memory",), happening=("cancelled",)),
    ),
    (
        "only a body that may wait asks, or ends when it is cancelled",
        _meets(body=("inline", "thread"), happening=("paused", "cancelled")),
    ),
    (
        "the process of the front end is what is killed, and not that of a body",
        _meets(body=("process", "ray"), happening=("killed",)),
    ),
    (
        "the servers are those of all rows",
        _meets(front=(*SERVED, "mcp"), happening=("killed",)),
    ),
    (
        "the state that a file declares has no class that another process could import",
        _meets(body=("process", "ray"), graph=("typed",)),
    ),
    (
        "an executor is given in Python, and Ray's environment has neither psycopg nor Temporal",
        lambda row: (
            row["body"] == "ray"
            and (
                row["front"] != "python"
                or row["engine"] not in ("none", "local")
                or row["journal"] == "postgres"
            )
        ),
    ),
)
"""Combinations that no row has, each with its reason."""


def allowed(row: Row) -> bool:
    """Return whether a row can be."""
    return not any(meets(row) for _, meets in IMPOSSIBLE)


ROWS, NEVER = covering(FACTORS, allowed)


def workflow(row: Row) -> str:
    """Return the workflow file of a row, as JSON, which is YAML, too."""
    body, happening = row["body"], row["happening"]
    type_name = body if body in ("inline", "async", "thread") else "thread"
    type_name = "async" if happening in ("paused", "cancelled") else type_name
    step: dict[str, Any] = {"type": f"pair.{type_name}", "config": {"happening": happening}}
    if body == "process":
        step["wrappers"] = [{"type": "process", "config": {"workers": 1}}]
    if body == "ray":
        step["resources"] = {"cpus": 1}
    plain = {"type": "pair.inline", "config": {"happening": "done"}}
    if row["graph"] == "team":
        step = {"type": "horizontal", "config": {"members": {"one": {**step}}}}
    nodes = [{"id": "step", **step}, {"id": "last", **plain}]
    names = ["step"] if happening == "tiny" else ["step", "last"]
    pairs = [{"from": one, "to": other} for one, other in pairwise(names)]
    graph: dict[str, Any] = {"nodes": nodes[: len(names)]}
    if row["graph"] == "fields":
        ends = [{"from": "@entry", "to": "step"}, *pairs, {"from": names[-1], "to": "@exit"}]
        graph |= {"payload": "fields", "edges": [{**e, "keys": ["message"]} for e in ends]}
    else:
        graph |= {"start": ["step"], "end": names[-1:], "edges": pairs}
    if row["graph"] == "typed":
        graph["payload"] = "state"
    if happening == "limited":
        graph["limits"] = {"firings": 1}
    return json.dumps({"version": "0.4.0" if row["graph"] == "devall" else 1, "graph": graph})


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The end of a run, in the words that all front ends share."""

    status: str
    output: str = ""


def expected(row: Row) -> Outcome:
    """State the outcome of a row."""
    happening = row["happening"]
    if happening == "cancelled" and row["front"] == "batch":
        return Outcome(status="open")  # the same command goes on with it
    if happening in ("failed", "limited", "cancelled"):
        return Outcome(status=happening)
    output = {"large": "HI" * LARGE, "tiny": ""}.get(happening, "HI")
    return Outcome(status="done", output=output)


def judged(row: Row) -> graphs.Observed | None:
    """Return what the reference model says of a row; None: it knows nothing of the graph, or of
    what happens to the run.
    """
    if row["graph"] not in ("fields", "typed") or row["happening"] in ("cancelled", "killed"):
        return None
    happening = row["happening"]
    step = graphs.Node(
        name="step",
        fails=graphs.TRIES if happening == "failed" else 0,
        asks=happening == "paused",
    )
    names = ["step"] if happening == "tiny" else ["step", "last"]
    ways = [graphs.ENTRY, *names, graphs.EXIT]
    graph = graphs.Graph(
        nodes=(step, graphs.Node(name="last"))[: len(names)],
        edges=tuple(graphs.Edge(source=one, target=other) for one, other in pairwise(ways)),
        typed=row["graph"] == "typed",
        payload="state" if row["graph"] == "typed" else "fields",
    )
    with patch.object(model, "FIRINGS", 1 if happening == "limited" else model.FIRINGS):
        return model.expected(graph)

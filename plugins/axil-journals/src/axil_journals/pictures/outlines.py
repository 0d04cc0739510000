"""A recorded run in outline: which nodes ended, how often and when, and what they used.

An entry says what the run had used when it was written. What was added since the last entry of a
body is counted for the body of the entry: exact where one is at work at a time, near otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from axil.plugin import has_failed
from axil_journals.journal import Entry
from axil_journals.values import decode_value

_OF_BODIES: Final = ("done", "step", "asked")


@dataclass(slots=True, kw_only=True)
class OutlineNode:
    """A node of a run: all its firings, in all rounds and frames."""

    path: tuple[str, ...]
    """Its name behind those of the cycles and graphs around it."""
    times: int = 0
    """The number of times that it ended; 0: never."""
    failures: int = 0
    """The number of these ends at which its program had failed, as data for the next node."""
    rounds: int = 0
    """Of a cycle: how many of its rounds ended."""
    ended: float | None = None
    """The time of its last end, in seconds since the run began."""
    tokens: dict[str, float] = field(default_factory=dict[str, float])
    cost: float = 0.0
    waits: int = 0
    """The number of its open questions."""


@dataclass(slots=True, kw_only=True)
class Outline:
    """A run in outline."""

    nodes: list[OutlineNode]
    """Parents before what is in them, else in the order in which they were first heard of."""
    seconds: float = 0.0
    used: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """``firings``, ``tokens`` by kind, ``cost``: of the whole run so far."""
    input: Any = None
    output: Any = None
    """None where the run is not done, or its output was not recorded."""
    error: str = ""


def outline(entries: Sequence[Entry]) -> Outline:
    """Return the outline of a recorded run."""
    nodes: dict[tuple[str, ...], OutlineNode] = {}
    answered = {entry.data["id"] for entry in entries if entry.kind == "answer"}
    made, tokens, cost = Outline(nodes=[]), dict[str, float](), 0.0
    used: dict[str, Any] = {}
    for entry in entries:
        data = entry.data
        used.update(data.get("used", ()))
        made.seconds = max(made.seconds, float(data.get("at", 0.0)))
        node = _node(nodes, entry) if entry.node else None
        now = {name: float(count) for name, count in used.get("tokens", {}).items()}
        spent = float(used.get("cost") or 0.0)
        if node is not None and entry.kind in _OF_BODIES:
            for name, count in now.items():
                if count > tokens.get(name, 0):
                    node.tokens[name] = node.tokens.get(name, 0) + count - tokens.get(name, 0)
            node.cost += max(0.0, spent - cost)
            tokens, cost = now, spent
        _read(made, node, entry, answered)
    made.used = {name: used[name] for name in ("firings", "tokens", "cost") if used.get(name)}
    made.nodes = _in_order(nodes)
    return made


def _read(made: Outline, node: OutlineNode | None, entry: Entry, answered: set[Any]) -> None:
    data = entry.data
    if entry.kind == "run":
        made.input = decode_value(data["inputs"])
    elif entry.kind == "ended":
        made.output = decode_value(data["output"]) if "output" in data else None
        made.error = str(data.get("error", ""))
    elif entry.kind == "resumed":
        made.output, made.error = None, ""
    if node is None:
        return
    if entry.kind == "done":
        node.times, node.ended = node.times + 1, float(data.get("at", 0.0))
        node.failures += any(has_failed(decode_value(sent[1])) for sent in data["sends"])
    elif entry.kind == "round":
        node.rounds, node.ended = node.rounds + 1, float(data.get("at", 0.0))
    elif entry.kind == "asked" and data["id"] not in answered:
        node.waits += 1


def _node(nodes: dict[tuple[str, ...], OutlineNode], entry: Entry) -> OutlineNode:
    """Return the node of an entry, made with those around it where it is the first."""
    around = [part for part in entry.frame if isinstance(part, str) and not part.startswith("#")]
    if around and around[-1] == entry.node:  # a map runs its node in frames of that name
        around.pop()
    path = (*around, entry.node)
    for end in range(1, len(path) + 1):
        nodes.setdefault(path[:end], OutlineNode(path=path[:end]))
    return nodes[path]


def _in_order(nodes: Mapping[tuple[str, ...], OutlineNode]) -> list[OutlineNode]:
    inside: dict[tuple[str, ...], list[OutlineNode]] = {}
    for path, node in nodes.items():
        inside.setdefault(path[:-1], []).append(node)
    ordered: list[OutlineNode] = []
    waiting = list(reversed(inside.get((), [])))
    while waiting:
        node = waiting.pop()
        ordered.append(node)
        waiting.extend(reversed(inside.get(node.path, [])))
    return ordered


__all__ = ["Outline", "OutlineNode", "outline"]

"""Random files in DevAll's vocabulary, and what its real executor makes of them.

A graph is plain data. ``python devall_program.py CHECKOUT`` reads graphs from its input, one JSON
document a line, runs each with the DevAll of that checkout and writes each outcome, one a line.
Nothing here imports axil.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Graph = dict[str, Any]
"""``nodes``: by name, ``says`` (its own name), ``all`` (what it was given) or the number of firings
that a counter counts; ``edges``: source, target, and the marks ``data``, ``bare``, ``kept``,
``only`` (what that node said). The first node is the start, the last one the end.
"""
Outcome = dict[str, Any]
"""``status``; ``seen``: by node, what each firing was given, sorted."""

MOST = 60
"""The limit of firings of one node, and of messages that one is given."""


def random_graph(seed: int, *, cyclic: bool = False) -> Graph:
    """Return the graph of a seed: the same in every process and version of Python."""
    chance = random.Random(f"{seed}/{cyclic}")
    names = [f"n{i}" for i in range(chance.randint(4, 8))]
    nodes: dict[str, Any] = {
        name: "all" if i and chance.random() < 0.25 else "says" for i, name in enumerate(names)
    }
    some = chance.choice((0.15, 0.3, 0.5))
    edges: list[list[Any]] = []

    def mark(source: str) -> list[str]:
        kinds = [kind for kind, rate in (("bare", 0.1), ("kept", 0.1)) if chance.random() < rate]
        if chance.random() < some:
            kinds = [kind for kind in ("data", *kinds) if kind != "bare"]
        if nodes[source] == "all" and chance.random() < 0.3:
            kinds.append(f"only {chance.choice(names)}")
        return kinds

    for i, name in enumerate(names[1:], 1):
        for source in chance.sample(names[:i], min(i, chance.choice((1, 1, 2, 2, 3)))):
            edges.append([source, name, mark(source)])
    for _ in range(chance.choice((1, 1, 2, 3)) if cyclic else 0):
        low, high = sorted(chance.sample(range(len(names) - 1), 2))
        source, target = names[high], names[low]
        if not any(edge[:2] == [source, target] for edge in edges):
            edges.append([source, target, mark(source)])
    for name in names[1:-1]:
        if cyclic and chance.random() < 0.35:
            nodes[name] = chance.randint(2, 3)
    chance.shuffle(edges)
    return {"nodes": nodes, "edges": edges}


def document(graph: Graph) -> dict[str, Any]:
    """Return the workflow file of a graph."""
    nodes = [{"id": name, **_node(name, kind)} for name, kind in graph["nodes"].items()]
    names = list(graph["nodes"])
    return {
        "version": "0.4.0",
        "vars": {},
        "graph": {
            "id": "random",
            "start": names[:1],
            "end": names[-1:],
            "nodes": nodes,
            "edges": [_edge(*edge) for edge in graph["edges"]],
        },
    }


def _node(name: str, kind: Any) -> dict[str, Any]:
    if kind == "says":
        return {"type": "literal", "config": {"content": name, "role": "user"}}
    if kind == "all":
        return {"type": "passthrough", "config": {"only_last_message": False}}
    return {"type": "loop_counter", "config": {"max_iterations": kind, "message": name}}


def _edge(source: str, target: str, marks: Sequence[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"from": source, "to": target}
    for mark in marks:
        if mark.startswith("only "):
            config = {"any": [mark.removeprefix("only ")]}
            made["condition"] = {"type": "keyword", "config": config}
        else:
            key = {"data": "trigger", "bare": "carry_data", "kept": "keep_message"}[mark]
            made[key] = mark == "kept"
    return made


def smaller(graph: Graph) -> list[Graph]:
    """Return the graphs that are one step simpler, the largest steps first."""
    found: list[Graph] = []
    for name in list(graph["nodes"])[1:-1]:
        nodes = {n: kind for n, kind in graph["nodes"].items() if n != name}
        edges = [edge for edge in graph["edges"] if name not in edge[:2]]
        found.append({"nodes": nodes, "edges": edges})
    for i, (source, target, marks) in enumerate(graph["edges"]):
        before, after = graph["edges"][:i], graph["edges"][i + 1 :]
        found.append({**graph, "edges": before + after})
        for mark in marks:
            plain = [each for each in marks if each != mark]
            found.append({**graph, "edges": [*before, [source, target, plain], *after]})
    for name, kind in graph["nodes"].items():
        if kind != "says":
            found.append({**graph, "nodes": {**graph["nodes"], name: "says"}})
    in_order = sorted(graph["edges"], key=lambda edge: (edge[0], edge[1]))
    return [*found, *([{**graph, "edges": in_order}] if in_order != graph["edges"] else [])]


def smallest(graph: Graph, differs: Callable[[Graph], bool]) -> Graph:
    """Return a graph that still differs and of which no single part can be taken away."""
    while (simpler := next(filter(differs, smaller(graph)), None)) is not None:
        graph = simpler
    return graph


def digest(value: Any) -> int:
    """Return a number that differs where values differ."""
    return zlib.crc32(json.dumps(value, sort_keys=True).encode()) % 100_000


class Noted:
    """The firings of one run."""

    def __init__(self) -> None:
        self.seen: dict[str, list[list[str]]] = {}

    def add(self, name: str, texts: Sequence[str]) -> None:
        """Add a firing.

        Raises:
            OverflowError: there were too many.
        """
        rows = self.seen.setdefault(name, [])
        if len(rows) >= MOST or len(texts) > MOST:
            raise OverflowError
        rows.append(sorted(texts))

    def outcome(self, status: str = "done") -> Outcome:
        """Return the outcome of the run."""
        return {"status": status, "seen": self.seen if status == "done" else {}}


def real(graph: Graph, checkout: Path) -> Outcome:
    """Return what the DevAll that is imported makes of a graph.

    What it would run at once runs one by one, in the order of the file.
    """
    executor = importlib.import_module("workflow.graph").GraphExecutor
    parallel = importlib.import_module("workflow.executor.parallel_executor").ParallelExecutor
    config = importlib.import_module("entity.graph_config").GraphConfig
    context = importlib.import_module("workflow.graph_context").GraphContext
    load = importlib.import_module("check.check").load_config
    names = list(graph["nodes"])
    noted = Noted()

    def first(item: Any) -> int:
        if isinstance(item, str):
            return names.index(item)
        return min(map(names.index, item.get("nodes") or [item["node_id"]]))

    def one_by_one(self: Any, items: Any, run: Callable[[Any], None], *_: Any) -> None:
        for item in sorted(items, key=first):
            run(item)

    class Noting(executor):
        def _execute_node(self, node: Any) -> None:
            noted.add(node.id, [message.text_content() for message in node.input])
            super()._execute_node(node)

    parallel.execute_items_parallel = parallel.execute_nodes_parallel = one_by_one
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flow.yaml"
        file.write_text(json.dumps(document(graph)), "utf-8")
        design = load(file)
        made = config.from_definition(
            design.graph, name="x", output_root=Path(folder), source_path=str(file), vars={}
        )
        try:
            Noting(context(config=made)).run("TASK")
        except OverflowError:
            return noted.outcome("limited")
        except ValueError as error:
            return noted.outcome("entries" if "entry node" in str(error) else str(error))
    return noted.outcome()


def main() -> None:
    """Run graphs that are read from the input."""
    import contextlib
    import logging
    import os

    checkout = Path(sys.argv[1])
    sys.path.insert(0, str(checkout))
    os.chdir(tempfile.mkdtemp())
    os.environ.setdefault("PYTHON_DOTENV_DISABLED", "1")
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        importlib.import_module("runtime.bootstrap.schema").ensure_schema_registry_populated()
        logging.disable()
        for line in sys.stdin:
            out.write(json.dumps(real(json.loads(line), checkout)) + "\n")
            out.flush()


if __name__ == "__main__":
    main()

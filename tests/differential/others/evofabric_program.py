"""Random programs in EvoFabric's names, run with the package ``evofabric`` that is installed.

A graph is plain data, so that one process can run it here and another one with the real EvoFabric:
``python evofabric_program.py`` reads graphs from its input, one JSON document a line, and writes
the outcome of each, one a line. Nothing here imports axil, and annotations are not postponed: the
real one would not see them.
"""

import asyncio
import json
import random
import sys
import zlib
from collections.abc import Callable
from typing import Annotated, Any, cast

from pydantic import BaseModel

Graph = dict[str, Any]
"""``nodes``: by name, the mode and whether it writes ``last``; ``edges``: source, target, group,
filter; ``routers``: source, targets, rule, group; the first node is the entry.
"""
Outcome = dict[str, Any]
"""``status``; ``seen``: what each firing saw, sorted; ``state``: what the run ended with."""

MOST = 300
"""The limit of firings of one run."""


def random_graph(seed: int, *, cyclic: bool = False) -> Graph:
    """Return the graph of a seed: the same in every process and version of Python.

    Half of the acyclic ones have filters, a third routers; cyclic ones have one to three routers
    that lead back.
    """
    chance = random.Random(f"{seed}/{cyclic}")
    names = [f"n{i}" for i in range(chance.randint(3, 8))]
    some_all = chance.choice((0.2, 0.4, 0.6))
    marked = chance.random() < 0.25
    nodes = {
        name: {
            "mode": "all" if i and chance.random() < some_all else "any",
            "last": marked and chance.random() < 0.5,
        }
        for i, name in enumerate(names)
    }
    filtered = chance.random() < 0.5
    edges: list[list[str]] = []
    for i, name in enumerate(names[1:], 1):
        for source in chance.sample(names[:i], min(i, chance.choice((1, 1, 1, 2, 2, 3)))):
            keep = chance.choice(("half", "mark")) if filtered and chance.random() < 0.3 else ""
            edges.append([source, name, "g" if chance.random() < 0.1 else "all", keep])
    routers: list[list[Any]] = []
    if not cyclic and chance.random() < 0.33:
        routed = chance.choice(names)
        mine = [edge for edge in edges if edge[0] == routed]
        if len(mine) > 1:
            edges = [edge for edge in edges if edge[0] != routed]
            targets = sorted({edge[1] for edge in mine})
            routers.append([routed, targets, chance.choice(("one", "some")), "all"])
    for _ in range(chance.choice((1, 1, 2, 3)) if cyclic else 0):
        low, high = sorted(chance.choices(range(len(names)), k=2))
        source, target = names[high], names[low]
        if any(router[0] == source for router in routers):
            continue
        onward = [edge[1] for edge in edges if edge[0] == source]
        edges = [edge for edge in edges if edge[0] != source]
        routers.append(
            [source, [target, *(onward or ["end"])], f"back{chance.randint(1, 2)}", "all"]
        )
    return {"nodes": nodes, "edges": edges, "routers": routers}


def smaller(graph: Graph) -> list[Graph]:
    """Return the graphs that are one step simpler, the largest steps first."""
    found: list[Graph] = []
    for name in list(graph["nodes"])[1:]:
        rest = {n: node for n, node in graph["nodes"].items() if n != name}
        into = [edge[0] for edge in graph["edges"] if edge[1] == name]
        out = [edge[1] for edge in graph["edges"] if edge[0] == name]
        kept = [edge for edge in graph["edges"] if name not in edge[:2]]
        routers = [
            [router[0], left, *router[2:]]
            for router in graph["routers"]
            if router[0] != name and (left := [t for t in router[1] if t != name])
        ]
        found.append({"nodes": rest, "edges": kept, "routers": routers})
        bridges = [[s, t, "all", ""] for s in into for t in out if len(into) * len(out) == 1]
        if bridges and [*bridges[0][:2]] not in [edge[:2] for edge in kept]:
            found.append({"nodes": rest, "edges": kept + bridges, "routers": routers})
    for i, edge in enumerate(graph["edges"]):
        others = [*graph["edges"][:i], *graph["edges"][i + 1 :]]
        found.append({**graph, "edges": others})
        for plain in ([*edge[:2], "all", edge[3]], [*edge[:3], ""]):
            if plain != edge:
                found.append(
                    {**graph, "edges": [*graph["edges"][:i], plain, *graph["edges"][i + 1 :]]}
                )
    for i, (source, targets, *rule) in enumerate(graph["routers"]):
        others = [*graph["routers"][:i], *graph["routers"][i + 1 :]]
        found.append({**graph, "routers": others})
        found += [
            {**graph, "routers": [*others, [source, [t for t in targets if t != out], *rule]]}
            for out in targets
            if len(targets) > 1
        ]
        if rule[0] == "back2":
            found.append({**graph, "routers": [*others, [source, targets, "back1", rule[1]]]})
    for name, node in graph["nodes"].items():
        for plain in ({**node, "mode": "any"}, {**node, "last": False}):
            if plain != node:
                found.append({**graph, "nodes": {**graph["nodes"], name: plain}})
    return [each for each in found if _reached(each)]


def _reached(graph: Graph) -> bool:
    names = list(graph["nodes"])
    pairs = [edge[:2] for edge in graph["edges"]]
    pairs += [[router[0], target] for router in graph["routers"] for target in router[1]]
    found = {names[0]}
    while more := {t for s, t in pairs if s in found} - found - {"end"}:
        found |= more
    return found == set(names)


def smallest(graph: Graph, differs: Callable[[Graph], bool]) -> Graph:
    """Return a graph that still differs and of which no single part can be taken away."""
    while (simpler := next(filter(differs, smaller(graph)), None)) is not None:
        graph = simpler
    return graph


def digest(value: Any) -> int:
    """Return a number that differs where values differ."""
    return zlib.crc32(repr(value).encode()) % 100_000


def schema() -> type[BaseModel]:
    """Return the schema of the state: what is said, once each, and a field that overwrites."""
    from evofabric.core.graph import StateUpdater

    if not StateUpdater.registered("differential_once"):

        @StateUpdater.register("differential_once")
        def once(old: Any, new: Any) -> Any:
            mine = cast("list[str]", old) if isinstance(old, list) else []
            theirs = cast("list[str]", new) if isinstance(new, list) else []
            return mine + [each for each in theirs if each not in mine]

        del once

    class Said(BaseModel):
        log: Annotated[list[str], "differential_once"] = []
        last: Annotated[int, "overwrite"] = 0

    return Said


def filters() -> dict[str, Callable[[Any], Any]]:
    """Return the filters of states: one forgets a half of what was said, one sets a mark."""
    return {
        "half": lambda state: {
            "log": [each for each in state.log if digest(each) % 2],
            "last": state.last,
        },
        "mark": lambda state: {"log": list(state.log), "last": 7},
    }


def built(graph: Graph, seen: list[Any]) -> Any:
    """Return the engine of a graph whose nodes note in ``seen`` what they see."""
    from evofabric.core.graph import GraphBuilder

    made = GraphBuilder(state_schema=schema())
    keep = filters()
    for name, node in graph["nodes"].items():
        made.add_node(name, _node(name, node, seen), action_mode=node["mode"])
    made.set_entry_point(next(iter(graph["nodes"])))
    for source, target, group, kept in graph["edges"]:
        made.add_edge(source, target, group=group, state_filter=keep.get(kept))
    for source, targets, rule, group in graph["routers"]:
        made.add_condition_edge(source, _router(source, targets, rule), targets, group=group)
    return made.build()


def _node(name: str, node: dict[str, Any], seen: list[Any]) -> Callable[[Any], Any]:
    def work(state: Any) -> dict[str, Any]:
        log = sorted(state.log)
        if len(seen) >= MOST:
            raise OverflowError
        seen.append([name, log, state.last])
        said = f"{name}.{digest((name, log, state.last))}"
        return {"log": [said]} | ({"last": digest(said)} if node["last"] else {})

    return work


def chosen(source: str, targets: list[str], rule: str, log: list[str]) -> list[str]:
    """Return the targets that the router of a node chooses, by what was said."""
    if rule.startswith("back"):
        rounds = sum(each.startswith(f"{source}.") for each in log)
        return targets[:1] if rounds <= int(rule[4:]) else targets[1:]
    picked = digest(log)
    if rule == "one":
        return [targets[picked % len(targets)]]
    return [each for i, each in enumerate(targets) if picked >> i & 1]


def _router(source: str, targets: list[str], rule: str) -> Callable[[Any], Any]:
    return lambda state: chosen(source, targets, rule, sorted(state.log))


async def outcome(graph: Graph) -> Outcome:
    """Return what a graph comes to."""
    seen: list[Any] = []
    try:
        state = await asyncio.wait_for(built(graph, seen).run({}), 20)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what the graph comes to
        if len(seen) >= MOST or "LimitReached" in type(error).__name__:
            return {"status": "limited", "seen": [], "state": None}
        return {"status": type(error).__name__, "seen": [], "state": str(error)[:300]}
    if state is None:
        return {"status": "nothing", "seen": sorted(seen), "state": None}
    return {"status": "done", "seen": sorted(seen), "state": [sorted(state.log), state.last]}


def main() -> None:
    """Run graphs that are read from the input."""
    import logging
    import warnings

    warnings.simplefilter("ignore")
    logging.disable()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asyncio.run(outcome(json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

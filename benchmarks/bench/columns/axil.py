"""axil, as its users write it: the builder, and functions that ask for what they want by name."""

from __future__ import annotations

import itertools
import json
import sys

TITLE = "axil"
KIND = "ours"
PACKAGE = "axil"
FAR = True
IMPORT = "axil"


def add_at_once(state):
    return {"n": state["n"] + 1}


async def add(state):
    return {"n": state["n"] + 1}


async def nothing(state):
    return {}


def row(size, body, *, inline=False, **options):
    """``size`` nodes in a row, each of which reads the state and writes a field of it."""
    from axil import RootGraph

    graph = RootGraph("row", **{"attributes": {"n": 0}, **options})
    for i in range(size):
        graph.create_node(
            body, name=f"n{i}", push_keys=None if "state" in options else {"n": ""}, inline=inline
        )
    graph.edge_from_entry("n0", {})
    for i in range(1, size):
        graph.create_edge(f"n{i - 1}", f"n{i}", {})
    graph.edge_to_exit(f"n{size - 1}", {})
    return graph.build()


def counted(graph, **options):
    """Return a run that gives the last value of the state's counter."""

    async def go():
        return (await graph.run(**options)).attributes["n"]

    return go


def chain(case):
    return counted(row(case.size, add))


def plain(case):
    return counted(row(case.size, add_at_once, inline=True))


def typed(case):
    from pydantic import BaseModel

    class Count(BaseModel):
        n: int = 0

    async def step(state: Count):
        return {"n": state.n + 1}

    return counted(row(case.size, step, state=Count))


def fields(case):
    from axil import RootGraph

    def writer(field):
        async def write(state):
            return {field: state[field] + 1}

        return write

    graph = RootGraph("fields", attributes={f"f{i}": 0 for i in range(case.size)})
    for i in range(1000):
        field = f"f{i % case.size}"
        graph.create_node(writer(field), name=f"n{i}", push_keys={field: ""})
    graph.edge_from_entry("n0", {})
    for i in range(1, 1000):
        graph.create_edge(f"n{i - 1}", f"n{i}", {})
    graph.edge_to_exit("n999", {})
    graph.build()

    async def go():
        return sum((await graph.run()).attributes.values())

    return go


class Tracer:
    """An observer of every firing, twice."""

    def __init__(self):
        self.begun = self.ended = 0

    def firing_started(self, activation, kind):
        self.begun += 1

    def firing_finished(self, activation, kind, output):
        self.ended += 1


def watched(case):
    graph = row(case.size, add)

    async def go():
        tracer = Tracer()
        result = await graph.run(observers=[tracer])
        assert tracer.begun == tracer.ended == case.size
        return result.attributes["n"]

    return go


def streamed(case):
    graph = row(case.size, add)

    async def go():
        seen, last = 0, None
        async for event in graph.stream():
            seen += event.kind == "firing_finished"
            last = event
        assert seen == case.size
        return last.data.attributes["n"]

    return go


def fan(case):
    from axil import RootGraph

    async def work(inputs):
        await case.wait()
        return {"part": [1]}

    graph = RootGraph("fan")
    graph.create_node(lambda inputs: {}, name="begin", inline=True)
    graph.create_node(lambda inputs: {"n": sum(inputs["part"])}, name="end", inline=True)
    graph.edge_from_entry("begin", {})
    for i in range(case.size):
        graph.create_node(work, name=f"n{i}")
        graph.create_edge("begin", f"n{i}", {})
        graph.create_edge(f"n{i}", "end", ["part"])
    graph.edge_to_exit("end", ["n"])
    graph.build()

    async def go():
        return (await graph.run()).output["n"]

    return go


def dag(case):
    from axil import RootGraph

    async def work(inputs):
        return {"in": len(inputs)}

    graph = RootGraph("dag")
    for i in range(case.size):
        graph.create_node(work, name=f"n{i}")
    graph.edge_from_entry("n0", {})
    for a, b in case.edges:
        graph.create_edge(f"n{a}", f"n{b}", ["in"])
    graph.edge_to_exit(f"n{case.size - 1}", {})
    graph.build()

    async def go():
        return (await graph.run()).usage.firings

    return go


def turning(case, a, b, *, inline=False):
    """Two nodes, of which the second leads back."""
    from axil import RootGraph

    graph = RootGraph("loop", attributes={"n": 0}, cycles="allow")
    graph.create_node(a, name="a", push_keys={"n": ""}, inline=inline)
    graph.create_node(b, name="b", inline=inline)
    graph.edge_from_entry("a", {})
    graph.create_edge("a", "b", {})
    graph.create_edge("b", "a", {}, when=lambda state: state["n"] < case.size)
    graph.edge_to_exit("b", {}, when=lambda state: state["n"] >= case.size)
    graph.set_cycle_limit("a", None)
    return counted(graph.build())


def loop(case):
    return turning(case, add, nothing)


def plain_loop(case):
    return turning(case, add_at_once, lambda state: {}, inline=True)


def nested(case):
    from axil import RootGraph

    async def outer(state):
        return {"k": 0}

    async def inner(state):
        return {"n": state["n"] + 1, "k": state["k"] + 1}

    most = case.size * 10
    graph = RootGraph("nested", attributes={"n": 0, "k": 0}, cycles="allow")
    graph.create_node(outer, name="outer", push_keys={"k": ""})
    graph.create_node(inner, name="inner", push_keys={"n": "", "k": ""})
    graph.edge_from_entry("outer", {})
    graph.create_edge("outer", "inner", {})
    graph.create_edge("inner", "inner", {}, when=lambda state: state["k"] < 10)
    graph.create_edge(
        "inner", "outer", {}, when=lambda state: state["k"] >= 10 and state["n"] < most
    )
    graph.edge_to_exit("inner", {}, when=lambda state: state["n"] >= most)
    graph.set_cycle_limit("outer", None)
    graph.set_cycle_limit("inner", None)
    return counted(graph.build())


def mapped(case):
    import axil_control  # noqa: F401  # where the wrapper "map" comes from
    from axil import RootGraph

    async def work(messages):
        return {"message": str(int(messages[-1]["content"]) + 1)}

    graph = RootGraph("map")
    graph.create_node(lambda inputs: inputs, name="begin", inline=True)
    graph.create_node(
        work,
        name="work",
        wrappers=[{"type": "map", "split": {"type": "json_path", "config": {"json_path": ""}}}],
    )
    graph.edge_from_entry("begin")
    graph.create_edge("begin", "work")
    graph.edge_to_exit("work")
    graph.build()
    text = str(list(range(case.size)))

    async def go():
        result = await graph.run(text)
        return sum(int(text) for text in result.output["message"])

    return go


def log_loop(case, body):
    """Return one node that leads back to itself until its list, or its counter, is as long as the
    case says.
    """
    from axil import RootGraph, Schema
    from axil.plugin import APPEND, Field

    state = Schema(
        "log",
        {"n": Field("n", default=int), "log": Field("log", APPEND, default=list)},
        closed=True,
    )
    graph = RootGraph("log", state=state, cycles="allow")
    graph.create_node(body, name="step")
    graph.edge_from_entry("step")
    graph.create_edge("step", "step", when=lambda state: state["n"] < case.size)
    graph.edge_to_exit("step", when=lambda state: state["n"] >= case.size)
    graph.set_cycle_limit("step", None)
    return graph.build()


def growing(case):
    async def step(state):
        case.mark()
        return {"n": state["n"] + 1, "log": ["m"]}

    graph = log_loop(case, step)

    async def go():
        return len((await graph.run()).attributes["log"])

    return go


def payload(case):
    records, length = case.records, case.size // 1000
    graph = row(50, add, attributes={"n": 0, "data": records})

    async def go():
        attributes = (await graph.run()).attributes
        # looked at, and not read: what is read is copied for the caller
        data = attributes.raw()["data"]
        assert len(data) == length
        return attributes["n"], len(data)

    return go


def crowd(case):
    import asyncio

    async def step(state):
        await case.wait()
        return {"n": state["n"] + 1}

    graph = row(10, step)

    async def go():
        results = await asyncio.gather(*(graph.run() for _ in range(case.size)))
        return [result.attributes["n"] for result in results]

    return go


def durable_in(sync):
    """Steps that are kept: the function of a column whose journal syncs so."""

    def durable(case):
        import asyncio

        from axil_sqlite import SqliteJournal

        async def step(state):
            n = state["n"] + 1
            return {"n": n, "log": [case.message]} if case.bytes else {"n": n}

        graph = log_loop(case, step)
        journal = SqliteJournal(case.folder, sync=sync)
        journal.runs()  # opens the database
        case.closing.append(journal.close)

        async def go():
            results = await asyncio.gather(
                *(graph.run(journal=journal, run_id=f"r{i}") for i in range(case.runs))
            )
            assert all(
                len(result.attributes["log"]) == (case.size if case.bytes else 0)
                for result in results
            )
            (n,) = {result.attributes["n"] for result in results}
            return n

        return go

    return durable


class Caller:
    """A model that wants its tool until that has counted far enough."""

    name = "caller"

    def __init__(self, case):
        self.case = case

    async def reply(self, request, emit, /):
        from axil_models import Reply, ToolCall

        await self.case.wait()
        last = request.messages[-1]
        n = int(last["content"]) if last["role"] == "tool" else 0
        if n < self.case.size:
            call = ToolCall(id=f"c{n}", name="add_one", arguments={"n": n})
            return Reply(tool_calls=(call,), finish="tools")
        return Reply(text=json.dumps({"answer": n}), finish="stop")


async def add_one(n: int) -> int:
    """Add one to a number."""
    return n + 1


def asking(case):
    """Return a graph of one agent."""
    from axil import RootGraph
    from axil_agent import Agent

    graph = RootGraph("ask")
    graph.create_node(
        Agent,
        name="count",
        model=Caller(case),
        instructions="You count with your tool." + case.message,
        prompt_template="Count to {number}.",
        tools=[add_one],
        max_turns=case.size + 1,
    )
    graph.edge_from_entry("count", ["number"])
    graph.edge_to_exit("count", ["answer"])
    return graph.build()


def agent(case):
    graph = asking(case)

    async def go():
        return (await graph.run({"number": case.size})).output["answer"]

    return go


def kept_agent_in(sync):
    """Return what makes an agent whose calls are kept, in a journal that syncs so."""

    def kept_agent(case):
        from axil_sqlite import SqliteJournal

        graph = asking(case)
        journal = SqliteJournal(case.folder, sync=sync)
        journal.runs()  # opens the database
        case.ending.append(journal.close)
        numbers = itertools.count()

        async def go():
            run = graph.run({"number": case.size}, journal=journal, run_id=f"r{next(numbers)}")
            return (await run).output["answer"]

        return go

    return kept_agent


def first():
    from axil import RootGraph

    graph = RootGraph("two")
    graph.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="a", inline=True)
    graph.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="b", inline=True)
    graph.edge_from_entry("a", ["n"])
    graph.create_edge("a", "b", ["n"])
    graph.edge_to_exit("b", ["n"])
    assert graph.build().invoke({"n": 0})[0] == {"n": 2}


def COMMAND(folder):
    """Return the command line that runs a small file."""
    from pathlib import Path

    file = folder / "small.yaml"
    file.write_text(
        "graph:\n  id: small\n  start: [say]\n  end: [pass]\n  nodes:\n    - {id: say, type: "
        "literal, config: {content: hello}}\n"
        "    - {id: pass, type: passthrough}\n  edges:\n    - {from: say, to: pass}\n"
    )
    return [str(Path(sys.executable).with_name("axil")), "run", str(file), "--input", "x"]


def NEWSROOM(folder):
    """Return the command line of ``make demo``."""
    from pathlib import Path

    examples = Path(__file__).resolve().parents[3] / "examples"
    script = ["--model-script", str(examples / "replies/newsroom.yaml")]
    command = str(Path(sys.executable).with_name("axil"))
    return [command, "run", str(examples / "newsroom.yaml"), "--input", "plants", *script]


def check(case):
    """Return all that ``axil check`` does, but for the printing: reading the file, looking up its
    types, and the plan.
    """
    import json

    nodes = [{"id": f"n{i}", "type": "passthrough"} for i in range(case.size)]
    edges = [{"from": f"n{i - 1}", "to": f"n{i}"} for i in range(1, case.size)]
    graph = {
        "id": "large",
        "start": ["n0"],
        "end": [f"n{case.size - 1}"],
        "nodes": nodes,
        "edges": edges,
    }
    file = case.folder / "large.json"
    file.write_text(json.dumps({"graph": graph}))
    from axil_files import load

    return lambda: len(load(file).plan.graph.spec.nodes)


def discovery(case):
    """Everything that distributions register; how many of the made ones were found, and which of
    them were imported.
    """
    import importlib.metadata  # noqa: F401  # its import is not what is measured

    from axil.plugin import Policy, Registry

    for i in range(case.size):
        info = case.folder / f"fake_{case.size}_{i}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: fake-{case.size}-{i}\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(
            f"[axil.nodes]\nfake{case.size}.n{i} = fake_{case.size}_{i}:N\n"
        )
    sys.path.insert(0, str(case.folder))

    def go():
        before = set(sys.modules)
        found = Registry(Policy()).candidates()
        mine = {
            candidate.name for candidate in found if candidate.name.startswith(f"fake{case.size}.")
        }
        return len(mine), [
            name for name in set(sys.modules) - before if name.startswith(("fake_", "axil_"))
        ]

    return go

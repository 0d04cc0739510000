"""``cache``: what is found again, what is not, what is never kept, and who shares."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from axil import Graph, Out, RootGraph, SpecError, Workflow
from axil.plugin import CompileOptions
from axil_files import Document, LoadOptions, spec_from_document
from axil_journals import MemoryJournal
from axil_wrappers import Cache, Fallback, Retry
from axil_wrappers.store import FolderStore, MemoryStore


@pytest.fixture(autouse=True)
def nothing_kept():
    Cache.memory.clear()


class Counting:
    """Counts its calls, and writes what it saw."""

    def __init__(self):
        self.calls = []

    async def __call__(self, inputs, attributes):
        self.calls.append(dict(inputs))
        return {"n": inputs["n"] * 2, "log": attributes["log"] + "."}


def hits(stage):
    return [chunk["hit"] for chunk in stage.watch.chunks if chunk["kind"] == "cache"]


def test_equal_inputs_are_answered_with_what_was_given_and_written_before(stage):
    body = Counting()
    graph = stage.graph(body, Cache())
    first = asyncio.run(stage.arun(graph, {"n": 3}))
    again = asyncio.run(stage.arun(graph, {"n": 3}))
    assert (
        (first.output, first.attributes)
        == (again.output, again.attributes)
        == ({"n": 6}, {"seen": 0, "log": "."})
    )
    assert (len(body.calls), hits(stage)) == (1, [False, True])


@pytest.mark.parametrize("changed", ["input", "attribute", "config", "version"])
def test_what_the_outcome_may_depend_on_counts(stage, changed):
    body = Counting()
    graph = stage.graph(body, Cache())
    asyncio.run(stage.arun(graph, {"n": 3}))
    if changed == "input":
        asyncio.run(stage.arun(graph, {"n": 4}))
    elif changed == "attribute":
        graph.invoke({"n": 3}, {"log": "x"})
    else:
        other = {
            "config": stage.graph(body, Cache(), Retry()),
            "version": stage.graph(body, Cache(version="2")),
        }[changed]
        asyncio.run(stage.arun(other, {"n": 3}))
    assert len(body.calls) == 2


def test_two_functions_of_one_name_are_two(stage):
    def make(answer):
        async def body():
            return {"n": answer}

        return body

    assert [stage.run(make(n), Cache()).output["n"] for n in (1, 2)] == [1, 2]


def test_only_the_fields_that_are_said_count(stage):
    body = Counting()
    graph = RootGraph("t", attributes={"log": "", "seen": 0})
    graph.create_node(body, name="work", wrappers=[Cache(inputs=["n"], attributes=["seen"])])
    graph.edge_from_entry("work", ["n", "trace"])
    graph.edge_to_exit("work", ["n"])
    graph.build()
    graph.invoke({"n": 1, "trace": "a"}, {"log": "x"})
    graph.invoke({"n": 1, "trace": "b"}, {"log": "y"})
    assert len(body.calls) == 1
    graph.invoke({"n": 1, "trace": "b"}, {"seen": 1})
    assert len(body.calls) == 2


def test_a_failure_is_not_kept(stage):
    calls = []

    async def body():
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError
        return {"n": len(calls)}

    graph = stage.graph(body, Cache())
    assert asyncio.run(stage.arun(graph)).status == "failed"
    assert [asyncio.run(stage.arun(graph)).output for _ in range(2)] == [{"n": 2}, {"n": 2}]


def test_equal_calls_at_the_same_time_share_one(stage):
    calls = []

    async def body(ctx):
        calls.append(1)
        await ctx.sleep(1)
        return {"n": 5}

    graph = stage.graph(body, Cache())

    async def main():
        return await asyncio.gather(*(stage.arun(graph) for _ in range(5)))

    assert [result.output for result in asyncio.run(main())] == [{"n": 5}] * 5
    assert (len(calls), sorted(hits(stage))) == (1, [False, True, True, True, True])


@given(
    fates=st.lists(st.sampled_from(["fails", "is cancelled", "ends well"]), min_size=1, max_size=6)
)
def test_a_waiting_call_takes_the_place_of_one_that_failed_or_was_cancelled(new_stage, fates):
    Cache.memory.clear()
    stage, calls = new_stage(), []

    async def body(ctx):
        fate = fates[len(calls)]
        calls.append(fate)
        await ctx.sleep(1)
        if fate == "fails":
            raise ConnectionError
        if fate == "is cancelled":
            runs[len(calls) - 1].cancel()
            await ctx.sleep(1)
        return {"n": 5}

    graph = stage.graph(body, Cache())
    runs = [graph.start({"n": 1}, clock=stage.clock) for _ in fates]

    async def main():
        return await asyncio.gather(*(run.result() for run in runs))

    results = asyncio.run(main())
    expected = {"fails": "failed", "is cancelled": "cancelled", "ends well": "done"}
    until = fates.index("ends well") if "ends well" in fates else len(fates)
    assert [result.status for result in results] == [expected[fate] for fate in fates[:until]] + [
        "done"
    ] * (len(fates) - until)
    assert len(calls) == min(until + 1, len(fates))


def test_what_plain_data_cannot_hold_is_not_kept_and_this_is_reported(stage, caplog):
    async def body():
        return {"n": object}

    graph = stage.graph(body, Cache())
    with caplog.at_level(logging.WARNING):
        assert asyncio.run(stage.arun(graph)).status == "done"
        asyncio.run(stage.arun(graph))
    assert len(caplog.records) == 1
    assert all("cannot be kept" in chunk["refused"] for chunk in stage.watch.chunks[1::2])


async def remembering(local):
    local["times"] = local.get("times", 0) + 1
    return {"n": local["times"]}


@pytest.mark.parametrize(("local", "calls"), [("refuse", 2), ("key", 1), ("ignore", 1)])
def test_a_node_that_keeps_something_for_itself(stage, local, calls):
    seen = []

    async def body(local):
        seen.append(1)
        return await remembering(local)

    graph = stage.graph(body, Cache(local=local))
    outputs = [asyncio.run(stage.arun(graph)).output for _ in range(2)]
    assert (outputs, len(seen)) == ([{"n": 1}, {"n": 1}], calls)


def loop_of(body, **cache):
    graph = RootGraph("t", cycles="allow")
    graph.create_node(body, name="work", wrappers=[Cache(**cache)])
    graph.edge_from_entry("work", {})
    graph.create_edge("work", "work", {}, when=lambda payload: True, process=None)
    graph.edge_to_exit("work", {}, trigger=False)
    graph.set_cycle_limit("work", 3, at_limit="exit")
    return graph.build()


def test_what_a_node_keeps_counts_round_by_round_if_it_is_part_of_the_key(stage):
    seen = []

    async def body(local):
        seen.append(dict(local))
        return await remembering(local)

    graph = loop_of(body, local="key")
    for _ in range(2):
        asyncio.run(graph.start({}, clock=stage.clock).result())
    assert seen == [{}, {"times": 1}, {"times": 2}]


def test_a_node_that_asks_people_is_refused_by_default(stage):
    async def body(ctx):
        return {"n": await ctx.ask("how many?")}

    with pytest.raises(SpecError, match="AX832"):
        stage.graph(body, Cache(), lane="human").plan  # noqa: B018  # compiling is what is tested

    class Channel:
        asked = 0

        async def ask(self, question):
            self.asked += 1
            return 4

    channel = Channel()
    for people, times in ((False, 2), (True, 3)):
        graph = stage.graph(body, Cache(people=people))
        for _ in range(2):
            assert asyncio.run(stage.arun(graph, channel=channel)).output == {"n": 4}
        assert channel.asked == times


def test_a_graph_with_a_person_inside_is_refused():
    outer = RootGraph("outer")
    inner = outer.create_node(Graph, name="sub", wrappers=[Cache()])
    inner.create_node(lambda: {}, name="ask", lane="human")
    inner.edge_from_entry("ask", {})
    inner.edge_to_exit("ask", {})
    outer.edge_from_entry(inner, {})
    outer.edge_to_exit(inner, {})
    with pytest.raises(SpecError, match="AX832"):
        outer.build()


def test_a_whole_graph_is_kept_with_what_it_wrote(stage):
    calls = []

    async def body(attributes):
        calls.append(1)
        return {"a": 1, "log": attributes["log"] + "in"}

    outer = RootGraph("outer", attributes={"log": ""})
    inner = outer.create_node(Graph, name="sub", wrappers=[Cache(version="1")])
    inner.create_node(body, name="x")
    inner.edge_from_entry("x", {})
    inner.edge_to_exit("x", ["a"])
    outer.edge_from_entry(inner, {})
    outer.edge_to_exit(inner, ["a"])
    outer.build()
    assert tuple(outer.invoke({})) == outer.invoke({}) == ({"a": 1}, {"log": "in"})
    assert len(calls) == 1


def test_where_to_go_is_kept_too(stage):
    calls = []

    async def route(inputs):
        calls.append(1)
        return Out(dict(inputs), {}, frozenset({"left"}))

    graph = RootGraph("t")
    graph.create_node(route, name="route", wrappers=[Cache()])
    graph.create_node(lambda: {"side": "left"}, name="left")
    graph.create_node(lambda: {"side": "right"}, name="right")
    graph.edge_from_entry("route", ["n"])
    for side in ("left", "right"):
        graph.create_edge("route", side, {})
        graph.edge_to_exit(side, ["side"])
    graph.build()
    assert [graph.invoke({"n": 1})[0] for _ in range(2)] == [{"side": "left"}] * 2
    assert len(calls) == 1


def test_a_hit_is_a_copy(stage):
    async def body():
        return {"n": [1, {"deep": 2}]}

    graph = stage.graph(body, Cache())
    first = asyncio.run(stage.arun(graph)).output
    first["n"][1]["deep"] = 99
    assert asyncio.run(stage.arun(graph)).output == {"n": [1, {"deep": 2}]}


def test_under_a_journal_a_finished_firing_is_not_asked_for_again(stage):
    journal, body = MemoryJournal(), Counting()
    graph = stage.graph(body, Cache())
    for _ in range(2):
        assert asyncio.run(stage.arun(graph, journal=journal, run_id="r")).output == {"n": 2}
    assert hits(stage) == [False]


# --------------------------------------------------------------------------------------------------


def test_the_ones_asked_for_longest_ago_are_dropped_first():
    store = MemoryStore(2)
    for name in "ab":
        store.put(name, name)
    store.get("a", None)
    store.put("c", "c")
    assert [store.get(name, None) for name in "abc"] == ["a", None, "c"]
    assert len(store) == 2


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_an_outcome_that_is_too_old_is_not_used(tmp_path, kind):
    now = 1000.0
    store = MemoryStore(9, lambda: now) if kind == "memory" else FolderStore(tmp_path, lambda: now)
    digest = "ab" * 32
    store.put(digest, "x")
    now += 10
    assert store.get(digest, 10) == "x"
    now += 1
    assert (store.get(digest, 10), store.get("cd" * 32, None)) == (None, None)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"format": 0}',
        "\x00",
        '{"format": 1, "key": "other", "at": 1, "outcome": "{}"}',
    ],
)
def test_a_file_that_is_none_of_ours_is_not_used(tmp_path, content):
    store, digest = FolderStore(tmp_path), "ab" * 32
    store.put(digest, "x")
    (file,) = tmp_path.rglob("*.json")
    file.write_text(content)
    assert store.get(digest, None) is None


@pytest.mark.parametrize("part", [{"outcome": "y"}, {"at": 1e12}, {"at": float("nan")}])
def test_an_outcome_that_was_changed_since_it_was_written_is_not_used(tmp_path, part):
    store, digest = FolderStore(tmp_path), "ab" * 32
    store.put(digest, "x")
    (file,) = tmp_path.rglob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **part}))
    assert store.get(digest, None) is None


def test_a_folder_that_cannot_be_written_to_costs_no_outcome(tmp_path, stage, caplog):
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        assert stage.run(
            Counting(), Cache(directory=str(tmp_path / "file" / "x"), version="1")
        ).output == {"n": 2}
    assert "cannot be written" in caplog.text


def test_a_folder_holds_plain_json_and_outlasts_the_workflow(tmp_path, stage):
    bodies = [Counting(), Counting()]
    for body in bodies:
        assert stage.run(body, Cache(directory=str(tmp_path), version="1")).output == {"n": 2}
    assert [len(body.calls) for body in bodies] == [1, 0]
    (file,) = tmp_path.rglob("*.json")
    assert json.loads(json.loads(file.read_text())["outcome"])["output"] == {"n": 2, "log": "."}
    assert [each for each in tmp_path.rglob("*") if each.suffix == ".part"] == []


def test_a_function_in_a_folder_needs_a_version(tmp_path, stage):
    with pytest.raises(SpecError, match="AX833"):
        # compiling is what is tested
        stage.graph(Counting(), Cache(directory=str(tmp_path))).plan  # noqa: B018


WRITER = """
import sys
from pathlib import Path
from axil_wrappers.store import FolderStore
store, digest = FolderStore(Path(sys.argv[1])), "ab" * 32
text = sys.argv[2] * 100_000
for _ in range(100):
    store.put(digest, text)
    found = store.get(digest, None)
    assert found is not None and len(set(found)) == 1 and len(found) == 100_000
"""


def test_processes_share_a_folder_and_never_read_half_a_file(tmp_path):
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), letter]) for letter in "abc"
    ]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert len(list(tmp_path.rglob("*"))) == 2


@pytest.mark.parametrize(
    ("directory", "fits"),
    [
        (".axil/kept", True),
        (".axil/a/../kept", True),
        ("kept", False),
        ("../kept", False),
        ("/elsewhere", False),
    ],
)
def test_a_file_names_folders_below_axil_only(tmp_path, registry, directory, fits):
    async def say(messages):
        return "hello"

    registry.register("nodes", "say", say)
    nodes = [
        {
            "id": "A",
            "type": "say",
            "wrappers": [{"type": "cache", "config": {"directory": directory}}],
        }
    ]
    data = {"graph": {"id": "t", "nodes": nodes, "edges": [], "start": ["A"], "end": ["A"]}}
    spec = spec_from_document(
        Document(data=data, name="flow.json"), LoadOptions(folder=str(tmp_path), root=str(tmp_path))
    )
    workflow = Workflow(spec, CompileOptions(registry=registry, folder=str(tmp_path)))
    if fits:
        assert workflow.invoke("x")[0] == "hello"
        assert len(list((tmp_path / ".axil/kept").rglob("*.json"))) == 1
    else:
        with pytest.raises(SpecError, match="AX137"):
            workflow.invoke("x")


def test_it_composes_with_what_may_fail_inside(stage):
    calls = []

    async def body():
        calls.append(1)
        raise ConnectionError

    graph = stage.graph(body, Cache(), Fallback(value={"n": 0}), Retry(tries=2))
    assert [asyncio.run(stage.arun(graph)).output for _ in range(2)] == [{"n": 0}, {"n": 0}]
    assert len(calls) == 2

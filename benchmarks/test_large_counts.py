"""Laws of large journals and engines, by counts of SQLite's steps and of calls; ``large.py``
measures the large ends themselves.
"""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import default_registry
from axil_files import load, load_spec
from axil_journals import check_workflow
from axil_sqlite import SqliteJournal

from .counting import Calls
from .large import asking, chain, document, fill

SMALL, LARGE = 100, 1_000


@pytest.fixture(scope="module")
def journals(tmp_path_factory) -> dict[int, Path]:
    """Journals of few and of many equal runs."""
    found: dict[int, Path] = {}
    for runs in (SMALL, LARGE):
        found[runs] = tmp_path_factory.mktemp(f"runs-{runs}")
        fill(found[runs], chain(8), runs)
    return found


def steps(folder: Path, act: Callable[[SqliteJournal], Any]) -> int:
    """Return how many hundreds of SQLite's instructions an act takes."""
    journal, count = SqliteJournal(folder), 0

    def tally() -> int:
        nonlocal count
        count += 1
        return 0

    journal.infos([])
    for connection in (journal.writer.store.reader, journal.writer.store.connection):
        connection.set_progress_handler(tally, 100)
    try:
        act(journal)
    finally:
        journal.close()
    return count


@pytest.mark.parametrize(
    ("what", "act"),
    [
        ("a page of runs", lambda journal: journal.runs(limit=10)),
        ("a page of those that are done", lambda journal: journal.runs(status=["done"], limit=10)),
        ("the page behind a run", lambda journal: journal.runs(after="run-30", limit=10)),
        ("the entries of a run", lambda journal: journal.entries("run-30")),
        ("what is known of a run", lambda journal: journal.infos(["run-30"])),
        ("a run resumed", lambda journal: asyncio.run(
            chain(8).run({"n": 0}, journal=journal, run_id="run-31"))),
        ("a run forgotten", lambda journal: journal.forget("run-40")),
    ],
)  # fmt: skip
def test_a_journal_of_ten_times_the_runs_takes_as_many_steps(journals, what, act):
    few, many = (steps(journals[runs], act) for runs in (SMALL, LARGE))
    assert many <= few + 3, what


def test_as_many_runs_are_looked_at_as_there_is_room_for(journals):
    def take(journal: SqliteJournal) -> None:
        with journal.writer.store.writing() as connection:
            connection.execute("update runs set due = 0")
        taken.append(journal.take(5, 1.0))

    taken: list[Any] = []
    few, many = (
        steps(journals[runs], take) - steps(journals[runs], lambda journal: _all_due(journal))
        for runs in (SMALL, LARGE)
    )
    assert [len(each) for each in taken] == [5, 5]
    assert many <= few + 3


def _all_due(journal: SqliteJournal) -> None:
    with journal.writer.store.writing() as connection:
        connection.execute("update runs set due = 0")


def test_an_engine_that_starts_reads_no_run_that_waits(tmp_path):
    """An engine loads at its start what is due, however many runs wait."""
    from axil_journals import LocalEngine

    fill(tmp_path, asking(), 300)
    read: list[str] = []

    class Reading(SqliteJournal):
        def read(self, run_id: str) -> Any:
            read.append(run_id)
            return super().read(run_id)

    async def go() -> Any:
        async with LocalEngine(Reading(tmp_path), [asking()]) as engine:
            await engine.idle()
            assert read == []
            (question,) = engine.get("run-3").questions
            await engine.answer("run-3", {question.id: 7})
            return await engine.result("run-3")

    assert asyncio.run(go()).output == {"n": 7}
    assert set(read) == {"run-3"}


def test_reading_a_file_takes_as_many_calls_a_node_in_a_large_one(tmp_path):
    def calls(nodes: int) -> int:
        path = tmp_path / f"{nodes}.json"
        path.write_text(json.dumps(document(nodes)))
        with Calls() as made:
            load_spec(path)
        return made.count

    calls(2)  # what is imported
    base, few, many = calls(10), calls(110), calls(1010)
    assert (many - base) / 1000 <= (few - base) / 100 * 1.05


def behind_conditions(size: int) -> str:
    """Return the text of a chain whose nodes lead to a join, too, each edge with a condition."""
    data = document(size)
    graph = data["graph"]
    graph["nodes"].append({"id": "last", "type": "passthrough", "join": "all"})
    graph["edges"] += [{"from": f"n{i}", "to": "last"} for i in range(size)]
    return conditioned(data)


def left_anywhere(size: int) -> str:
    """Return the text of a cycle that each of its nodes may leave."""
    data = document(size)
    graph = data["graph"]
    graph["nodes"].append({"id": "out", "type": "passthrough"})
    graph["edges"].append({"from": f"n{size - 1}", "to": "n0"})
    graph["edges"] += [{"from": f"n{i}", "to": "out"} for i in range(size)]
    return conditioned({"graph": {**graph, "end": ["out"]}})


def conditioned(data: dict[str, Any]) -> str:
    for number, edge in enumerate(data["graph"]["edges"]):
        words = {"any": [f"word {number}"]}
        edge["condition"] = {"type": "keyword", "config": words}
    return json.dumps(data)


def through_the_state(size: int) -> str:
    """Return the text of functions that each read the field which the one before them wrote."""
    lines = ["from axil import RootGraph", "graph = RootGraph('g')"]
    for i in range(size):
        read = f"attributes['f{i - 1}']" if i else "0"
        lines += [f"def n{i}(attributes):", f"    return {{'f{i}': {read}}}"]
        lines += [f"graph.create_node(n{i}, name='n{i}', push_keys={{'f{i}': ''}})"]
        lines += [f"graph.create_edge('n{i - 1}', 'n{i}', {{}})" if i else ""]
    ends = ["graph.edge_from_entry('n0', {})", f"graph.edge_to_exit('n{size - 1}', {{}})"]
    return "\n".join([*lines, *ends])


def gathered(size: int) -> str:
    """Return the text of functions that each give a field, and one that reads them all."""
    lines = ["from axil import RootGraph", "graph = RootGraph('g')"]
    lines += ["def first(inputs):", "    return {'x': inputs['x']}"]
    fields = ", ".join(f"inputs['f{i}']" for i in range(size))
    lines += ["def last(inputs):", f"    return {{'y': [{fields}]}}"]
    lines += ["graph.create_node(first, name='first')", "graph.create_node(last, name='last')"]
    for i in range(size):
        lines += [f"def n{i}(inputs):", f"    return {{'f{i}': inputs['x']}}"]
        lines += [f"graph.create_node(n{i}, name='n{i}')"]
        lines += [f"graph.create_edge('first', 'n{i}', ['x'])"]
        lines += [f"graph.create_edge('n{i}', 'last', ['f{i}'])"]
    ends = ["graph.edge_from_entry('first', ['x'])", "graph.edge_to_exit('last', ['y'])"]
    return "\n".join([*lines, *ends])


@pytest.mark.parametrize(
    ("text", "suffix"),
    [(behind_conditions, "json"), (left_anywhere, "json"),
     (through_the_state, "py"), (gathered, "py")],
)  # fmt: skip
def test_proofs_take_as_many_calls_a_node_in_a_large_graph(tmp_path, text, suffix):
    def calls(size: int) -> int:
        path = tmp_path / f"{text.__name__}_{size}.{suffix}"
        path.write_text(text(size))
        made = (
            (lambda: load(path)) if suffix == "json" else runpy.run_path(str(path))["graph"].build
        )
        with Calls() as counted:
            assert check_workflow(made, default_registry()).problems == ()
        return counted.count

    calls(2)  # what is imported
    few, many, more = calls(40), calls(80), calls(160)
    assert more - many <= 2.1 * (many - few)

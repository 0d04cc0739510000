"""Entries, writers, holders, threads: what any journal has to do, and what this one adds."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from axil import RootGraph
from axil.plugin import JournalError
from axil_control import Loop, Map
from axil_journals import Entry, GroupCommit, Queue, RunExists, decode_value, encode_value
from axil_sqlite import SqliteJournal, parts
from axil_sqlite.writer import Writer


def done(frame: Any, node: str, ordinal: Any = (), **data: Any) -> Entry:
    return Entry("done", frame, node, ordinal, data)


async def safe(run_writer: Any) -> None:
    if (waiting := run_writer.kept()) is not None:
        await waiting


def write(journal: SqliteJournal, entries: list[Entry], run_id: str = "r") -> None:
    async def go() -> None:
        run_writer = journal.open(run_id)
        for entry in entries:
            run_writer.append(entry)
        await safe(run_writer)
        run_writer.close()

    asyncio.run(go())


def chain(n: int = 3) -> RootGraph:
    graph = RootGraph("chain")

    async def more(inputs: Any) -> dict[str, int]:
        return {"x": inputs["x"] + 1}

    nodes = [graph.create_node(more, name=f"n{i}") for i in range(n)]
    graph.edge_from_entry(nodes[0], keys={"x": ""})
    for a, b in pairwise(nodes):
        graph.create_edge(a, b, keys={"x": ""})
    graph.edge_to_exit(nodes[-1], keys={"x": ""})
    graph.build()
    return graph


# ------------------------------------------------------------------------------------------------ e


def test_making_one_has_no_effects_and_the_folder_is_made_by_the_first_use(tmp_path):
    journal = SqliteJournal(tmp_path / "a/b")
    assert list(tmp_path.iterdir()) == []
    assert list(journal.runs()) == []
    assert {path.name for path in (tmp_path / "a/b").iterdir()} >= {"runs.db", ".gitignore", "lock"}
    journal.close()
    journal.close()


def test_entries_come_back_as_they_were_from_another_journal_too(journal):
    entries = [
        Entry("run", data={"graph": "g"}),
        done((), "a", x=1),
        done(("c", 3, "sub"), "b", (0, -2, 1), deep=[{"k": None}]),
    ]
    write(journal, entries)
    assert list(journal.entries("r")) == entries
    assert list(journal.entries("nobody")) == []
    journal.close()
    again = SqliteJournal(journal.config)
    assert list(again.entries("r")) == entries
    again.close()


texts = st.text(st.characters(codec=None), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts, inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


@settings(max_examples=30)
@given(st.lists(values, max_size=5))
def test_what_the_kernel_can_encode_is_kept_exactly(tmp_path_factory, several):
    """Lone surrogates, NUL, NaN, huge integers, bytes: as they were."""
    journal = SqliteJournal(tmp_path_factory.mktemp("j"), sync="normal")
    write(
        journal,
        [
            Entry("step", (), "a", (), {"name": str(i), "value": encode_value(value)})
            for i, value in enumerate(several)
        ],
    )
    back = [decode_value(entry.data["value"]) for entry in journal.entries("r")]
    assert repr(back) == repr(several)
    journal.close()


def test_what_is_not_json_data_is_refused_and_nothing_else_is_lost(journal):
    async def go() -> None:
        run_writer = journal.open("r")
        run_writer.append(Entry("run"))
        with pytest.raises(JournalError, match="AX501"):
            run_writer.append(done((), "a", value=float("nan")))
        with pytest.raises(JournalError, match="AX501"):
            run_writer.append(done((), "a", value=object()))
        run_writer.append(done((), "b"))
        await safe(run_writer)
        run_writer.close()

    asyncio.run(go())
    assert [entry.node for entry in journal.entries("r")] == ["", "b"]


def parts_of(journal: SqliteJournal) -> list[bytes]:
    return [body for (body,) in journal.query("select body from parts where kind = 'part'")]


def test_what_long_entries_share_is_stored_once_and_is_gone_with_the_last_of_them(journal):
    texts = [f"{number} {'x' * (number * 97 % 3000)}" for number in range(300)]
    one, two = texts[:-40], texts[7:]
    write(journal, [Entry("run"), done((), "a", value=one)])
    before = len(parts_of(journal))
    write(journal, [Entry("run"), done((), "a", value=two)], "two")
    added = len(parts_of(journal)) - before
    assert before > 100
    assert added < before / 4
    assert journal.entries("r")[1].data["value"] == one
    assert journal.entries("two")[1].data["value"] == two
    assert list(journal.examine()) == []
    journal.forget("r")
    assert journal.entries("two")[1].data["value"] == two
    assert list(journal.examine()) == []
    journal.forget("two")
    assert journal.query("select count(*) from parts") == [(0,)]


def test_a_long_input_that_replaces_another_is_counted_as_part_of_its_run(journal):
    place = {"queue": "calm", "once": "save", "debounce_seconds": 5.0, "start_at": 50.0}

    def begin(run_id: str, input: list[str], **more: Any) -> None:
        write(journal, [Entry("run", data={"graph": "g", "input": input, **more})], run_id)

    texts = [f"{number} {'x' * (number * 97 % 3000)}" for number in range(300)]
    old, new = texts[:-40], texts[7:]
    begin("r", old, place=place)
    with pytest.raises(RunExists):
        begin("again", new, place=place)
    begin("other", new)
    assert list(journal.examine()) == []
    journal.forget("other")
    assert journal.entries("r")[0].data["input"] == new
    assert list(journal.examine()) == []
    journal.forget("r")
    assert journal.query("select count(*) from parts") == [(0,)]


@given(
    st.lists(st.text(st.characters(max_codepoint=600), max_size=60), max_size=12),
    st.integers(0, 9_000),
    st.integers(1, 200),
)
@settings(deadline=None, max_examples=40)
def test_any_long_text_comes_back_from_its_parts(texts, size, times):
    data = json.dumps({"v": [*texts * times, '","' * size, ["x" * size, *texts]]}).encode()
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("create table entries (body)" + ";" + parts.TABLES)
        body = parts.put(connection, parts.cut(data))
        known: dict[str, parts.Part] = {}
        assert parts.get(connection, body, KeyError, known=known) == data
        connection.execute("delete from parts")
        assert parts.get(connection, body, KeyError, known=known) == data


def test_a_value_in_a_file_of_its_own_as_version_1_wrote_it_is_read(journal):
    write(journal, [Entry("run"), done((), "a", value="x" * 3_000)])
    [(body,)] = journal.query("select body from entries where kind = 'done'")
    name = hashlib.sha256(body.encode()).hexdigest()
    path = journal.config.folder / "values" / name[:2] / name
    path.parent.mkdir(parents=True)
    path.write_text(body)
    with journal.writer.lock, journal.writer.store.writing() as connection:
        connection.execute("update entries set body = ? where kind = 'done'", (f"@{name}",))
    assert journal.entries("r")[1].data["value"] == "x" * 3_000
    path.write_text("y" * 100_000)
    assert [damage.good for damage in journal.examine()] == [1]
    journal.forget("r")
    assert journal.shrink() == 1
    assert not path.exists()


def test_superseded_entries_are_left_out_for_who_goes_on_and_kept_for_who_looks_back(tmp_path):
    entries = [done(("c", 0), "a"), Entry("round", (), "c", (), {"round": 0}), done(("c", 1), "a")]
    journal = SqliteJournal(tmp_path, sync="normal")
    write(journal, entries)
    assert list(journal.open("r").entries) == entries[1:]
    assert list(journal.entries("r")) == entries
    journal.close()


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_an_entry_is_deleted_only_when_what_supersedes_it_is_safe(tmp_path, monkeypatch, sync):
    """Also if the superseding entry is appended while a commit is under way."""
    journal = SqliteJournal(tmp_path, detail=0, sync=sync)
    entries = [Entry("run"), done(("c", 0), "a"), Entry("round", (), "c", (), {"round": 0})]
    put = Writer._put

    async def go() -> None:
        run_writer = journal.open("r")
        for entry in entries[:2]:
            run_writer.append(entry)

        def meanwhile(*args: Any) -> None:
            monkeypatch.setattr(Writer, "_put", put)
            run_writer.append(entries[2])
            put(*args)

        monkeypatch.setattr(Writer, "_put", meanwhile)
        await safe(run_writer)
        assert list(journal.entries("r")) == entries[:2]  # what a crash would leave
        await safe(run_writer)
        assert list(journal.entries("r")) == [entries[0], entries[2]]
        run_writer.close()

    asyncio.run(go())
    journal.close()


def loop(rounds: int) -> RootGraph:
    turning = Loop("loop", max_iterations=rounds)

    def work(attributes: Any) -> dict[str, str]:
        attributes["n"] += 1
        return {"said": "x" * 100}

    worker = turning.create_node(work, name="w", pull_keys={"n": ""}, push_keys={"n": ""})
    turning.edge_from_controller(worker, keys={})
    turning.edge_to_controller(worker, keys={"said": ""})
    graph = RootGraph("g", attributes={"n": 0})
    graph.create_node(turning)
    graph.edge_from_entry(turning, keys={})
    graph.edge_to_exit(turning, keys={"said": ""})
    graph.build()
    return graph


def test_the_database_of_a_long_loop_is_bounded(tmp_path):
    def rows(rounds: int) -> int:
        journal = SqliteJournal(tmp_path / str(rounds), sync="normal", detail=50)
        asyncio.run(loop(rounds).run({}, journal=journal, run_id="r"))
        [(count,)] = journal.query("select count(*) from entries")
        journal.close()
        return count

    assert rows(2000) <= rows(300) + 20


# ------------------------------------------------------------------------------------------------ h


def test_a_run_is_held_by_one_book_at_a_time(journal):
    async def go() -> None:
        first, second = journal.open("r"), journal.open("r")
        first.append(Entry("run"))
        await safe(first)
        second.append(Entry("run"))
        with pytest.raises(JournalError, match="AX506"):
            await safe(second)
        with pytest.raises(JournalError, match="AX506"):
            second.append(Entry("ended"))
        second.close()
        first.close()
        late = journal.open("r")
        late.append(Entry("resumed"))
        await safe(late)
        late.close()

    asyncio.run(go())
    assert [entry.kind for entry in journal.entries("r")] == ["run", "resumed"]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_run_is_opened_again_with_all_that_its_closed_book_has_still_to_write(tmp_path, is_first):
    """A run that was cancelled may be resumed before the writer's thread has come to it."""

    async def go() -> None:
        journal = SqliteJournal(tmp_path, sync="full")
        write_first = [Entry("run"), done((), "a")]
        run_writer = journal.open("r")
        for entry in write_first[: 1 if is_first else 2]:
            run_writer.append(entry)
        if not is_first:
            await safe(run_writer)
            run_writer.append(done((), "b"))
        with journal.writer.lock:  # the thread has to wait
            run_writer.close()
            again = journal.open("r")
            assert list(again.entries) == list(journal.entries("r"))
            assert len(again.entries) == (1 if is_first else 3)
        again.append(done((), "c"))
        await safe(again)
        again.close()
        assert [entry.node for entry in journal.entries("r")][-1] == "c"
        journal.close()

    asyncio.run(go())


def test_a_book_that_is_closed_while_it_claims_its_run_lets_go_of_it(tmp_path, monkeypatch):
    put = Writer._put

    async def go() -> None:
        journal = SqliteJournal(tmp_path, sync="full")
        run_writer = journal.open("r")

        def meanwhile(writer: Writer, connection: Any, taken: Any) -> None:
            monkeypatch.setattr(Writer, "_put", put)
            run_writer.close()  # its rows are taken, and it is not said yet that it holds the run
            put(writer, connection, taken)

        monkeypatch.setattr(Writer, "_put", meanwhile)
        run_writer.append(Entry("run"))
        await safe(run_writer)
        again = journal.open("r")
        again.append(Entry("resumed"))
        await safe(again)
        again.close()
        journal.close()

    asyncio.run(go())


def test_a_book_that_is_closed_while_a_commit_is_under_way_is_written_to_its_end(
    tmp_path, monkeypatch
):
    """An entry that was appended after the rows were taken is not in that commit: the run is not
    released, nor has it ended.
    """
    put, seen = Writer._put, list[Any]()

    async def go() -> None:
        journal = SqliteJournal(tmp_path, sync="full")
        run_writer = journal.open("r")

        def meanwhile(writer: Writer, connection: Any, taken: Any) -> None:
            monkeypatch.setattr(Writer, "_put", put)
            run_writer.append(Entry("ended", data={"status": "done"}))
            run_writer.close()
            put(writer, connection, taken)
            seen.append(connection.execute("select status, owner = '' from runs").fetchone())

        monkeypatch.setattr(Writer, "_put", meanwhile)
        run_writer.append(Entry("run"))
        await safe(run_writer)
        again = journal.open("r")
        assert [entry.kind for entry in again.entries] == ["run", "ended"]
        again.append(Entry("resumed"))
        await safe(again)
        again.close()
        journal.close()

    asyncio.run(go())
    assert seen == [("running", 0)]


def test_a_released_book_is_not_written_again_when_its_run_has_a_new_holder(journal):
    run_writer = journal.open("r")
    run_writer.append(Entry("run", data={"graph": "g"}))
    run_writer.close()
    assert list(journal.take(1, time.time())) == ["r"]
    journal.writer.commit([run_writer])  # as the thread does that was asked for it before
    assert not journal.take(1, time.time())


def test_a_book_from_before_somebody_else_wrote_is_refused(journal):
    write(journal, [Entry("run")])

    async def go() -> None:
        late = journal.open("r")
        run_writer = journal.open("r")
        run_writer.append(Entry("resumed"))
        await safe(run_writer)
        run_writer.close()
        late.append(Entry("resumed"))
        with pytest.raises(JournalError, match=r"AX506.*since its journal was read"):
            await safe(late)

    asyncio.run(go())


def test_another_process_gets_the_name_of_the_owner(tmp_path):
    journal = SqliteJournal(tmp_path)

    async def go() -> str:
        run_writer = journal.open("r")
        run_writer.append(Entry("run"))
        await safe(run_writer)
        return await asyncio.to_thread(python, tmp_path, "await book_of('r', Entry('resumed'))")

    assert f"process {os.getpid()} on" in asyncio.run(go())
    journal.close()


@pytest.mark.parametrize("written_ago", [0.0, 2.0])
def test_after_a_takeover_by_another_process_the_old_holder_commits_nothing(tmp_path, written_ago):
    """Neither where it only counts on, nor where all of the row of its run would be written."""
    journal = SqliteJournal(tmp_path)
    take = """
    import axil_sqlite.writer
    axil_sqlite.writer.SILENCE = -1.0
    await book_of('r', Entry('resumed'))
    """

    async def go() -> None:
        old = journal.open("r")
        old.append(Entry("run"))
        await safe(old)
        old.append(done((), "a"))
        await safe(old)
        await asyncio.to_thread(python, tmp_path, textwrap.dedent(take))
        old.touched -= written_ago
        old.append(done((), "b"))
        with pytest.raises(JournalError, match=r"AX506.*taken over"):
            await safe(old)
        with pytest.raises(JournalError, match=r"AX506.*taken over"):
            old.append(done((), "c"))

    asyncio.run(go())
    assert [(entry.kind, entry.node) for entry in journal.entries("r")] == [
        ("run", ""), ("done", "a"), ("resumed", ""),
    ]  # fmt: skip
    [info] = journal.runs()
    assert (info.entries, info.status) == (3, "open")
    journal.close()


def test_of_a_run_at_work_the_row_without_its_count_is_written_once_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr("axil_sqlite.writer.FRESH", 600.0)
    journal = SqliteJournal(tmp_path)

    async def go() -> None:
        at_work, seen = journal.open("r"), list[tuple[int, float]]()
        for number in range(4):
            at_work.append(done((), f"n{number}") if number else Entry("run"))
            at_work.touched -= 601.0 if number == 3 else 0.0
            await safe(at_work)
            [info] = journal.runs()
            seen.append((info.entries, info.touched))
        entries, (first, second, third, fourth) = zip(*seen, strict=True)
        assert entries == (1, 2, 3, 4)
        assert first == second == third < fourth

    asyncio.run(go())
    journal.close()


def test_an_owner_stopped_for_too_long_is_overtaken_and_notices(tmp_path, monkeypatch):
    slow, quick = SqliteJournal(tmp_path), SqliteJournal(tmp_path)

    async def go() -> None:
        zombie = slow.open("r")
        zombie.append(Entry("run"))
        await safe(zombie)
        other = quick.open("r")
        other.append(Entry("resumed"))
        with pytest.raises(JournalError, match="AX506"):
            await safe(other)
        monkeypatch.setattr("axil_sqlite.writer.SILENCE", -1.0)  # it has shown no life for so long
        other = quick.open("r")
        other.append(Entry("resumed"))
        await safe(other)
        zombie.append(done((), "a"))
        with pytest.raises(JournalError, match=r"AX506.*taken over"):
            await safe(zombie)
        other.append(done((), "b"))
        await safe(other)

    asyncio.run(go())
    assert [entry.kind for entry in quick.entries("r")] == ["run", "resumed", "done"]
    slow.close()
    quick.close()


PRELUDE = """
import asyncio, os, sys
from axil_journals import Entry
from axil.plugin import JournalError
from axil_sqlite import SqliteJournal, parts
journal = SqliteJournal(sys.argv[1])
async def book_of(run_id, *entries):
    run_writer = journal.open(run_id)
    for entry in entries:
        run_writer.append(entry)
    if (waiting := run_writer.kept()) is not None:
        await waiting
    return run_writer
async def main():
"""


def python(folder: Path, body: str) -> str:
    """Return what a process of its own prints that does ``body`` with a journal in ``folder``."""
    with started(folder, body) as child:
        return child.communicate(timeout=600)[0]


def started(folder: Path, body: str) -> subprocess.Popen[str]:
    code = (
        PRELUDE
        + textwrap.indent(textwrap.dedent(body), "    ")
        + "\ntry:\n    asyncio.run(main())\nexcept JournalError as e:\n    print(e)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_holder_that_died_is_replaced_at_once(tmp_path):
    assert python(tmp_path, "await book_of('r', Entry('run'))\nos._exit(9)") == ""
    journal = SqliteJournal(tmp_path)
    assert journal.runs()[0].status == "open"
    write(journal, [Entry("resumed")])
    assert [entry.kind for entry in journal.entries("r")] == ["run", "resumed"]
    journal.close()


def test_many_processes_write_side_by_side_and_nothing_is_lost(tmp_path):
    SqliteJournal(tmp_path).runs()
    body = (
        "for i in range(40):\n    await book_of(f'{os.getpid()}-{i}', Entry('run'), "
        "Entry('done', (), 'a'))"
    )
    code = PRELUDE + textwrap.indent(body, "    ") + "\nasyncio.run(main())"
    jobs = [subprocess.Popen([sys.executable, "-c", code, tmp_path]) for _ in range(4)]
    assert [job.wait(timeout=600) for job in jobs] == [0] * 4
    journal = SqliteJournal(tmp_path)
    assert [len(journal.entries(info.run_id)) for info in journal.runs()] == [2] * 160
    assert list(journal.examine()) == []
    journal.close()


# ------------------------------------------------------------------------------------------------ r


def test_runs_are_listed_with_how_they_ended_newest_first(journal):
    graph = chain()
    asyncio.run(graph.run({"x": 0}, journal=journal, run_id="first"))
    asyncio.run(graph.run({"x": 0}, journal=journal, run_id="second", thread="t"))
    infos = journal.runs()
    assert [(info.run_id, info.graph, info.status, info.thread) for info in infos] == [
        ("second", "chain", "done", "t"),
        ("first", "chain", "done", ""),
    ]
    assert infos[0].entries == 5
    assert infos[0].begun <= infos[0].touched


def test_a_run_goes_on_in_another_process_and_finished_nodes_do_not(tmp_path):
    body = """
    from axil import RootGraph
    ran = []
    graph = RootGraph("g")
    async def one(): ran.append("one"); return {"a": 1}
    async def two(inputs, ctx):
        ran.append("two")
        return {"b": inputs["a"] + int(await ctx.ask("how much?"))}
    a, b = graph.create_node(one, name="one"), graph.create_node(two, name="two")
    graph.edge_from_entry(a, keys={})
    graph.create_edge(a, b, keys={"a": ""})
    graph.edge_to_exit(b, keys={"b": ""})
    graph.build()
    if not journal.entries("r"):
        result = await graph.run({}, journal=journal, run_id="r")
    else:
        result = await graph.resume("r", journal=journal, answers={"two?1": "41"})
    print(result.status, result.output, ran)
    """
    assert python(tmp_path, body).strip() == "paused None ['one', 'two']"
    assert python(tmp_path, body).strip() == "done {'b': 42} ['two']"


def test_a_thread_goes_on_across_processes_and_of_two_that_begin_at_once_one_is_refused(tmp_path):
    body = """
    from axil import RootGraph
    graph = RootGraph("g", attributes={"n": 0})
    def count(attributes): attributes["n"] += 1; return {"n": attributes["n"]}
    a = graph.create_node(count, name="a", pull_keys={"n": ""}, push_keys={"n": ""})
    graph.edge_from_entry(a, keys={}); graph.edge_to_exit(a, keys={"n": ""}); graph.build()
    print((await graph.run({}, journal=journal, thread="ada")).output["n"])
    """
    assert [python(tmp_path, body).strip() for _ in range(3)] == ["1", "2", "3"]
    journal, graph = SqliteJournal(tmp_path), loop(1)

    async def both() -> list[Any]:
        flow = graph
        runs = [flow.start({}, journal=journal, thread="new") for _ in range(2)]
        return await asyncio.gather(*(run.result() for run in runs), return_exceptions=True)

    one, two = asyncio.run(both())
    assert one.status == "done"
    assert isinstance(two, JournalError)
    assert two.id == "AX508"
    journal.close()


def test_of_many_processes_on_one_thread_one_at_a_time_is_let_in(tmp_path):
    body = """
    from axil import RootGraph
    from axil.plugin import JournalError
    import pathlib, sys
    place = pathlib.Path(sys.argv[1], "at-work")
    graph = RootGraph("g", attributes={"n": 0, "log": []})
    async def count(attributes, ctx):
        place.touch(exist_ok=False)  # two at once would meet here
        await asyncio.sleep(0)
        place.unlink()
        attributes["n"] += 1
        return {}
    a = graph.create_node(count, name="a", pull_keys={"n": ""}, push_keys={"n": ""})
    graph.edge_from_entry(a, keys={}); graph.edge_to_exit(a, keys={}); graph.build()
    done = 0
    while done < 5:
        try:
            done += (await graph.run({}, journal=journal, thread="ada")).status == "done"
        except JournalError as error:
            assert error.id in ("AX508", "AX509"), error
    print(done)
    """
    children = [started(tmp_path, body) for _ in range(3)]
    assert [child.communicate(timeout=600)[0].strip() for child in children] == ["5"] * 3
    journal = SqliteJournal(tmp_path)
    ended = [
        next(e for e in journal.entries(run) if e.kind == "ended") for run in journal.thread("ada")
    ]
    assert [entry.data["state"]["n"] for entry in ended] == list(range(1, 16))
    journal.close()


def test_a_forgotten_run_is_gone_and_one_at_work_is_not_forgotten(journal):
    with pytest.raises(JournalError, match="AX503"):
        journal.forget("r")

    async def go() -> None:
        run_writer = journal.open("r")
        run_writer.append(Entry("run"))
        await safe(run_writer)
        with pytest.raises(JournalError, match="AX506"):
            journal.forget("r")
        run_writer.close()

    asyncio.run(go())
    journal.forget("r")
    assert (list(journal.runs()), list(journal.entries("r"))) == ([], [])


def test_a_hundred_runs_at_once_share_their_commits_and_lose_nothing(tmp_path):
    journal, graph = SqliteJournal(tmp_path), chain(10)

    async def many() -> list[Any]:
        return await asyncio.gather(*(graph.run({"x": i}, journal=journal) for i in range(100)))

    results = asyncio.run(many())
    assert sorted(result.output["x"] for result in results) == list(range(10, 110))
    assert journal.writer.commits < 100 * 10 / 4
    assert {info.entries for info in journal.runs()} == {12}
    journal.close()


def test_event_loops_one_after_the_other_and_side_by_side_use_one_journal(journal):
    graph = chain()
    for _ in range(2):
        assert asyncio.run(graph.run({"x": 1}, journal=journal)).output == {"x": 4}

    async def side_by_side() -> list[Any]:
        ways = (
            asyncio.to_thread(asyncio.run, graph.run({"x": i}, journal=journal)) for i in range(8)
        )
        return await asyncio.gather(*ways)

    assert sorted(result.output["x"] for result in asyncio.run(side_by_side())) == list(
        range(3, 11)
    )


def test_a_cancelled_run_leaves_an_open_run_that_goes_on(journal):
    graph = RootGraph("g")
    stuck, ran = asyncio.Event(), list[str]()

    async def first() -> dict[str, int]:
        ran.append("first")
        return {"a": 1}

    async def waits(inputs: Any) -> dict[str, int]:
        ran.append("second")
        if ran.count("second") == 1:
            stuck.set()
            await asyncio.sleep(60)
        return {"b": inputs["a"] + 1}

    a, b = graph.create_node(first, name="a"), graph.create_node(waits, name="b")
    graph.edge_from_entry(a, keys={})
    graph.create_edge(a, b, keys={"a": ""})
    graph.edge_to_exit(b, keys={"b": ""})
    graph.build()

    async def go() -> Any:
        job = asyncio.ensure_future(graph.run({}, journal=journal, run_id="r"))
        await stuck.wait()
        job.cancel()
        await asyncio.wait([job])
        return await graph.resume("r", journal=journal)

    assert asyncio.run(go()).output == {"b": 2}
    assert ran == ["first", "second", "second"]


# ------------------------------------------------------------------------------------------------ w


def test_a_full_disk_breaks_the_run_and_not_the_journal(tmp_path):
    journal, graph = SqliteJournal(tmp_path), chain(50)
    journal.writer.store.connection.execute("pragma max_page_count = 16")
    with pytest.raises(JournalError, match="AX512"):
        asyncio.run(
            graph.run(
                {"x": 0, "pad": "x" * 30_000}, {"pad": "y" * 30_000}, journal=journal, run_id="r"
            )
        )
    journal.writer.store.connection.execute("pragma max_page_count = 1000000")
    known = len(journal.entries("r"))
    begun = (
        graph.resume("r", journal=journal)
        if known
        else graph.run({"x": 0}, journal=journal, run_id="r")
    )
    assert asyncio.run(begun).output == {"x": 50}
    assert list(journal.examine()) == []
    journal.close()


@pytest.mark.parametrize(
    "doing",
    [
        lambda journal: journal.forget("r"),
        lambda journal: journal.wake("r"),
        lambda journal: journal.prune(1e12, status={"open"}),
        lambda journal: journal.take(1, 1e12),
        lambda journal: journal.post("r", Entry("answer", data={"id": "q", "value": 1})),
        lambda journal: journal.set_queues([Queue(name="calm")]),
        lambda journal: journal.discard([1]),
    ],
)
def test_a_change_that_a_disk_does_not_take_is_an_error_of_the_journal(tmp_path, doing):
    journal = SqliteJournal(tmp_path)
    write(journal, [Entry("run", data={"graph": "g"})])
    journal.writer.store.connection.execute("pragma query_only = on")  # as a full disk
    with pytest.raises(JournalError, match="AX512"):
        doing(journal)
    journal.writer.store.connection.execute("pragma query_only = off")
    doing(journal)
    assert list(journal.examine()) == []
    journal.close()


@pytest.mark.skipif(os.name == "nt", reason="rights are other things there")
@pytest.mark.parametrize("has_database", [False, True])
def test_a_folder_that_cannot_be_written_is_reported_and_stays_as_it_was(has_database):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if has_database:
            journal = SqliteJournal(folder, sync="normal")
            write(journal, [Entry("run")])
            journal.close()
        before = sorted(path.name for path in folder.iterdir())
        folder.chmod(0o555)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)  # whom the system does not let write everywhere
        try:
            with pytest.raises(JournalError, match="AX510"):
                SqliteJournal(folder if has_database else folder / "j", sync="normal").runs()
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o755)
        assert sorted(path.name for path in folder.iterdir()) == before


def test_a_damaged_schema_is_reported(tmp_path):
    """SQLite quotes the damaged statement in its message, which is no UTF-8 then."""
    journal = SqliteJournal(tmp_path, sync="normal")
    write(journal, [Entry("run")])
    journal.close()
    file = tmp_path / "runs.db"
    data = file.read_bytes()
    at = data.index(b"TABLE runs", 100)
    file.write_bytes(data[:at] + b"\xf3\xa0\xff" + data[at + 3 :])
    with pytest.raises(JournalError, match=r"AX510"):
        SqliteJournal(tmp_path, sync="normal").runs()


def test_what_is_no_database_is_called_damaged_and_moved_away_as_it_says(tmp_path):
    folder = tmp_path / "a place"
    folder.mkdir()
    (folder / "runs.db").write_bytes(b"no database" * 1000)
    with pytest.raises(JournalError, match="damaged") as refused:
        SqliteJournal(folder).runs()
    subprocess.run(["sh", "-c", str(refused.value).partition("anew: ")[2]], check=True)
    journal = SqliteJournal(folder)
    assert list(journal.runs()) == []
    journal.close()


def test_a_folder_that_is_a_file_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"AX510.*file"):
        SqliteJournal(tmp_path / "file").runs()


def test_a_flipped_bit_is_found_and_only_its_run_suffers(journal):
    graph = chain()
    for name in ("good", "bad"):
        asyncio.run(graph.run({"x": 0}, journal=journal, run_id=name))
    connection = journal.writer.store.connection
    connection.execute(
        "update entries set body = replace(body, '\"x\":2', '\"x\":7') where run = (select id "
        "from runs where run = 'bad')"
    )
    with pytest.raises(JournalError, match=r'AX511.*"bad".*checksum'):
        asyncio.run(graph.resume("bad", journal=journal))
    [damage] = journal.examine()
    assert (damage.run_id, damage.good) == ("bad", 2)
    assert asyncio.run(graph.resume("good", journal=journal)).output == {"x": 3}
    journal.cut("bad", damage.good)
    assert asyncio.run(graph.resume("bad", journal=journal)).output == {"x": 3}


def test_what_is_cut_is_counted_in_entries_where_superseded_ones_are_gone(tmp_path):
    journal = SqliteJournal(tmp_path, detail=0, sync="normal")
    asyncio.run(loop(6).run({}, journal=journal, run_id="r"))
    before = list(journal.read("r"))
    assert before[-1][0] > len(before) + 3
    connection = journal.writer.store.connection
    connection.execute("update entries set crc = crc + 1 where seq = ?", (before[-1][0],))
    [damage] = journal.examine()
    journal.cut("r", damage.good)
    assert list(journal.read("r")) == before[:-1]
    journal.cut("r", 1000)
    assert list(journal.read("r")) == before[:-1]
    assert asyncio.run(loop(6).resume("r", journal=journal)).status == "done"
    journal.close()


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_name_that_no_database_holds_is_refused_and_the_others_go_on(tmp_path, sync):
    journal, half = SqliteJournal(tmp_path, sync=sync), "a\ud800"

    async def go() -> None:
        good, bad = journal.open("good"), journal.open("bad")
        good.append(Entry("run"))
        for name in ("graph", "thread", "forked_from"):
            with pytest.raises(JournalError, match=r"AX501.*half"):
                bad.append(Entry("run", data={name: half}))
        await safe(good)
        good.append(done((), half, text=half))
        await safe(good)
        good.close()
        bad.close()

    for act in (journal.open, journal.entries, journal.forget, journal.thread):
        with pytest.raises(JournalError, match=r"AX501.*half"):
            act(half)
    asyncio.run(go())
    assert journal.entries("good")[1] == done((), half, text=half)
    journal.close()


def test_a_failed_write_is_raised_in_the_waiting_task_and_the_next_is_written(journal, monkeypatch):
    async def go() -> None:
        bad = journal.open("bad")
        bad.append(Entry("run"))
        with monkeypatch.context() as patch:
            patch.setattr(journal.writer, "_put", lambda *_: 1 / 0)
            with pytest.raises(JournalError, match=r"AX512.*division"):
                await safe(bad)
        good = journal.open("good")
        good.append(Entry("run"))
        await safe(good)
        good.close()

    asyncio.run(go())
    assert [info.run_id for info in journal.runs()] == ["good"]


def test_an_interrupted_write_leaves_no_gap(tmp_path, monkeypatch):
    journal = SqliteJournal(tmp_path, sync="normal")

    def interrupted() -> Any:
        raise KeyboardInterrupt

    async def go() -> None:
        run_writer = journal.open("r")
        run_writer.append(Entry("run"))
        await safe(run_writer)
        run_writer.append(done((), "a"))
        with monkeypatch.context() as patch:
            patch.setattr(journal.writer.store, "writing", interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.writer.commit([run_writer])
        with pytest.raises(JournalError, match=r"AX512.*KeyboardInterrupt"):
            run_writer.append(done((), "b"))
        run_writer.close()

    asyncio.run(go())
    assert [entry.kind for entry in journal.entries("r")] == ["run"]
    assert [info.status for info in journal.runs()] == ["open"]
    journal.close()


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_run_is_released_with_its_end_and_also_where_that_was_not_written(
    tmp_path, monkeypatch, sync
):
    journal, other = SqliteJournal(tmp_path, sync=sync), SqliteJournal(tmp_path, sync=sync)
    graph, before = chain(1), journal.writer.commits
    asyncio.run(graph.run({"x": 0}, journal=journal, run_id="r"))
    assert journal.writer.commits - before == 2  # one for the beginning
    put = journal.writer._put

    def fail_once(connection: Any, taken: Any) -> None:
        if any(part.ended for part in taken):
            monkeypatch.undo()
            raise OSError("no room")
        put(connection, taken)

    monkeypatch.setattr(journal.writer, "_put", fail_once)
    with pytest.raises(JournalError, match=r"AX512.*no room"):
        asyncio.run(graph.run({"x": 0}, journal=journal, run_id="s"))
    assert {info.run_id: info.status for info in journal.runs()} == {"r": "done", "s": "open"}
    assert {info.run_id: info.status for info in other.runs()} == {"r": "done", "s": "open"}
    other.close()
    journal.close()


def test_what_is_written_while_a_book_is_being_opened_is_noticed(tmp_path, monkeypatch):
    """The record is read in more than one query; who writes between two of them is not missed."""
    journal, other = SqliteJournal(tmp_path, sync="normal"), SqliteJournal(tmp_path, sync="normal")
    write(journal, [Entry("run")])
    read = journal.read

    def read_late(run_id: str) -> Any:
        found = list(read(run_id))
        write(other, [Entry("resumed"), done((), "a")])
        return found

    monkeypatch.setattr(journal, "read", read_late)
    run_writer = journal.open("r")
    monkeypatch.undo()

    async def go() -> None:
        run_writer.append(Entry("resumed"))
        with pytest.raises(JournalError, match="AX506"):
            await safe(run_writer)

    asyncio.run(go())
    assert [entry.kind for entry in journal.entries("r")] == ["run", "resumed", "done"]
    journal.close()
    other.close()


def test_a_stopped_owner_does_not_write_into_a_run_of_the_new_owner(tmp_path, monkeypatch):
    slow, quick = SqliteJournal(tmp_path, sync="normal"), SqliteJournal(tmp_path, sync="normal")

    async def go() -> None:
        zombie = slow.open("r")
        zombie.append(Entry("run"))
        await safe(zombie)
        monkeypatch.setattr("axil_sqlite.writer.SILENCE", -1.0)
        quick.forget("r")
        monkeypatch.undo()
        other = quick.open("other")
        other.append(Entry("run"))
        await safe(other)
        zombie.append(done((), "a"))
        with pytest.raises(JournalError, match=r"AX506.*taken over"):
            await safe(zombie)
        other.append(done((), "b"))
        await safe(other)
        other.close()

    asyncio.run(go())
    assert [entry.node for entry in quick.entries("other")] == ["", "b"]
    slow.close()
    quick.close()


@pytest.mark.parametrize("filled", [b"\0", b"\xff"], ids=["zeroed", "garbled"])
def test_a_lost_page_is_found_and_no_wrong_value_is_returned(tmp_path, filled):
    journal = SqliteJournal(tmp_path / "whole")
    reported = {
        f"r{n}": [Entry("run"), *(done((), f"n{i}", value=f"{n}:{i}" * 50) for i in range(10))]
        for n in range(20)
    }
    for run_id, entries in reported.items():
        write(journal, entries, run_id)
    journal.close()
    whole = (tmp_path / "whole/runs.db").read_bytes()
    for number in range(1, len(whole) // 4096):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "runs.db").write_bytes(
            whole[: number * 4096] + filled * 4096 + whole[(number + 1) * 4096 :]
        )
        broken = SqliteJournal(folder, sync="normal")
        for run_id, entries in reported.items():
            with contextlib.suppress(JournalError):
                assert all(entry in entries for entry in broken.entries(run_id))
        with contextlib.suppress(JournalError):  # it may not even open
            assert broken.examine(), f"page {number} is lost, and nobody says so"
            broken.close()


def test_a_part_that_is_gone_or_changed_is_found(journal):
    write(journal, [Entry("run"), done((), "a", value="x" * 100_000)])
    with journal.writer.lock, journal.writer.store.writing() as connection:
        connection.execute("update parts set body = cast(? as blob) where id = 1", ("y" * 4096,))
    assert [damage.good for damage in journal.examine()] == [1]
    with journal.writer.lock, journal.writer.store.writing() as connection:
        connection.execute("delete from parts where id = 1")
    with pytest.raises(JournalError, match=r"AX511.*is gone"):
        journal.entries("r")
    assert len(journal.examine()) == 2


def test_a_file_that_is_not_a_database_is_reported(tmp_path):
    (tmp_path / "runs.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(JournalError, match="AX510"):
        SqliteJournal(tmp_path).runs()


def test_a_truncated_log_leaves_a_clean_beginning(tmp_path):
    journal = SqliteJournal(tmp_path, sync="normal")
    for i in range(30):
        write(journal, [Entry("run"), done((), "a")], f"run{i}")
    source = tmp_path / "runs.db-wal"
    whole, base = source.read_bytes(), (tmp_path / "runs.db").read_bytes()
    for number, share in enumerate((0.9, 0.6, 0.33, 0.1)):
        copy = tmp_path / f"copy{number}"
        copy.mkdir()
        (copy / "runs.db").write_bytes(base)
        (copy / "runs.db-wal").write_bytes(whole[: int(len(whole) * share)])
        try:
            cut = SqliteJournal(copy)
            names = [info.run_id for info in cut.runs()]
        except JournalError:
            continue  # not even the tables were safe
        assert names == [f"run{i}" for i in reversed(range(len(names)))]
        assert all(len(cut.entries(name)) == 2 for name in names)
        assert list(cut.examine()) == []
        cut.close()
    journal.close()


def test_a_newer_database_is_left_alone(tmp_path):
    SqliteJournal(tmp_path).runs()
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    with pytest.raises(JournalError, match=r"AX510.*newer.*99"):
        SqliteJournal(tmp_path).runs()


def test_a_network_file_system_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("axil_sqlite.store._file_system", lambda folder: "nfs4")
    with pytest.raises(JournalError, match=r"AX510.*network"):
        SqliteJournal(tmp_path).runs()


@pytest.mark.skipif(not Path("/proc/self/mounts").exists(), reason="Linux says it so")
def test_a_network_file_system_is_known_whatever_its_name(tmp_path, monkeypatch):
    place = tmp_path / "my share"
    shown, read = str(place).replace(" ", "\\040"), Path.read_text

    def mounts(path: Path, *how: Any) -> str:
        if str(path) == "/proc/self/mounts":
            return f"disk / ext4 rw 0 0\nhost:/a {shown} nfs4 rw 0 0\n"
        return read(path, *how)

    monkeypatch.setattr(Path, "read_text", mounts)
    with pytest.raises(JournalError, match=r"AX510.*nfs4"):
        SqliteJournal(place / "journal").runs()


def test_nothing_in_the_database_is_anything_but_text_and_numbers(journal):
    asyncio.run(chain().run({"x": 0}, journal=journal, run_id="r"))
    for who, body in journal.query("select who, body from entries"):
        assert json.loads(body)
        assert not who or json.loads(who)


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_sign_of_life_is_shown_for_runs_at_work(tmp_path, monkeypatch, sync):
    monkeypatch.setattr("axil_sqlite.writer.BEAT", 0.01)
    journal = SqliteJournal(tmp_path, sync=sync)

    async def go() -> None:
        run_writer = journal.open("r")
        run_writer.append(Entry("run"))
        await safe(run_writer)
        [(before,)] = journal.query("select beat from runs")
        for _ in range(6000):
            await asyncio.sleep(0.01)
            if journal.query("select beat from runs")[0][0] > before:
                return
        raise AssertionError("no sign of life")

    asyncio.run(go())
    journal.close()


READS = {
    "take": lambda journal: journal.take(1, 1.0),
    "next_due": lambda journal: journal.next_due(1.0),
    "counts": lambda journal: journal.counts(1.0),
    "runs": lambda journal: journal.runs(),
    "entries": lambda journal: journal.entries("r"),
    "mail": lambda journal: journal.mail(["r"]),
    "queues": lambda journal: journal.queues(),
}


@pytest.mark.parametrize("name", READS)
def test_a_journal_can_be_closed_while_another_thread_reads_it(tmp_path, monkeypatch, name):
    is_reading, is_closing, end = threading.Event(), threading.Event(), Writer._end

    class Paused(SqliteJournal):
        @contextlib.contextmanager
        def _reading(self, writer):
            with super()._reading(writer) as reader:
                is_reading.set()
                assert is_closing.wait(60)
                yield reader

    def ends(writer: Writer) -> None:
        is_closing.set()
        end(writer)

    monkeypatch.setattr(Writer, "_end", ends)
    journal = Paused(tmp_path)
    reads = threading.Thread(target=READS[name], args=(journal,), daemon=True)
    reads.start()
    assert is_reading.wait(60)
    closes = threading.Thread(target=journal.close, daemon=True)
    closes.start()
    for each in (reads, closes):
        each.join(20)
        assert not each.is_alive()
    journal.close()


def test_runs_of_two_event_loops_that_begin_at_once_share_one_writing_thread(tmp_path, monkeypatch):
    journal, make, both = SqliteJournal(tmp_path), threading.Thread, threading.Barrier(2)
    writers: list[threading.Thread] = []

    def made(*given: Any, **more: Any) -> threading.Thread:
        if more.get("name") == "axil-sqlite":
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.2)  # for the other one, who is not to come
            writers.append(make(*given, **more))
            return writers[-1]
        return make(*given, **more)

    loops = [threading.Thread(target=write, args=(journal, [Entry("run")], name)) for name in "ab"]
    monkeypatch.setattr(threading, "Thread", made)
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(60)
    assert len(writers) == 1
    closing = make(target=journal.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()


def test_where_no_thread_can_be_had_a_journal_is_written_without(tmp_path, monkeypatch):
    journal, start = SqliteJournal(tmp_path), threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "axil-sqlite":
            raise RuntimeError("can't start new thread")
        start(thread)

    async def go() -> None:
        run_writer = journal.open("r")
        run_writer.append(Entry("run"))
        async with asyncio.timeout(60):
            await safe(run_writer)
        run_writer.close()

    monkeypatch.setattr(threading.Thread, "start", refused)
    asyncio.run(go())
    assert [info.status for info in journal.runs()] == ["open"]
    journal.close()


def test_what_is_asked_of_a_journal_that_is_being_closed_is_answered(tmp_path):
    journal = SqliteJournal(tmp_path)
    writer: Writer = journal.writer
    write(journal, [Entry("run")])
    run_writer = journal.open("late")
    run_writer.append(Entry("run"))

    async def go() -> None:
        put, closing = writer._asked.put, threading.Thread(target=journal.close)

        class Late:
            # between the look whether it is closed and the asking, somebody closes it
            def put(self, asked: Any) -> None:
                if asked is not None and not closing.ident:
                    closing.start()
                    closing.join(0.2)
                put(asked)

            def __getattr__(self, name: str) -> Any:
                return getattr(queue, name)

        queue, writer._asked = writer._asked, Late()  # type: ignore[assignment]
        async with asyncio.timeout(60):
            with contextlib.suppress(JournalError):
                await safe(run_writer)
        await asyncio.to_thread(closing.join, 60)
        assert not closing.is_alive()

    asyncio.run(go())


def test_whether_a_run_is_held_can_be_asked_while_others_come_and_go(tmp_path):
    journal = SqliteJournal(tmp_path, sync="normal")
    writer: Writer = journal.writer
    writers = [journal.open(name) for name in "abc"]
    writer._held.update(writers)

    class Looked(str):
        def __eq__(self, other: object) -> bool:  # meanwhile a thread releases one
            writer._held.discard(writers[-1])
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    assert not writer.is_alive(writer.owner, time.time(), Looked("nobody"))
    assert writer._held == set(writers[:-1])
    writer._held.clear()
    journal.close()


def test_an_unreferenced_journal_is_closed_wherever_the_collector_finds_it(tmp_path):
    journal = SqliteJournal(tmp_path)
    write(journal, [Entry("run")])
    writer: Writer = journal.writer
    itself: list[Any] = [journal]
    itself.append(itself)

    def put(*given: Any) -> None:
        gc.collect()  # in the writer's thread, in the middle of a transaction
        Writer._put(writer, *given)

    run_writer = journal.open("late")
    run_writer.append(Entry("run"))
    writer._put = put  # type: ignore[method-assign]
    gc.disable()
    try:
        del journal, itself
        run_writer.close()
        assert writer._thread is not None
        writer._thread.join(60)
    finally:
        gc.enable()
    assert not writer._thread.is_alive()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        writer.store.connection.execute("select 1")
    after = SqliteJournal(tmp_path)
    assert [(info.run_id, info.status, info.entries) for info in after.runs()] == [
        ("late", "open", 1),
        ("r", "open", 1),
    ]
    after.close()


@pytest.mark.skipif(os.name == "nt", reason="there is no flock")
def test_a_database_is_made_by_one_process_at_a_time(tmp_path, monkeypatch):
    said, connect = list[tuple[str, bool]](), sqlite3.connect

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> Any:
            said.append((sql, is_alone()))
            return super().execute(sql, *values)

    def is_alone() -> bool:
        import fcntl

        with (tmp_path / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    monkeypatch.setattr(
        sqlite3, "connect", lambda *values, **more: connect(*values, factory=Connection, **more)
    )
    journal = SqliteJournal(tmp_path)
    journal.runs()
    assert dict(said)["pragma journal_mode = wal"]
    assert dict(said)["pragma auto_vacuum = incremental"]
    journal.close()


def test_a_process_number_that_is_used_again_is_not_taken_for_the_holder(tmp_path):
    journal = SqliteJournal(tmp_path)
    writer: Writer = journal.writer
    host, pid, started, nonce = writer.owner.rsplit(":", 3)
    assert writer.is_alive(f"{host}:{pid}:{started}:other", time.time(), "r")
    assert not writer.is_alive(f"{host}:{pid}:123:other", time.time(), "r")
    assert not writer.is_alive(f"{host}:{pid}:{started}:other", time.time() - 3600, "r")
    # ourselves, and no run_writer holds it
    assert not writer.is_alive(f"{host}:{pid}:{started}:{nonce}", time.time(), "r")
    journal.close()


@pytest.mark.skipif(os.name == "nt", reason="there is no flock")
def test_who_still_writes_to_a_journal_that_was_closed_takes_no_lock_from_who_opened_it_again(
    tmp_path,
):
    import fcntl

    journal = SqliteJournal(tmp_path)
    before: Writer = journal.writer
    journal.close()
    after: Writer = journal.writer  # its lock has the number that the other one's had
    with after.store.alone():
        with pytest.raises(sqlite3.Error, match="closed"), before.store.writing():
            pass
        with (tmp_path / "lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    journal.close()


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are looked for otherwise"
)
def test_a_holder_that_cannot_be_looked_at_is_not_taken_for_gone(tmp_path, monkeypatch):
    journal, read = SqliteJournal(tmp_path), Path.read_text
    writer: Writer = journal.writer
    holder = writer.owner.rpartition(":")[0] + ":another"
    gone = holder.replace(f":{os.getpid()}:", f":{2**22 + 1}:")

    def refused(self: Path, *given: Any) -> str:
        if self == Path(f"/proc/{os.getpid()}/stat"):
            raise OSError(errno.EMFILE, "Too many open files")
        return read(self, *given)

    def is_alive(owner: str) -> bool:
        return writer.is_alive(owner, time.time(), "r")

    assert (is_alive(holder), is_alive(gone)) == (True, False)
    monkeypatch.setattr(Path, "read_text", refused)
    assert (is_alive(holder), is_alive(gone)) == (True, False)
    assert not writer.is_alive(holder, time.time() - 60, "r")
    there = SqliteJournal(tmp_path)
    unknown: str = there.writer.owner  # it could not look at itself when it began
    monkeypatch.setattr(Path, "read_text", read)
    assert is_alive(unknown)
    there.close()
    journal.close()


def test_a_journal_that_is_closed_while_a_record_is_read_waits_for_its_end(tmp_path):
    journal = SqliteJournal(tmp_path)
    write(journal, [Entry("run"), Entry("clock", data={"call": 1, "value": 1.0})])
    record, rest = journal.read("r"), list[Any]()
    assert next(record)[0] == 0
    begun, close = threading.Event(), journal._closing

    def closed() -> None:
        begun.set()
        close()

    journal._closing = closed
    closing = threading.Thread(target=journal.close, daemon=True)
    closing.start()
    assert begun.wait(60)
    reading = threading.Thread(target=lambda: rest.extend(record), daemon=True)
    reading.start()
    for thread in (reading, closing):
        thread.join(60)
        assert not thread.is_alive()
    assert [number for number, _ in rest] == [1]


def test_a_row_that_was_not_asked_for_is_committed_at_the_second_look(tmp_path, monkeypatch):
    inside = sys.modules[GroupCommit.__module__]
    monkeypatch.setattr(inside, "LAG", 3600)  # only the looks below
    journal = SqliteJournal(tmp_path, sync="normal")

    async def go() -> list[int]:
        run, commits, loop = journal.open("r"), list[int](), asyncio.get_running_loop()
        run.append(Entry("run"))
        await (run.kept() or asyncio.sleep(0))
        run.append(Entry("clock", data={"call": 1, "value": 1.0}))
        for _ in range(2):
            commits.append(journal.writer.commits)
            journal.writer._keep_late(loop)
        commits.append(journal.writer.commits)
        run.close()
        return commits

    assert asyncio.run(go()) == [1, 1, 2]
    journal.close()


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_an_item_of_a_map_that_has_ended_is_safe_while_others_are_at_work(
    tmp_path: Path, sync: Any
) -> None:
    journal, beside = SqliteJournal(tmp_path, sync=sync), SqliteJournal(tmp_path)

    async def read(inputs: Any) -> dict[str, int]:
        if inputs["item"] == "slow":
            deadline = time.monotonic() + 60
            while sum(e.kind == "done" for e in beside.entries("r")) < 3:
                assert time.monotonic() < deadline, "the items that have ended are not kept"
                await asyncio.sleep(0.01)
        return {"n": 1}

    graph = RootGraph("readers")
    graph.create_node(read, name="read", wrappers=[Map(over="item", max_parallel=4)])
    graph.edge_from_entry("read", ["item"])
    graph.edge_to_exit("read", ["n"])
    graph.build()
    result = graph.invoke({"item": ["a", "slow", "b", "c"]}, journal=journal, run_id="r")
    assert result.output == {"n": [1, 1, 1, 1]}
    beside.close()
    journal.close()

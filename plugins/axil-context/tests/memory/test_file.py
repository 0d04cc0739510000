"""A memory in a file: shared by processes, safe from crashes, kept apart by owner, searched by any
index.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from axil import run_sync
from axil_agent import Scripted, SingleAgent
from axil_context import FileMemory
from axil_context.memory.lines import Lines
from axil_models import ContextBlock, ContextError, ContextQuery, Turn


def turn(text: str, reply: str, *, user: str = "", number: int = 1) -> Turn:
    return Turn(
        query=ContextQuery(text, {"user": user} if user else {}, node_name="n", run_id="r"),
        reply=reply,
        number=number,
    )


def texts(blocks: Sequence[ContextBlock]) -> list[str]:
    return [block.text for block in blocks]


async def reported(memory: FileMemory, *turns: Turn) -> FileMemory:
    for each in turns:
        await memory.learn(each)
    return memory


def asked(memory: FileMemory, text: str, top_k: int = 100, **inputs: Any) -> list[str]:
    return texts(run_sync(memory.get_blocks(ContextQuery(text, inputs), top_k)))


def test_one_memory_sees_what_another_writes(tmp_path):
    path = str(tmp_path / "m.jsonl")
    first, second = FileMemory(path=path), FileMemory(path=path)
    assert asked(second, "tea") == []
    run_sync(reported(first, turn("tea?", "green")))
    assert asked(second, "tea") == ["tea?\ngreen"]
    run_sync(second.delete(run_sync(second.get_blocks(ContextQuery("tea")))))
    assert asked(first, "tea") == []
    assert len((tmp_path / "m.jsonl").read_text().splitlines()) == 2  # a deletion is a line, too


WRITES = """
import asyncio, sys
from axil_models import ContextQuery, Turn
from axil_context import FileMemory

async def main():
    memory = FileMemory(path=sys.argv[1], lock_seconds=600)
    for number in range(40):
        text = f"{sys.argv[2]} {number} " + "x" * 5000
        turn = Turn(
            query=ContextQuery("moss"), reply=text, role_name=sys.argv[2], number=number
        )
        await memory.learn(turn)

asyncio.run(main())
"""


def test_processes_write_into_one_file(tmp_path):
    path = str(tmp_path / "m.jsonl")
    running = [
        subprocess.Popen([sys.executable, "-c", WRITES, path, name])
        for name in ("one", "two", "three")
    ]
    memory = FileMemory(path=path)
    while any(each.poll() is None for each in running):
        found = asked(memory, "moss", 1000)
        assert all(text.endswith("x" * 5000) for text in found)
    assert [each.wait(600) for each in running] == [0, 0, 0]
    assert len(asked(memory, "moss", 1000)) == 120


def test_a_line_that_a_crash_cut_off_is_passed_over(tmp_path, caplog):
    file = tmp_path / "m.jsonl"
    run_sync(
        reported(FileMemory(path=str(file)), turn("a", "first"), turn("b", "second", number=2))
    )
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    memory = FileMemory(path=str(file))
    assert asked(memory, "first second") == ["a\nfirst"]
    run_sync(reported(memory, turn("c", "third", number=3)))
    with caplog.at_level(logging.WARNING, "axil.memory"):
        assert sorted(asked(memory, "first second third")) == ["a\nfirst", "c\nthird"]
    assert "a line that cannot be read is passed over" in caplog.text
    assert sorted(asked(FileMemory(path=str(file)), "first second third")) == [
        "a\nfirst",
        "c\nthird",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "[1]",
        '{"put": {"no": "text"}}',
        '{"delete": 3}',
        "{}",
        '{"put": {"text": "nameless"}}',
    ],
)
def test_a_line_that_says_nothing_hides_no_other(tmp_path, line):
    file = tmp_path / "m.jsonl"
    file.write_text(line + "\n")
    run_sync(reported(FileMemory(path=str(file)), turn("a", "first")))
    assert asked(FileMemory(path=str(file)), "first nameless") == ["a\nfirst"]


def test_a_file_put_in_its_place_is_read_anew(tmp_path):
    file = tmp_path / "m.jsonl"
    memory = run_sync(reported(FileMemory(path=str(file)), turn("a", "old")))
    assert asked(memory, "old") == ["a\nold"]
    run_sync(reported(FileMemory(path=str(tmp_path / "other.jsonl")), turn("a", "new")))
    (tmp_path / "other.jsonl").replace(file)
    assert asked(memory, "old new") == ["a\nnew"]
    file.unlink()
    assert asked(memory, "old new") == []


def test_the_newest_of_each_owner_are_found(tmp_path):
    memory = FileMemory(path=str(tmp_path / "m.jsonl"), namespace=["user"], max_items=2)
    run_sync(
        reported(
            memory,
            *(turn("tea", f"{n}", user="ann", number=n) for n in range(4)),
            turn("tea", "b", user="bob"),
        )
    )
    assert sorted(asked(memory, "tea", user="ann")) == ["tea\n2", "tea\n3"]
    assert asked(memory, "tea", user="bob") == ["tea\nb"]
    assert asked(memory, "", 1, user="ann") == ["tea\n3"]
    assert len((tmp_path / "m.jsonl").read_text().splitlines()) == 5
    with pytest.raises(ContextError, match="AX894 memories are kept for each user"):
        asked(memory, "tea")
    with pytest.raises(ContextError, match="AX894"):
        run_sync(memory.insert("no user", "lost"))


def test_what_an_owner_asks_for_is_no_way_to_anothers(tmp_path):
    memory = FileMemory(path=str(tmp_path / "m.jsonl"), namespace=["user"])
    run_sync(reported(memory, turn("pin?", "1234", user="ann")))
    query = replace(ContextQuery("pin", {"user": "bob"}), filters={"owner_user": "ann"})
    assert run_sync(memory.get_blocks(query)) == []


def test_an_index_that_fails_loses_nothing(tmp_path):
    class Moody:
        def __init__(self) -> None:
            self.held: dict[Any, ContextBlock] = {}
            self.fails = True

        def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
            return list(self.held.values())[:top_k]

        def put(self, blocks: Sequence[ContextBlock]) -> None:
            if self.fails:
                raise ConnectionError("not today")
            self.held.update(((block.uri, block.chunk_id), block) for block in blocks)

        def delete(self, blocks: Sequence[ContextBlock]) -> None:
            for block in blocks:
                self.held.pop((block.uri, block.chunk_id), None)

    index = Moody()
    memory = FileMemory(path=str(tmp_path / "m.jsonl"), index=index)
    run_sync(reported(memory, turn("a", "first")))
    with pytest.raises(ConnectionError):
        asked(memory, "first")
    index.fails = False
    assert asked(memory, "first") == ["a\nfirst"]


def test_what_is_no_index_is_refused(tmp_path):
    memory = FileMemory(path=str(tmp_path / "m.jsonl"), index="blackboard")
    with pytest.raises(ContextError, match='AX898 "blackboard" is no index'):
        asked(memory, "x")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ContextError, match=r"AX895 the memory .*m\.jsonl. cannot be written"):
        run_sync(reported(FileMemory(path=str(tmp_path / "file/m.jsonl")), turn("a", "b")))


def test_hostile_text_is_kept_as_it_is(tmp_path):
    hostile = 'a "quoted" {name}\n\x00 line\u2028 and \ud800 half \U0001f468'
    memory = FileMemory(path=str(tmp_path / "m.jsonl"), remember="reply")
    run_sync(reported(memory, turn("x", hostile)))
    assert asked(memory, "quoted") == [hostile]
    assert len((tmp_path / "m.jsonl").read_text("ascii").splitlines()) == 1
    assert json.loads((tmp_path / "m.jsonl").read_text())["put"]["text"] == hostile


def test_an_agent_remembers_from_one_process_to_the_next(tmp_path):
    def ask(question: str, *replies: str) -> str:
        memory = FileMemory(path=str(tmp_path / "m.jsonl"))
        script = Scripted(list(replies))
        SingleAgent(script, memories=memory, formatters="twins", output_keys=["answer"]).invoke(
            {"question": question}
        )
        return str(script.requests[0].messages[-1]["content"])

    ask("My cat is called Tom.", "Hello Tom!")
    assert "(file_memory) My cat is called Tom.\nHello Tom!" in ask("What is my cat called?", "Tom")


@pytest.mark.parametrize("more", [0, 7, 70], ids=["as long", "longer", "much longer"])
def test_a_file_that_is_written_over_is_read_anew(tmp_path, more):
    """As who brings back a copy does: it is the same file then, and may be as long as it was, or
    longer.
    """
    lines, other = Lines(str(tmp_path / "m.jsonl")), tmp_path / "other.jsonl"
    lines.append([{"n": "old"}, {"n": "old"}])
    os.utime(lines.path, (0, 0))  # some time ago
    assert len(lines.read()[1]) == 2
    Lines(str(other)).append([{"n": "new" + "w" * more}, {"n": "new"}])
    lines.path.write_bytes(other.read_bytes())
    assert lines.has_more
    anew, records = lines.read()
    assert (anew, [record["n"][:3] for record in records]) == (True, ["new", "new"])
    assert lines.read() == (False, [])
    lines.append([{"n": "next"}])
    assert lines.read() == (False, [{"n": "next"}])


def test_a_query_that_is_given_up_loses_nothing_that_was_written(tmp_path, monkeypatch):
    memory, read = FileMemory(path=str(tmp_path / "m.jsonl")), Lines.read

    async def given_up() -> list[str]:
        begun, may_end, ended = asyncio.Event(), threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(lines: Lines) -> tuple[bool, list[dict[str, object]]]:
            loop.call_soon_threadsafe(begun.set)
            may_end.wait()
            try:
                return read(lines)
            finally:
                loop.call_soon_threadsafe(ended.set)

        await reported(memory, turn("tea?", "green"))
        await memory.get_blocks(ContextQuery("tea"))
        await reported(memory, turn("tea?", "black", number=2))
        with monkeypatch.context() as patched:
            patched.setattr(Lines, "read", slow)
            query = asyncio.create_task(memory.get_blocks(ContextQuery("tea")))
            await begun.wait()
            query.cancel()
            await asyncio.gather(query, return_exceptions=True)
            may_end.set()
            await ended.wait()
        return texts(await memory.get_blocks(ContextQuery("tea")))

    assert sorted(run_sync(given_up())) == ["tea?\nblack", "tea?\ngreen"]


def test_an_index_that_outlives_the_process_forgets_what_another_process_deleted(tmp_path):
    path, index = str(tmp_path / "m.jsonl"), {"type": "keyword", "path": str(tmp_path / "index")}
    first, other = FileMemory(path=path, index=index), FileMemory(path=path)
    run_sync(reported(first, turn("tea?", "green"), turn("tea?", "black", number=2)))
    [black] = [b for b in run_sync(first.get_blocks(ContextQuery("tea"))) if "black" in b.text]
    run_sync(first.close())
    run_sync(other.delete([black]))
    assert asked(FileMemory(path=path, index=index), "tea") == ["tea?\ngreen"]

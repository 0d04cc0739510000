"""Laws of DevAll's memories: what is found, where it is kept, and what is refused."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import json
import os
import sys
import threading
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from axil import ConfigError, NodeFailed, SpecError, run_sync
from axil.plugin import Grants, default_registry, granted
from axil_agent import Scripted
from axil_context import LexicalEmbedder
from axil_devall import stores
from axil_devall.config import Attachment, FileConfig, Mem0Config
from axil_devall.errors import StoreError
from axil_devall.mem0 import Mem0
from axil_devall.notes import NotesFile, Vectors, cosine, digest, newest
from axil_devall.stores import Files, Surroundings
from axil_journals import MemoryJournal


def agent(name: str, *memories: dict[str, Any], **config: Any) -> dict[str, Any]:
    settings = {
        "provider": "openai",
        "name": "small",
        "role": f"You are {name}.",
        "memories": list(memories),
        **config,
    }
    return {"id": name, "type": "agent", "config": settings}


def board(**config: Any) -> list[dict[str, Any]]:
    return [{"name": "bb", "type": "blackboard", "config": config}]


def reported(script: Scripted, number: int) -> list[str]:
    """Return what the user's messages of a request say."""
    return [m["content"] for m in script.requests[number].messages if m["role"] == "user"]


READ = {"name": "bb", "write": False}
WRITE = {"name": "bb", "read": False}


# ---------------------------------------------------------------------- blackboards


def test_what_is_noted_is_put_before_the_last_of_the_users_messages(talk):
    _, script = talk(["one", "two"], [agent("A", WRITE), agent("B", READ)], ["A B"], memory=board())
    assert reported(script, 1) == [
        "===== Related Memories =====\n\n--- bb ---\n1. one\n\n===== End of Memory =====",
        "one",
    ]


def test_in_prompt_mode_it_is_put_before_the_text(talk):
    _, script = talk(
        ["one", "two"],
        [agent("A", WRITE), agent("B", READ, input_mode="prompt")],
        ["A B"],
        memory=board(),
    )
    assert reported(script, 1)[0].endswith(
        "===== End of Memory =====\n\n=== INPUT FROM A (assistant) ===\n\none".replace(
            "assistant", "user"
        )
    )


def test_branches_note_side_by_side_and_nothing_is_lost(talk):
    nodes = [agent("S"), agent("A", WRITE), agent("B", WRITE), agent("Z", {**READ, "top_k": 9})]
    rules = {
        "rules": [
            {"match": {"system_contains": f"You are {name}."}, "replies": [f"by {name}"]}
            for name in "SABZ"
        ]
    }
    result, script = talk(rules, nodes, ["S A", "S B", "A Z", "B Z"], memory=board())
    assert reported(script, 3)[1].splitlines()[2:5] == ["--- bb ---", "1. by A", "2. by B"]
    assert [note["by"] for note in result.state["memory/bb"]] == ["A", "B"]


def test_the_items_of_a_map_note_side_by_side(flow):
    nodes = [
        {"id": "S", "type": "literal", "config": {"content": "x y z"}},
        agent("A", WRITE),
        agent("Z", {**READ, "top_k": 9}),
    ]
    edge = {
        "from": "S",
        "to": "A",
        "dynamic": {
            "type": "map",
            "split": {"type": "regex", "config": {"pattern": "[a-z]"}},
            "config": {"max_parallel": 3},
        },
    }
    script = Scripted(
        {"rules": [{"match": {"system_contains": "You are A"}, "replies": [{"echo_user": True}]}]}
    )
    with script.everywhere():
        work = flow(nodes, [edge, "A Z"], memory=board())
        result = run_sync(work.run("TASK"))
    assert [note["text"] for note in result.state["memory/bb"]] == ["(x)", "(y)", "(z)"]


def test_a_blackboard_gives_the_newest_and_what_was_said_twice_once():
    notes = [{"text": text} for text in ("a", "b", "a", "c")]
    assert [note["text"] for note in newest(notes, 2)] == ["a", "c"]
    assert [note["text"] for note in newest(notes, 9)] == ["b", "a", "c"]


def test_runs_share_no_notes_unless_there_is_a_file(talk):
    both = {"name": "bb", "top_k": 9}
    for path, seen in ((None, 0), ("auto", 0), ("notes/board.jsonl", 1)):
        config = {"memory_path": path} if path else {}
        talk(["first"], [agent("A", both)], memory=board(**config))
        _, script = talk(["second"], [agent("A", both)], memory=board(**config))
        assert len(reported(script, 0)) == 1 + seen


@pytest.mark.parametrize("outer", [board(), []])
def test_a_graph_inside_another_notes_in_memories_of_its_own(talk, outer):
    inner = {"nodes": [agent("I", {"name": "bb"})], "edges": [], "start": ["I"], "memory": board()}
    nodes = [
        agent("A", *([WRITE] if outer else [])),
        {"id": "S", "type": "subgraph", "config": {"type": "config", "config": inner}},
        agent("B", *([READ] if outer else [])),
    ]
    _, script = talk(["one", "two", "three"], nodes, ["A S", "S B"], memory=outer)
    assert reported(script, 1) == ["one"]
    known = "===== Related Memories =====\n\n--- bb ---\n1. one\n\n===== End of Memory ====="
    assert reported(script, 2) == ([known, "two"] if outer else ["two"])


def test_a_resumed_run_notes_nothing_twice(flow, tmp_path):
    nodes = [agent("A", {"name": "bb"}), agent("B")]
    script, journal = Scripted(["one", {"status": 400}, "two"]), MemoryJournal()
    with script.everywhere():
        work = flow(nodes, ["A B"], memory=board(memory_path="board.jsonl"))
        with pytest.raises(NodeFailed):
            run_sync(work.run("TASK", journal=journal, run_id="r"))
        assert run_sync(work.run(None, journal=journal, run_id="r", resuming=True)).output == "two"
    lines = (tmp_path / "board.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line).get("text") for line in lines] == [None, "one"]


def test_blank_replies_are_not_noted(talk):
    result, _ = talk(["  "], [agent("A", WRITE)], memory=board())
    assert "memory/bb" not in result.state


# ---------------------------------------------------------------------- likeness


def simple(**config: Any) -> list[dict[str, Any]]:
    return [{"name": "bb", "type": "simple", "config": config}]


def test_a_simple_memory_finds_what_is_like_the_question(talk):
    nodes = [agent("A", WRITE), agent("B", WRITE), agent("C", {**READ, "top_k": 1})]
    replies = ["Cats sleep all day.", "Ships cross the sea.", "ok"]
    _, script = talk(replies, nodes, ["A B", "B C"], memory=simple())
    assert "1. Ships cross the sea." in reported(script, 2)[0]


def test_what_is_not_like_enough_is_not_found(talk):
    for threshold, found in ((-1.0, True), (0.99, False)):
        nodes = [agent("A", WRITE), agent("B", {**READ, "similarity_threshold": threshold})]
        _, script = talk(["one two", "ok"], nodes, ["A B"], memory=simple())
        assert (len(reported(script, 1)) == 2) is found


def test_an_embedder_that_is_not_installed_is_an_error_before_anything_runs(flow):
    with pytest.raises(SpecError, match=r'AX301 .*memory\[0\]: unknown embedder "nowhere"'):
        _ = flow([agent("A", READ)], memory=simple(embedding={"provider": "nowhere"})).plan


def test_recorded_runs_are_no_files_to_search(talk, tmp_path):
    (tmp_path / ".axil").mkdir()
    (tmp_path / ".axil/runs.db").write_text("What are axils? A canary of another run.", "utf-8")
    (tmp_path / "a.md").write_text("Axils are angles of leaves.", "utf-8")
    store = [{"name": "bb", "type": "file", "config": {"file_sources": [{"path": "."}]}}]
    _, script = talk(["ok"], [agent("A", READ)], task="What are axils?", memory=store)
    assert "angles of leaves" in reported(script, 0)[0]
    assert "canary" not in reported(script, 0)[0]
    with granted(Grants(folder=str(tmp_path))), pytest.raises(ConfigError, match="AX137"):
        Files(
            FileConfig.model_validate({"file_sources": [{"path": ".axil/runs.db"}]}),
            Surroundings(default_registry(), str(tmp_path)),
            "memory",
        )


def test_files_are_found_by_likeness_and_read_again_when_they_change(talk, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("Axils are angles of leaves.", "utf-8")
    (tmp_path / "docs/b.md").write_text("Ships cross the sea.", "utf-8")
    (tmp_path / "docs/c.txt").write_text("Axils again.", "utf-8")
    source = {"path": "docs", "file_types": [".md"], "recursive": False}
    store = [{"name": "bb", "type": "file", "config": {"file_sources": [source]}}]
    one = {**READ, "top_k": 1}
    _, script = talk(["ok"], [agent("A", one)], task="What are axils?", memory=store)
    assert "1. Axils are angles of leaves." in reported(script, 0)[0]
    (tmp_path / "docs/b.md").write_text("What are axils? Axils are where leaves begin.", "utf-8")
    _, script = talk(["ok"], [agent("A", one)], task="What are axils?", memory=store)
    assert "where leaves begin" in reported(script, 0)[0]


def test_files_of_a_checkout_name_others_from_its_root(tmp_path):
    """So they are written; what is not in the checkout is outside, as elsewhere."""
    folder = tmp_path / "devall/yaml_instance"
    for made in (folder, tmp_path / "devall/runtime", tmp_path / "devall/tests/notes"):
        made.mkdir(parents=True)
    (tmp_path / "devall/tests/notes/a.md").write_text("Axils.", "utf-8")
    around = Surroundings(default_registry(), str(folder))
    root = (tmp_path / "devall").resolve()
    for named in ("tests/notes", "tests/notes/index.json", "tests"):
        assert around.path(named, "memory") == root / named
    assert around.path("board.jsonl", "memory") == folder.resolve() / "board.jsonl"
    for outside in ("../..", "../runtime"):
        with pytest.raises(SpecError, match="AX855"):
            around.path(outside, "memory")


def test_a_file_that_changes_again_at_the_same_time_is_read_again(tmp_path):
    # the clock of a file server may go fast
    file, stamp = tmp_path / "a.md", time.time_ns() + 10**12
    file.touch()
    store = Files(
        FileConfig.model_validate({"file_sources": [{"path": "a.md"}]}),
        Surroundings(default_registry(), str(tmp_path)),
        "memory",
    )
    for text in ("old", "new"):
        file.write_text(text)
        os.utime(file, ns=(stamp, stamp))
        assert run_sync(store.found("?", [], Attachment(name="m"))) == [text]


class Counting:
    """An embedder that counts what it is asked for."""

    asked: list[str] = []  # noqa: RUF012  # shared on purpose

    def __init__(self, name: str = "") -> None:
        self._lexical = LexicalEmbedder()

    async def embed(self, texts: Any) -> Any:
        Counting.asked += texts
        return await self._lexical.embed(texts)


def test_vectors_of_files_are_made_once_where_there_is_an_index(talk, known, tmp_path):
    known.register("embedders", "counting", Counting)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("Axils are angles.", "utf-8")
    config = {
        "file_sources": [{"path": "docs"}],
        "index_path": "docs/index.json",
        "embedding": {"provider": "counting", "model": "m"},
    }
    store = [{"name": "bb", "type": "file", "config": config}]
    for asked in (["why?", "Axils are angles."], ["why?"]):
        Counting.asked.clear()
        talk(["ok"], [agent("A", READ)], task="why?", memory=store)
        assert Counting.asked == asked
    again = {**config, "embedding": {"provider": "counting", "model": "other"}}
    Counting.asked.clear()
    talk(
        ["ok"],
        [agent("A", READ)],
        task="why?",
        memory=[{"name": "bb", "type": "file", "config": again}],
    )
    assert Counting.asked == ["why?", "Axils are angles."]


def searched(tmp_path: Any) -> Files:
    """Return a memory of files whose index lies among them."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("Axils are angles.", "utf-8")
    config = {
        "file_sources": [{"path": "docs"}],
        "index_path": "docs/index.json",
        "embedding": {"provider": "counting", "model": "m"},
    }
    return Files(
        FileConfig.model_validate(config), Surroundings(default_registry(), str(tmp_path)), "memory"
    )


@pytest.fixture
def store(tmp_path, monkeypatch) -> Files:
    monkeypatch.setattr(Surroundings, "vectors", lambda *given: Vectors(LexicalEmbedder()))
    return searched(tmp_path)


def test_an_index_that_is_none_is_made_anew(tmp_path, store):
    (tmp_path / "docs/index.json").write_bytes(b"\xff\x00 nothing of ours")
    assert run_sync(store.found("why?", [], Attachment(name="m"))) == ["Axils are angles."]
    assert json.loads((tmp_path / "docs/index.json").read_text("utf-8"))["axil"] == "vectors"


def test_what_a_run_that_died_has_written_of_an_index_is_not_searched(tmp_path, store):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "replace", lambda *given: None)  # it dies before
        run_sync(store.found("why?", [], Attachment(name="m")))
    assert len(list((tmp_path / "docs").iterdir())) == 2
    assert run_sync(store.found("why?", [], Attachment(name="m"))) == ["Axils are angles."]


def test_several_runs_may_write_an_index_at_once(tmp_path, store, monkeypatch):
    both, replaced = threading.Barrier(2, timeout=60), Path.replace

    def late(file: Path, target: Path) -> Path:
        both.wait()  # both have written what is to become the index
        return replaced(file, target)

    monkeypatch.setattr(Path, "replace", late)

    async def go() -> list[list[str]]:
        return await asyncio.gather(
            *(store.found("why?", [], Attachment(name="m")) for _ in range(2))
        )

    assert asyncio.run(go()) == [["Axils are angles."]] * 2
    assert sorted(file.name for file in (tmp_path / "docs").iterdir()) == ["a.md", "index.json"]


def test_an_index_that_cannot_be_written_leaves_nothing_behind_and_says_so(
    tmp_path, store, monkeypatch
):
    def full(file: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StoreError, match=r"AX854 .*index\.json cannot be written: No space left"):
        run_sync(store.found("why?", [], Attachment(name="m")))
    assert [file.name for file in (tmp_path / "docs").iterdir()] == ["a.md"]


def test_a_file_that_goes_between_two_looks_is_not_there(tmp_path, store, monkeypatch):
    listing = stores._files
    (tmp_path / "docs/b.md").write_text("gone", "utf-8")

    def listed(*given: Any) -> Any:
        found = list(listing(*given))
        (tmp_path / "docs/b.md").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(stores, "_files", listed)
    assert run_sync(store.found("why?", [], Attachment(name="m"))) == ["Axils are angles."]


def test_vectors_are_found_though_others_push_them_out_meanwhile():
    class Slow(LexicalEmbedder):
        async def embed(self, texts: Any) -> Any:
            if "b" in texts:
                await vectors.of(["c"])
            return await super().embed(texts)

    vectors = Vectors(Slow(), most=1)
    a, b = asyncio.run(LexicalEmbedder().embed(["a", "b"]))
    asyncio.run(vectors.of(["a"]))
    assert asyncio.run(vectors.of(["a", "b"])) == [a, b]


@given(st.text(max_size=60), st.text(max_size=60))
def test_likeness_is_symmetric_bounded_and_full_for_the_same_words(one, other):
    a, b, c = asyncio.run(LexicalEmbedder().embed([one, other, one.upper()]))
    assert cosine(a, b) == cosine(b, a)
    assert -1.0001 <= cosine(a, b) <= 1.0001
    if any(a) and one.casefold() == one.upper().casefold():
        assert cosine(a, c) > 0.999


# ---------------------------------------------------------------------- what is refused


def test_a_memory_that_the_graph_does_not_have_is_an_error(flow):
    boards = [{"name": "boards", "type": "blackboard", "config": {}}]
    with pytest.raises(
        SpecError,
        match=r'AX852 .*nodes\[0\]: memories\[0\]: the graph has no memory "board"\. Did you '
        r'mean "boards"',
    ):
        flow([agent("A", {"name": "board"})], memory=boards).plan  # noqa: B018


def test_a_memory_of_an_unknown_type_is_an_error(flow):
    with pytest.raises(
        SpecError,
        match=r'AX852 .*memory\[0\]: no memory has the type "blackbord". Did you mean "blackboard"',
    ):
        _ = flow(
            [agent("A", READ)], memory=[{"name": "bb", "type": "blackbord", "config": {}}]
        ).plan


def test_a_memory_outside_the_workflows_folder_is_an_error(flow):
    for config in ({"memory_path": "../notes.jsonl"}, {"memory_path": "/tmp/notes.jsonl"}):
        with pytest.raises(SpecError, match=r"AX855 .*outside the folder"):
            flow([agent("A", READ)], memory=board(**config)).plan  # noqa: B018


def test_files_that_are_not_there_are_an_error_before_anything_runs(flow):
    store = [{"name": "bb", "type": "file", "config": {"file_sources": [{"path": "nowhere"}]}}]
    with pytest.raises(SpecError, match=r"AX855 .*no file or folder nowhere"):
        flow([agent("A", READ)], memory=store).plan  # noqa: B018


@pytest.mark.parametrize(
    "text", ["[]", "hello\n", '{"text": "no mark"}\n', '{"axil": "notes", "version": 1}\n[1]\n']
)
def test_a_file_that_is_something_else_is_never_written(tmp_path, text):
    file = tmp_path / "notes.jsonl"
    file.write_text(text, "utf-8")
    notes = NotesFile(file)
    for doing in (notes.read(), notes.add({"text": "new"})):
        with pytest.raises(StoreError, match="AX854"):
            asyncio.run(doing)
    assert file.read_text("utf-8") == text


def test_a_line_that_a_crash_cut_off_costs_only_itself(tmp_path):
    notes = NotesFile(tmp_path / "notes.jsonl")
    asyncio.run(notes.add({"text": "one"}))
    with notes.path.open("a", encoding="utf-8") as file:
        file.write('{"text": "hal\n')
    asyncio.run(notes.add({"text": "two"}))
    assert [note["text"] for note in asyncio.run(notes.read())] == ["one", "two"]


@pytest.mark.parametrize("cut", ['{"text": "hal', '{"text": "caf\u00e9'])
def test_a_line_that_a_crash_cut_off_anywhere_costs_only_itself(tmp_path, cut):
    notes = NotesFile(tmp_path / "notes.jsonl")
    asyncio.run(notes.add({"text": "one"}))
    with notes.path.open("ab") as file:
        file.write(cut.encode()[:14])
    asyncio.run(notes.add({"text": "two"}))
    asyncio.run(notes.add({"text": "three"}))
    assert [note["text"] for note in asyncio.run(notes.read())] == ["one", "two", "three"]


def test_a_note_for_which_there_is_no_room_is_an_error(tmp_path, monkeypatch):
    notes, write = NotesFile(tmp_path / "notes.jsonl"), os.write
    asyncio.run(notes.add({"text": "one"}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            os, "write", lambda file, data: write(file, data[:9] if b"two" in data else data)
        )
        with pytest.raises(StoreError, match=r"AX854 .*No space left"):
            asyncio.run(notes.add({"text": "two"}))
    asyncio.run(notes.add({"text": "three"}))
    assert [note["text"] for note in asyncio.run(notes.read())] == ["one", "three"]


# ---------------------------------------------------------------------- a service


def installed(monkeypatch: pytest.MonkeyPatch, package: str, there: bool) -> None:
    """Make a package seem to be installed, or not."""
    find = importlib.util.find_spec
    found = ModuleSpec(package, None) if there else None
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *more: found if name == package else find(name, *more),
    )


@pytest.fixture
def service(monkeypatch):
    calls: list[tuple[str, Any]] = []

    class Client:
        def __init__(self, api_key: str, **settings: Any) -> None:
            calls.append(("made", (api_key, settings)))

        async def search(self, query: str, **how: Any) -> Any:
            calls.append(("search", (query, how)))
            return {"results": [{"memory": "likes tea"}]}

        async def add(self, messages: Any, **whose: Any) -> None:
            calls.append(("add", (messages, whose)))

    module = ModuleType("mem0")
    module.AsyncMemoryClient = Client  # type: ignore[attr-defined]  # a stand-in
    monkeypatch.setitem(sys.modules, "mem0", module)
    installed(monkeypatch, "mem0", True)
    return calls


MEM0 = [{"name": "bb", "type": "mem0", "config": {"api_key": "k", "user_id": "u", "org_id": "o"}}]


def test_the_service_is_queried_and_written(talk, service):
    _, script = talk(
        ["Have tea."],
        [agent("A", {"name": "bb", "top_k": 2, "similarity_threshold": 0.5})],
        memory=MEM0,
    )
    assert "1. likes tea" in reported(script, 0)[0]
    assert service == [
        ("made", ("k", {"org_id": "o"})),
        (
            "search",
            (
                "TASK",
                {
                    "version": "v2",
                    "filters": {"OR": [{"user_id": "u"}]},
                    "top_k": 2,
                    "threshold": 0.5,
                },
            ),
        ),
        (
            "add",
            (
                [
                    {"role": "user", "content": "TASK"},
                    {"role": "assistant", "content": "Have tea."},
                ],
                {"user_id": "u"},
            ),
        ),
    ]


def test_each_event_loop_has_a_client_of_its_own(service):
    mem0 = Mem0(Mem0Config.model_validate(MEM0[0]["config"]))
    for _ in range(2):
        asyncio.run(mem0.found("?", 1, -1.0))
        asyncio.run(mem0.add({"text": "hello"}))
    assert [what for what, _ in service] == ["made", "search", "made", "add"] * 2
    assert len(mem0._clients) <= 1  # that of a closed loop is forgotten


def test_without_its_package_the_service_is_an_error_that_names_it(flow, monkeypatch):
    installed(monkeypatch, "mem0", False)
    with pytest.raises(SpecError, match=r"AX857 .*mem0ai is not installed\. .*install "):
        flow([agent("A", READ)], memory=MEM0).plan  # noqa: B018


def test_vectors_of_a_damaged_index_are_made_anew():
    class Embedder:
        async def embed(self, texts):
            return [[1.0, 0.0] for _ in texts]

    vectors = Vectors(Embedder())
    kept = {digest(text): [0.0, 1.0] for text in "ab"}
    damaged = {digest("c"): [0.0], digest("d"): "x", digest("e"): [None, 1], digest("f"): {}}
    for found in (None, [], "x", {**kept, **damaged}):
        vectors.recall(found)
    found = asyncio.run(vectors.of(list("abcdef")))
    assert found == [[0.0, 1.0]] * 2 + [[1.0, 0.0]] * 4

"""Memories in a store: whose they are, how many are kept."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from axil import run_sync
from axil_context import MemoryStore, StoreMemory, StoreRetriever
from axil_models import ContextBlock, ContextError, ContextQuery, Turn


def turn(text: str, reply: str, *, run: str = "r", user: str = "", number: int = 1) -> Turn:
    return Turn(
        query=ContextQuery(
            text, {"user": user} if user else {}, node_name="n", node_path="n", run_id=run
        ),
        reply=reply,
        number=number,
    )


def texts(blocks: Sequence[ContextBlock]) -> list[str]:
    return [block.text for block in blocks]


def test_the_newest_are_kept_of_each_namespace():
    async def go() -> None:
        memory = StoreMemory(namespace=["user"], max_items=3)
        for number in range(6):
            await memory.learn(turn("tea?", f"tea number {number}", user="ann", number=number))
        await memory.learn(turn("tea?", "tea for bob", user="bob"))
        assert sorted(texts(await memory.get_blocks(ContextQuery("tea", {"user": "ann"}), 50))) == [
            f"tea?\ntea number {n}" for n in (3, 4, 5)
        ]
        await memory.put([ContextBlock(f"nobody's {n}", "kit", str(n)) for n in range(5)])
        assert len(await memory.get_blocks(ContextQuery("tea", {"user": "ann"}), 50)) == 3
        newest = await memory.get_blocks(ContextQuery("", {"user": "ann"}), 2)
        assert texts(newest) == ["tea?\ntea number 5", "tea?\ntea number 4"]
        assert texts(await memory.get_blocks(ContextQuery("tea", {"user": "bob"}), 50)) == [
            "tea?\ntea for bob"
        ]
        await memory.close()

    run_sync(go())


@pytest.mark.parametrize(
    "namespace", [["run"], ["session"], ["agent"], ["user"], ["agent", "user"]]
)
def test_memories_are_kept_apart_for_each_run_session_agent_and_user(namespace):
    def asked(who: dict[str, str]) -> ContextQuery:
        return ContextQuery(
            "tea",
            {"user": who["user"]},
            node_name=who["agent"],
            run_id=who["run"],
            session_id=who["session"],
        )

    one = {"run": "r1", "session": "s1", "agent": "a1", "user": "u1"}
    others = [{**one, name: one[name].replace("1", "2")} for name in one]

    async def go() -> None:
        memory = StoreMemory(namespace=namespace)
        for number, who in enumerate((one, *others)):
            await memory.learn(Turn(query=asked(who), reply=f"tea of {number}", number=number))
        mine = texts(await memory.get_blocks(asked(one), 50))
        shared = [
            number
            for number, who in enumerate(others, 1)
            if all(who[name] == one[name] for name in namespace)
        ]
        assert sorted(mine) == [f"tea\ntea of {number}" for number in (0, *shared)]
        held = await memory.get_blocks(asked(one), 50)
        await memory.delete([block for block in held if block.text.endswith("of 0")])
        assert len(await memory.get_blocks(asked(one), 50)) == len(shared)
        await memory.close()

    run_sync(go())


def test_what_one_user_says_is_no_filter_for_another():
    """A namespace is stronger than what a query asks for."""

    async def go() -> list[str]:
        memory = StoreMemory(namespace=["user"])
        await memory.learn(turn("pin?", "the pin is 1234", user="ann"))
        query = ContextQuery("pin", {"user": "bob"}, filters={"owner_user": "ann"})
        found = texts(await memory.get_blocks(query, 50))
        await memory.close()
        return found

    assert run_sync(go()) == []


def test_memories_and_documents_share_no_collection():
    store = MemoryStore()
    run_sync(StoreMemory(store=store).learn(turn("tea?", "Have tea.")))
    retriever = StoreRetriever(store=store, documents=["a text"])
    with pytest.raises(ContextError, match=r"AX910 .* holds memories, and is opened for documents"):
        run_sync(retriever.get_blocks(ContextQuery("tea")))

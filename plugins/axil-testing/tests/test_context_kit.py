"""A sound provider passes the kit; each way in which providers go wrong is caught, by the law that
is about it.
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from axil_models import ContextBlock, ContextQuery
from axil_testing.kit import ContextKit, check


def words(text: str) -> set[str]:
    return set(text.lower().split())


class Smallest:
    """All that a provider has to have."""

    def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        asked = words(query.query_text)
        found = [
            (len(asked & words(text)) / len(words(text)), number, text)
            for number, text in enumerate(ContextKit.texts)
        ]
        best = sorted((each for each in found if each[0]), key=lambda each: -each[0])
        return [
            ContextBlock(text, "smallest", str(n), score, metadata={"provider": "smallest"})
            for score, n, text in best
        ][:top_k]


def test_a_class_with_get_blocks_and_nothing_else_passes():
    class TestSmallest(ContextKit):
        def make(self) -> Any:
            return Smallest()

    report = check(TestSmallest)
    assert [each.reason for each in report.failures] == []
    assert report.count("passed") > 8


class Sound:
    """A provider whose turns are found by the words that they share with the query."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def known(self) -> dict[tuple[str, str], dict[str, Any]]:
        return (
            {(b["uri"], b["chunk_id"]): b for b in json.loads(self.path.read_text())}
            if self.path.exists()
            else {}
        )

    async def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        await asyncio.sleep(0)
        asked = words(query.query_text)
        scored = [
            (len(asked & words(each["text"])) / len(words(each["text"])), each)
            for each in self.chosen(query)
        ]
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
        return [self.block(each, score) for score, each in best][:top_k]

    def chosen(self, query: ContextQuery) -> list[dict[str, Any]]:
        wanted = {**query.filters, **self.owner(query)}
        return [each for each in self.known.values() if wanted.items() <= each["metadata"].items()]

    def owner(self, query: ContextQuery) -> dict[str, Any]:
        return {}

    def block(self, each: dict[str, Any], score: float) -> ContextBlock:
        return ContextBlock(
            **{**each, "metadata": {**each["metadata"], "provider": "sound"}}, score=score
        )

    def put(self, blocks: Any) -> None:
        held = self.known
        for block in blocks:
            held.pop((block.uri, block.chunk_id), None)
            held[block.uri, block.chunk_id] = {
                "text": block.text,
                "uri": block.uri,
                "chunk_id": block.chunk_id,
                "metadata": dict(block.metadata),
            }
        self.path.write_text(json.dumps(list(held.values())))

    def delete(self, blocks: Any) -> None:
        held = self.known
        for block in blocks:
            held.pop((block.uri, block.chunk_id), None)
        self.path.write_text(json.dumps(list(held.values())))

    async def learn(self, turn: Any) -> None:
        name = f"{turn.number} {turn.query.inputs.get('user')}"
        self.put([ContextBlock(turn.reply, "turns", name, metadata=self.owner(turn.query))])


class Owned(Sound):
    def owner(self, query: ContextQuery) -> dict[str, Any]:
        return {"owner": query.inputs.get("user")}


class SoundKit(ContextKit):
    filters = indexes = persists = idempotent = True
    made: Any = Sound

    def make(self) -> Any:
        return self.made(self.folder / "known.json")

    def broken(self) -> Any:
        (self.folder / "known.json").write_text("not JSON")
        return self.make()


class OwnedKit(SoundKit):
    filters = indexes = False
    namespaced = "user"
    made = Owned

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        for number, text in enumerate(texts or self.texts):
            await self.tell(provider, text, number, owner)


@pytest.mark.parametrize("kit", [SoundKit, OwnedKit])
def test_a_sound_provider_passes(kit):
    report = check(kit)
    assert [(each.law, each.reason) for each in report.failures] == []
    assert report.count("passed") >= 16  # one more where a new process can import this module


# --------------------------------------------------------------------------------------------------


class IgnoresTopK(Sound):
    async def get_blocks(self, query, top_k=8):
        return await super().get_blocks(query, 1000)


class NeverFewerThanOne(Sound):
    async def get_blocks(self, query, top_k=8):
        return await super().get_blocks(query, max(top_k, 1))


class WorstFirst(Sound):
    async def get_blocks(self, query, top_k=8):
        return list(reversed(await super().get_blocks(query, 1000)))[:top_k]


class SwallowsCancel(Sound):
    async def get_blocks(self, query, top_k=8):
        try:
            await asyncio.sleep(0.001)
            return await super().get_blocks(query, top_k)
        except asyncio.CancelledError:
            return []


class HurtByCancel(Sound):
    hurt = False

    async def get_blocks(self, query, top_k=8):
        if self.hurt:
            return []
        self.hurt = True
        found = await super().get_blocks(query, top_k)
        self.hurt = False
        return found


class NoOrigin(Sound):
    def block(self, each, score):
        return ContextBlock(
            each["text"], score=score, metadata={"provider": "x", **each["metadata"]}
        )


class NoProvider(Sound):
    def block(self, each, score):
        return ContextBlock(**each, score=score)


class HidesFailure(Sound):
    @property
    def known(self):
        try:
            return super().known
        except ValueError:
            return {}


class FailsWhenEmpty(Sound):
    async def get_blocks(self, query, top_k=8):
        await asyncio.sleep(0)
        query.query_text.split()[0]
        return await super().get_blocks(query, top_k)


class FailsOnSurrogates(Sound):
    async def get_blocks(self, query, top_k=8):
        query.query_text.encode()
        return await super().get_blocks(query, top_k)


class EvaluatesFormats(Sound):
    async def get_blocks(self, query, top_k=8):
        (query.query_text % ()).strip()
        return await super().get_blocks(query, top_k)


class Shuffles(Sound):
    turn = 0

    async def get_blocks(self, query, top_k=8):
        found = await super().get_blocks(query, top_k)
        Shuffles.turn += 1
        return found if Shuffles.turn % 4 < 2 else found[::-1]


class SharesState(Sound):
    asked: Any = None

    async def get_blocks(self, query, top_k=8):
        self.asked = query
        await asyncio.sleep(0)
        return await super().get_blocks(self.asked, top_k)


class BoundToOneLoop(Sound):
    loop: Any = None

    async def get_blocks(self, query, top_k=8):
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("attached to a different loop")
        return await super().get_blocks(query, top_k)


class GivesItsOwn(Sound):
    held: Any = None

    async def get_blocks(self, query, top_k=8):
        self.held = self.held or {}
        found = await super().get_blocks(query, top_k)
        return [self.held.setdefault((block.uri, block.chunk_id), block) for block in found]


class ChangesQuery(Sound):
    async def get_blocks(self, query, top_k=8):
        query.inputs["seen"] = True
        return await super().get_blocks(query, top_k)


class IgnoresFilters(Sound):
    def chosen(self, query):
        return list(self.known.values())


class AddsInsteadOfReplacing(Sound):
    def put(self, blocks):
        super().put(
            [
                ContextBlock(b.text, b.uri, f"{b.chunk_id}{len(self.known)}", metadata=b.metadata)
                for b in blocks
            ]
        )


class NeverForgets(Sound):
    def delete(self, blocks):
        """It does not."""


class Forgets(Sound):
    def __init__(self, path):
        super().__init__(path.with_name(f"{uuid4().hex}.json"))


class RemembersTwice(Sound):
    async def learn(self, turn):
        await super().learn(turn)
        self.put([ContextBlock(turn.reply, "turns", f"again {len(self.known)}")])


class CallsHome(Sound):
    async def get_blocks(self, query, top_k=8):
        with socket.socket(socket.AF_UNIX) as home:
            home.connect_ex("\0nobody-listens")
        return await super().get_blocks(query, top_k)


class OpensWhenMade(Sound):
    def __init__(self, path):
        super().__init__(path)
        path.with_suffix(".log").write_text("made")


MUTANTS = {
    IgnoresTopK: "it gives no more than it is asked for",
    NeverFewerThanOne: "it gives no more than it is asked for",
    WorstFirst: "the best comes first",
    SwallowsCancel: "a cancelled question is cancelled",
    HurtByCancel: "a cancelled question is cancelled",
    NoOrigin: "its blocks have text and origin",
    NoProvider: "its blocks have text and origin",
    HidesFailure: "a failure is seen",
    FailsWhenEmpty: "an empty query is no error",
    FailsOnSurrogates: "any text is only text",
    EvaluatesFormats: "any text is only text",
    Shuffles: "the same question gets the same answer",
    SharesState: "questions side by side do not disturb each other",
    BoundToOneLoop: "it serves several event loops",
    GivesItsOwn: "what is done to a block changes nothing",
    ChangesQuery: "what is done to a block changes nothing",
    IgnoresFilters: "filters are kept to",
    AddsInsteadOfReplacing: "blocks can be put replaced and deleted",
    NeverForgets: "blocks can be put replaced and deleted",
    Forgets: "what was written is there when it is made again",
    RemembersTwice: "a turn given twice is remembered once",
    CallsHome: "it connects to nothing",
    OpensWhenMade: "making it has no effects",
}


def caught(kit: type[ContextKit], law: str) -> str:
    """Return why the law does not hold; empty: it holds."""
    name = f"test_{law.replace(' ', '_')}"
    try:
        getattr(kit(), name)()
    except Exception as error:  # noqa: BLE001  # whatever a mutant raises is a failed law
        return str(error) or type(error).__name__
    return ""


@pytest.mark.parametrize(
    ("mutant", "law"), MUTANTS.items(), ids=[mutant.__name__ for mutant in MUTANTS]
)
def test_a_mutant_is_caught(mutant, law):
    assert caught(SoundKit, law) == ""
    assert caught(type("Mutant", (SoundKit,), {"made": mutant}), law) != ""


class MixesOwners(Owned):
    def chosen(self, query):
        return list(self.known.values())


class NoUserIsEveryUser(Owned):
    def chosen(self, query):
        return super().chosen(query) if query.inputs.get("user") else list(self.known.values())


@pytest.mark.parametrize("mutant", [MixesOwners, NoUserIsEveryUser])
def test_a_provider_that_mixes_owners_is_caught(mutant):
    law = "what is one owners is not anothers"
    assert caught(OwnedKit, law) == ""
    assert caught(type("Mutant", (OwnedKit,), {"made": mutant}), law) != ""


def test_an_sdk_that_is_imported_at_once_is_caught(tmp_path, monkeypatch):
    (tmp_path / "eager_provider.py").write_text("import wave\nclass Eager: ...\n")
    (tmp_path / "lazy_provider.py").write_text("class Eager: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    for module, expected in (("eager_provider", "imports wave"), ("lazy_provider", "")):
        kit = type(
            "Kit",
            (SoundKit,),
            {"component": type("Eager", (), {"__module__": module}), "sdk": ("wave",)},
        )
        assert expected in caught(kit, "importing it imports no sdk")
        assert bool(expected) == bool(caught(kit, "importing it imports no sdk"))

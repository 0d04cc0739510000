"""All providers of this distribution keep what providers promise."""

from __future__ import annotations

from typing import Any

from axil_context import Blackboard, FactMemory, FileMemory, Skills, StoreMemory
from axil_models import ContextBlock
from axil_testing.kit import ContextKit


class Broken:
    """An index that is out of order."""

    def get_blocks(self, query: Any, top_k: int = 8) -> Any:
        raise ConnectionError("no index today")

    def put(self, blocks: Any) -> None: ...

    def delete(self, blocks: Any) -> None: ...


class TestFileMemory(ContextKit):
    component = FileMemory
    config = {"path": "memory.jsonl"}  # noqa: RUF012  # the kit's own attribute
    filters = indexes = persists = True

    def make(self) -> Any:
        return FileMemory(path=str(self.folder / "memory.jsonl"))

    def broken(self) -> Any:
        return FileMemory(path=str(self.folder / "memory.jsonl"), index=Broken())


class TestFileMemoryOfUsers(ContextKit):
    component = FileMemory
    config = {"path": "memory.jsonl"}  # noqa: RUF012  # the kit's own attribute
    persists = idempotent = True
    namespaced = "user"

    def make(self) -> Any:
        return FileMemory(
            path=str(self.folder / "memory.jsonl"), namespace=["user"], index="vector"
        )

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        for number, text in enumerate(texts or self.texts):
            await self.tell(provider, text, number, owner)


class TestBlackboard(ContextKit):
    component = Blackboard
    searches = False
    idempotent = True

    def make(self) -> Any:
        return Blackboard()

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        for number, text in enumerate(texts or self.texts):
            await self.tell(provider, text, number, owner)


class TestFacts(ContextKit):
    component = FactMemory
    config = {"index": "keyword"}  # noqa: RUF012  # the kit's own attribute

    def make(self) -> Any:
        return FactMemory(index={"type": "file_memory", "path": str(self.folder / "facts.jsonl")})

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        await provider.index.put(
            [
                ContextBlock(t, "facts:", str(n), metadata={"kind": "fact"})
                for n, t in enumerate(texts or self.texts)
            ]
        )

    def broken(self) -> Any:
        return FactMemory(index=Broken())


class TestSkills(ContextKit):
    component = Skills
    config = {"paths": ["skills"]}  # noqa: RUF012  # the kit's own attribute
    searches = False

    def make(self) -> Any:
        return Skills(paths=[str(self.folder)])

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        for number, text in enumerate(texts or self.texts):
            folder = self.folder / f"skill-{number}"
            folder.mkdir()
            (folder / "SKILL.md").write_text(
                f"---\nname: skill-{number}\ndescription: |\n  {text}\n---\nbody {number}\n",
                "utf-8",
            )

    def broken(self) -> Any:
        return Skills(paths=["no/such/folder"])


class TestStoredOfUsers(ContextKit):
    component = StoreMemory
    idempotent = True
    namespaced = "user"

    def make(self) -> Any:
        return StoreMemory(namespace=["user"])

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        for number, text in enumerate(texts or self.texts):
            await self.tell(provider, text, number, owner)

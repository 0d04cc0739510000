"""A workspace, a context that allows what a test says, and the tools by name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import Grants
from axil_models import tool_of
from axil_workspace import Workspace


class Firing:
    """The part of a firing's context that tools use."""

    def __init__(self, workspace: Path | None, *allow: str) -> None:
        self.workspace, self.allow, self.slept = workspace, allow, list[float]()
        self.answers: list[Any] = []

    def allows(self, what: str) -> bool:
        return Grants(words=frozenset(self.allow)).allows(what)

    def now(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def ask(self, question: Any) -> Any:
        return self.answers.pop(0)


@pytest.fixture
def firing(tmp_path) -> Firing:
    return Firing(tmp_path / "run", "code", "network")


@pytest.fixture
def place(firing) -> Workspace:
    return Workspace.of(firing)


@pytest.fixture
def use(firing):
    """``use(kind_or_set, name, **arguments)``: the result of a tool, called as an agent calls
    it.
    """

    def call(kind: Any, name: str, /, **arguments: Any) -> Any:
        return asyncio.run(_called(kind, name, arguments, firing))

    return call


async def _called(kind: Any, name: str, arguments: Mapping[str, Any], firing: Any) -> str:
    made = kind() if isinstance(kind, type) else kind
    tools = {tool.name: tool for tool in map(tool_of, await made.tools())}
    return await tools[name](arguments, firing)


@pytest.fixture
def called() -> Any:
    """``called(kind_or_set, name, arguments, firing)``, to be awaited."""
    return _called


@pytest.fixture
def firing_of() -> Any:
    """``firing_of(folder, "code")``: a context of a run with that workspace, which allows that."""
    return Firing

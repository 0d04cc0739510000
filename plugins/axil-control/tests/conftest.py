"""Shared fixtures: this distribution's components as files name them, and runs of small graphs by
the real kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from axil import Options, Result, Run, Schema
from axil.plugin import CompileOptions, EdgeInput, Registry, compile_spec
from axil_files import Document, LoadOptions, spec_from_document
from axil_testing.members import own_components


@pytest.fixture
def registry() -> Any:
    """The components of this distribution, as its pyproject.toml names them, and JSON files."""
    others = {"axil.loaders": {"json": "axil_files.documents:parse_json"}}
    with own_components(__file__, others) as made:
        yield made


def seen(payload: Any, **state: Any) -> EdgeInput:
    """Return what an edge sees: a text as one message, or a payload as it is."""
    return EdgeInput(
        {"role": "user", "content": payload} if isinstance(payload, str) else payload,
        Schema().start(state),
    )


@pytest.fixture(name="seen")
def _seen() -> Callable[..., EdgeInput]:
    return seen


@dataclass
class Watch:
    """The nodes that fired, in order, by their paths."""

    fired: list[str]

    def firing_started(self, activation: Any, kind: str) -> None:
        if kind != "cycle":
            self.fired.append(activation.path)


@pytest.fixture
def run(registry: Registry) -> Callable[..., Result]:
    """Run a graph as files write it; ``result.fired`` would be ``watch.fired`` where a watch is
    given.
    """

    def run(
        graph: Mapping[str, Any],
        text: str | Mapping[str, Any] = "TASK",
        *,
        watch: Watch | None = None,
        folder: Path | None = None,
        **options: Any,
    ) -> Result:
        where = str(folder) if folder else ""
        spec = spec_from_document(
            Document(data={"graph": {"id": "t", **graph}}, name="flow.yaml"),
            LoadOptions(folder=where, root=where),
        )
        plan = compile_spec(spec, CompileOptions(registry=registry, folder=where))
        given = Options(observers=[watch] if watch else [], **options)
        said = [{"role": "user", "content": text, "source": "TASK"}]
        return asyncio.run(Run(plan, said if isinstance(text, str) else text, given).result())

    return run


@pytest.fixture
def watch() -> Watch:
    return Watch([])


def texts(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [m["content"] for m in messages]


@pytest.fixture(name="texts")
def _texts() -> Callable[..., list[Any]]:
    return texts

"""Tokens of the demo and of the example teams, and how many of them a provider's prompt cache
knows: no key and no network, the models follow their scripts.

python benchmarks/tokens.py [--write]        see docs/explanation/performance/tokens.md
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import axil
from axil_agent import Scripted
from axil_testing.stub import PromptCache, front, shared_front

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs/explanation/performance/tokens.md"
BEFORE = PAGE.with_suffix(".json")
"""The counts before prompts were laid out for caches: written once, and kept."""


@dataclass(kw_only=True)
class Tally:
    """The counts of one application."""

    calls: int = 0
    tokens: int = 0
    """Sent to models."""
    cached: int = 0
    """Of them those that were at the front of an earlier request of any agent."""
    again: int = 0
    """What an agent that is asked again had sent the time before."""
    kept: int = 0
    """Of that, what is at the front of its next request."""

    @property
    def share(self) -> float | None:
        """How much of what an agent had sent is at the front of its next request."""
        return self.kept / self.again if self.again else None

    @property
    def cells(self) -> list[str]:
        share = "–" if self.share is None else f"{self.share:.0%}"
        return [f"{self.calls}", f"{self.tokens:,}", f"{self.cached:,}", share]


class Counted:
    """An observer of what models are asked: a provider's cache, and each agent's last request."""

    def __init__(self) -> None:
        self.cache, self.tally = PromptCache(), Tally()
        self._last: dict[str, str] = {}

    def step_started(self, activation: Any, step: str, request: Any, kind: str) -> None:
        """Count a call of a model."""
        if kind != "model":
            return
        found = front(request)
        text, (tokens, cached) = found.text, self.cache.asked(found)
        tally = self.tally
        tally.calls += 1
        tally.tokens += tokens
        tally.cached += cached
        before = self._last.get(activation.path, "")
        tally.again += len(before)
        tally.kept += shared_front(before, text)
        self._last[activation.path] = text


def scripted(name: str) -> Scripted:
    """Return the script of an application."""
    return Scripted.from_file(EXAMPLES / name)


async def newsroom(seen: Counted, folder: Path) -> Any:
    """The demo."""
    with scripted("replies/newsroom.yaml").everywhere():
        workflow = axil.load(EXAMPLES / "newsroom.yaml")
        return await workflow.run("Why do plants branch where they do?", observers=[seen])


async def team(name: str, seen: Counted, folder: Path) -> Any:
    """One of the teams in files."""
    allow = ["program:python3"] if name == "company" else []
    with scripted(f"teams/replies/{name}.yaml").everywhere():
        workflow = axil.load(EXAMPLES / f"teams/{name}.yaml", allow=allow)
        ways: dict[str, Any] = {"workspace": folder, "allow": frozenset(allow)}
        return await workflow.run(TASKS[name], observers=[seen], **ways)


TASKS = {
    "company": "Print the primes below 30.",
    "debate": "Should the office move to the country?",
    "plan": "How many trees would shade our yard?",
    "research": "Why do plants branch where they do?",
}


async def counted(name: str) -> Tally:
    """Return the counts of an application."""
    seen = Counted()
    with tempfile.TemporaryDirectory() as folder:
        made = newsroom if name == "newsroom" else None
        run = made(seen, Path(folder)) if made else team(name, seen, Path(folder))
        result = await run
    assert result.status == "done", result
    return seen.tally


NAMES = ("newsroom", *TASKS)


def measured() -> dict[str, Tally]:
    """Return the counts of all applications."""
    key = os.environ.pop("OPENAI_API_KEY", None)  # with one, a model would answer
    try:
        return {name: asyncio.run(counted(name)) for name in NAMES}
    finally:
        if key is not None:
            os.environ["OPENAI_API_KEY"] = key


def main() -> None:
    print({n: (t.cells) for n, t in measured().items()})


if __name__ == "__main__":
    main()

"""The made parts of the pages of docs/examples: drawing, cost table and run of each application in
examples/teams; and the drawings of the page of teams.

``make manifests`` writes them, ``test_teams.py`` holds them to the examples.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import axil_files
import axil_journals
from axil_agent import Scripted
from axil_models import Prices, Usage

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/teams"
PAGES = ROOT / "docs/examples"
TEAMS = ROOT / "docs/how-to/teams.md"
INPUTS = {
    "company": "Print the primes below 30.",
    "debate": "Should the office move to the country?",
    "plan": "How many trees would shade our yard?",
    "research": "Why do plants branch where they do?",
}
PRICES = Prices(input=0.40, output=1.60)
"""Money for a million tokens, as the pages say."""


class Seen:
    """An observer of what agents say, call and use."""

    def __init__(self) -> None:
        self.order: dict[str, int] = {}
        self.said: list[tuple[int, str]] = []
        self.used: dict[str, list[Usage]] = {}

    def firing_started(self, activation: Any, kind: str) -> None:
        """Note the place of a firing: agents side by side are shown as they start."""
        self.order.setdefault(str(activation), len(self.order))
        if activation.path not in self.used:
            self.used[activation.path] = []

    def step_finished(self, activation: Any, step: str, result: Any, kind: str) -> None:
        """Note a reply of a model, with what it used."""
        if kind != "model":
            return
        name = _short(activation.path)
        usage = result["usage"]
        self.used[activation.path].append(
            Usage(input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])
        )
        at = self.order[str(activation)]
        for call in result.get("tool_calls") or ():
            self.said.append((at, f"{name} calls {call['name']}"))
        if result["text"]:
            self.said.append((at, f"{name}: {' '.join(result['text'].split())}"))

    def run(self, *, is_parallel: bool) -> str:
        """Return what was said and called, a line each."""
        said = sorted(self.said, key=lambda said: said[0]) if is_parallel else self.said
        return "\n".join(line for _, line in said)

    def table(self) -> str:
        """Return the cost table."""
        rows = ["| agent | calls | input tokens | output tokens | cost |", "|---|---|---|---|---|"]
        whole: list[Usage] = []
        for path, calls in self.used.items():
            rows += [_row(_short(path), calls)] if calls else []
            whole += calls
        return "\n".join([*rows, _row("**all**", whole)])


def _short(path: str) -> str:
    return path.rpartition("/")[2]


def _row(name: str, calls: list[Usage]) -> str:
    came, went = sum(c.input_tokens for c in calls), sum(c.output_tokens for c in calls)
    cost = PRICES.priced(Usage(input_tokens=came, output_tokens=went)).cost
    return f"| {name} | {len(calls)} | {came} | {went} | {cost:.6f} |"


def support() -> ModuleType:
    """Return the program of the support desk."""
    spec = importlib.util.spec_from_file_location("support", EXAMPLES / "support.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def _desk(folder: Path, seen: Seen) -> tuple[str, list[str]]:
    """Return the drawing and the last words of the desk, which is asked twice."""
    graph, journal = support().support(folder / "customers.jsonl"), axil_journals.MemoryJournal()
    ways: dict[str, Any] = {"journal": journal, "observers": [seen]}

    def hear(line: str) -> str:
        seen.said.append((0, line))
        return line.partition(": ")[2]

    message = hear("customer: Order 17 never came. 40 euros!")
    result = await graph.run({"message": message}, **ways)
    question = result.questions[0]
    hear(f"a person is asked: {question.text.splitlines()[0]}")
    answers = {question.id: hear("the person: allow")}
    result = await graph.resume(result.run_id, answers=answers, **ways)
    message = hear("customer, later: What about my order 17?")
    again = await graph.run({"message": message}, observers=[seen])
    return graph.draw("svg"), [str(result.output["message"]), str(again.output["message"])]


async def _team(name: str, folder: Path, seen: Seen) -> tuple[str, list[str]]:
    script = Scripted.from_file(EXAMPLES / f"replies/{name}.yaml")
    allow = ["program:python3"] if name == "company" else []
    with script.everywhere():
        workflow = axil_files.load(EXAMPLES / f"{name}.yaml", allow=allow)
        result = await workflow.run(
            INPUTS[name], workspace=folder, allow=frozenset(allow), observers=[seen]
        )
    return workflow.draw("svg"), [str(m["content"]) for m in result.messages]


def parts_of(name: str, folder: Path) -> tuple[Mapping[str, str], list[str]]:
    """Run an example in a folder; return the made parts of its page, by kind, and its answers."""
    seen = Seen()
    key = os.environ.pop("OPENAI_API_KEY", None)  # with one, a model would answer
    try:
        drawing, answers = asyncio.run(
            _desk(folder, seen) if name == "support" else _team(name, folder, seen)
        )
    finally:
        if key is not None:
            os.environ["OPENAI_API_KEY"] = key
    return {
        "svg": drawing,
        "text": seen.run(is_parallel=name != "support"),
        "table": seen.table(),
    }, answers


def sections() -> list[tuple[str, str]]:
    """Return the teams of the page of teams, each with the file of a node that it shows."""
    return re.findall(
        r"^## `(\w+)`\n.*?^```yaml\n(.*?)^```\n\n!\[\1\]\(pictures/\1\.svg\)\n",
        TEAMS.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )


def written(folder: Path, name: str, text: str) -> Path:
    """Return a file with the node of a section."""
    node = "".join(f"      {line}\n" for line in text.splitlines())
    file = folder / "team.yaml"
    file.write_text(
        "version: 1\ngraph:\n  id: team\n"
        f"  start: [{name}]\n  nodes:\n    - id: {name}\n{node}  edges: []\n",
        "utf-8",
    )
    return file


def filled(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with its made parts."""
    block = f"```text\n{parts['text'].rstrip()}\n```"
    page = re.sub(r"^```text\n.*?^```$", lambda _: block, page, count=1, flags=re.M | re.S)
    table = parts["table"]
    return re.sub(
        r"^\| agent \|.*?\n(?=\n)", lambda _: f"{table}\n", page, count=1, flags=re.M | re.S
    )


def main() -> None:
    """Write the made parts of all pages."""
    for name in [*INPUTS, "support"]:
        page = PAGES / f"{name}.md"
        with tempfile.TemporaryDirectory() as folder:
            parts, _ = parts_of(name, Path(folder))
        page.write_text(filled(page.read_text("utf-8"), parts), "utf-8")
        (PAGES / f"pictures/{name}.svg").write_text(parts["svg"], "utf-8")
    for name, text in sections():
        with tempfile.TemporaryDirectory() as folder:
            drawing = axil_files.load(written(Path(folder), name, text)).draw("svg")
        (TEAMS.parent / f"pictures/{name}.svg").write_text(drawing, "utf-8")


if __name__ == "__main__":
    main()

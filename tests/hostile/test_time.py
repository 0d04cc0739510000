"""A run ends within a second of its ``limits.seconds``, whatever its file has it compute."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from axil import run_sync
from axil.plugin import default_registry
from axil_files import load

from .test_bounds import PASS, agent, edge, literal, whole

SECONDS = 0.3
SLOW = r"(a|aa)+$"
"""Takes more than its second for ``LONG``."""
LONG = "a" * 60 + "!"
Config = dict[str, Any]


def many(kind: str, use: Config, count: int = 40, text: str = LONG) -> Config:
    """Return a file with many edges, side by side, that each have work."""
    ends = [PASS] * count
    ways = [{"from": "n0", "to": f"n{i + 1}", kind: use} for i in range(count)]
    return whole(literal(text), *ends, edges=ways)


def guarded(*guards: Config, text: str = LONG) -> Config:
    wrapper = {"type": "guard", "config": {"output": list(guards), "action": "mask"}}
    return whole({**literal(text), "wrappers": [wrapper]})


def regex(kind: str, **more: Any) -> Config:
    return {"type": kind, "config": {"pattern": SLOW, **more}}


def steps(depth: int) -> Config:
    made: Config = {f"s{i}": {"anyOf": [{"$ref": f"#/$defs/s{i + 1}"}] * 2} for i in range(depth)}
    return {"$defs": {**made, f"s{depth}": {"type": "string"}}, "$ref": "#/$defs/s0"}


VOTES = [{"from": "n0", "to": f"n{i + 1}"} for i in range(30)] + [
    {"from": f"n{i + 1}", "to": "n31"} for i in range(30)
]
KINDS: dict[str, Config] = {
    "conditions with patterns": many("condition", regex("regex")),
    "one condition with many patterns": whole(
        literal(LONG),
        PASS,
        edges=edge(condition={"type": "keyword", "config": {"regex": [SLOW] * 40}}),
    ),
    "extractions": many("process", regex("regex_extract", on_no_match="drop")),
    "expressions": many(
        "condition",
        {"type": "expression", "config": {"expression": " or ".join(["'xxxxxxb' in text"] * 400)}},
        40,
        "x" * 1_000_000,
    ),
    "templates": many(
        "process",
        {"type": "template", "config": {"template": "{z}" * 10_000, "on_missing": "empty"}},
        60,
    ),
    "keywords": many(
        "condition", {"type": "keyword", "config": {"any": ["b"] * 3_000}}, text="x" * 1_000_000
    ),
    "guards with patterns": guarded(*[{"type": "allow_list", "deny": [SLOW] * 40}] * 3),
    "guards": guarded(*[{"type": "pii"}] * 300, text="1 " * 200_000),
    "schemas": guarded(*[{"type": "schema", "json_schema": steps(16)}] * 3, text='{"a": 1}'),
    "items by pattern": whole(
        literal(LONG),
        {"type": "map", "config": {"body": PASS, "split": regex("regex")}},
    ),
    "votes": whole(
        literal(LONG),
        *[{"type": "literal", "config": {"content": LONG}}] * 30,
        {"type": "vote", "config": {"pattern": SLOW}},
        edges=VOTES,
    ),
    "items": whole(
        literal("x\n" * 9_000),
        {
            "type": "map",
            "config": {"body": PASS, "split": {"type": "regex", "config": {"pattern": "x"}}},
        },
    ),
    "a reply that is no JSON": whole(
        agent(
            model={"type": "scripted", "default": '{"a' + '\\"' * 1_000_000},
            formatters="json",
        )
    ),
    "a reply that is fences": whole(
        agent(
            model={"type": "scripted", "default": "```json\n{'a':1\n```\n" * 300_000},
            formatters="lenient_json",
        )
    ),
    "functions of names": many(
        "condition",
        {"type": "function", "config": {"name": "should_stop_loop"}},
        300,
        "verdict: " * 50_000,
    ),
}


@pytest.mark.third
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_ends_with_its_time(tmp_path: Path, kind: str):
    file = tmp_path / "flow.json"
    given = KINDS[kind]
    given["graph"]["limits"] = {"seconds": SECONDS}
    file.write_text(json.dumps(given))
    flow = load(file)
    assert flow.plan
    begun = time.process_time()  # of this process: others have the machine, too
    result = run_sync(flow.start("x"))
    took = time.process_time() - begun
    assert getattr(result.error, "id", "") == "AX415", result.error
    assert took < SECONDS + 1


UNITS = ('\\"', "```` a\n", "# a\nb\n", "a:\nb\n", "<think></think>", "[}", "} ", '"a" ')


@pytest.mark.parametrize("name", ["json", "lenient_json", "markdown", "paragraph", "tagged"])
def test_a_formatter_reads_in_time_that_grows_with_the_text(name: str):
    formatter = default_registry().resolve("formatters", name)()
    begun = time.process_time()
    for unit in UNITS:
        for text in (unit * 10_000, "{" + unit * 10_000, "# a" + " " * 10_000 + "b"):
            with suppress(ValueError):
                formatter.parse(text, ["a", "b"])
    assert time.process_time() - begun < 10  # minutes, where each letter looks at all the others

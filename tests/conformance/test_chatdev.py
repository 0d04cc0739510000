"""DevAll's recorded runs: its workflow files as they are, against scripted people and a scripted
model.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from axil import (
    AxilError,
    ComponentRef,
    GraphSpec,
    NodeFailed,
    Result,
    SpecError,
    Workflow,
    run_sync,
)
from axil.plugin import CompileOptions, Registry, RunError, gather_messages, text_of
from axil_agent import Scripted
from axil_control import Replies
from axil_files import load_spec
from axil_models import ModelError
from axil_testing import JumpingClock

from .devall_corpus import outside, registry as known
from .recorded import Watch, absent, assert_same_order, cases

pytestmark = absent

CASES = cases("chatdev")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_URL", "http://localhost")
    monkeypatch.setenv("API_KEY", "none")


# --------------------------------------------------------------------------------------------------


CUT = 400  # characters of a text that the recordings keep
Log = list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]


def watcher(log: Log) -> type:
    """Return a wrapper that notes what a body got and gave."""

    class Watching:
        wants_ctx = True

        def __init__(self, body: Any, name: str) -> None:
            self.body, self.name, self.mode = body, name, body.mode

        def __call__(self, task: Any, ctx: Any) -> Any:
            row = (self.name, [seen(m) for m in gather_messages(task.tokens)], [])
            log.append(row)
            if self.mode == "async":
                return self.awaited(task, ctx, row)
            return self.noted(self.body(task, ctx), row)

        async def awaited(self, task: Any, ctx: Any, row: Any) -> Any:
            return self.noted(await self.body(task, ctx), row)

        def noted(self, out: Any, row: Any) -> Any:
            row[2].extend(
                {"role": m["role"], "text": text_of(m)[:CUT]}
                for m in out.output or ()
                if isinstance(m, dict)
            )
            return out

    class Watched:
        def wrap(self, body: Any, node: Any) -> Any:
            return body if body.mode == "scope" else Watching(body, node.name)

    return Watched


def seen(message: dict[str, Any]) -> dict[str, Any]:
    source = message.get("source") or "TASK"
    return {
        "role": message["role"],
        "source": source,
        "text": text_of(message)[:CUT],
        "keep": bool(message.get("keep")),
    }


def watched(spec: GraphSpec) -> GraphSpec:
    """Return the graph with the wrapper around every body, inside the node's inbox."""
    nodes = []
    for node in spec.nodes:
        inside = 1 if node.wrappers and node.wrappers[0].type == "inbox" else 0
        nodes.append(
            replace(
                node,
                wrappers=(
                    *node.wrappers[:inside],
                    ComponentRef(type="watched"),
                    *node.wrappers[inside:],
                ),
            )
        )
    return replace(spec, nodes=tuple(nodes))


def get_weather(city_num: int) -> dict[str, Any]:
    """Return the weather of a city."""
    return {"city_num": city_num, "temperature": 15, "unit": "celsius"}


def get_city_num(city: str) -> dict[str, Any]:
    """Return the number of a city."""
    return {"city": city, "city_num": 1}


def execute_code(code: str) -> str:
    """Return what a program prints."""
    return f"[ran {len(code)} characters]"


OUTSIDE: dict[tuple[str, str], Any] = {
    **outside(),
    **{("tools", f.__name__): f for f in (get_weather, get_city_num, execute_code)},
}
"""Surroundings of the recordings: functions, and a service."""


def registry(log: Log) -> Registry:
    """Return all that is installed, and what the recordings need."""
    return known({**OUTSIDE, ("wrappers", "watched"): watcher(log)})


SKILL = """---
name: python-scratchpad
description: Try things out in Python.
allowed-tools: execute_code
---
Write small programs. See references/examples.md.
"""


@dataclass
class Reported:
    """A run, and what was seen of it."""

    result: Result | None = None
    error: AxilError | None = None
    log: Log = field(default_factory=list)
    watch: Watch = field(default_factory=Watch)
    script: Scripted | None = None
    spec: GraphSpec | None = None


def run(case: dict[str, Any], folder: Path, *, scripted: bool = True) -> Reported:
    """Return the case's file, loaded and run to its end, or to its error."""
    (folder / "flow.yaml").write_text(case["yaml"], "utf-8")
    for name, text in case.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    for skill in re.findall(
        r"- name: ([a-z-]+)$", case["yaml"].partition("skills:")[2], re.MULTILINE
    ):
        (folder / ".agents/skills" / skill / "references").mkdir(parents=True)
        (folder / ".agents/skills" / skill / "SKILL.md").write_text(SKILL, "utf-8")
        (folder / ".agents/skills" / skill / "references/examples.md").write_text(
            "sum(range(10))", "utf-8"
        )
    workspace = folder / "workspace"
    workspace.mkdir()
    clock = JumpingClock()
    reported = Reported(script=Scripted(case["stub_replies"], sleep=clock.sleep))
    using = registry(reported.log)
    options = {
        "channel": Replies(case["human_replies"]),
        "clock": clock,
        "observers": [reported.watch],
        "workspace": workspace,
        "allow": frozenset({"code"}),
    }
    try:
        with reported.script.everywhere() if scripted else nullcontext():
            reported.spec = load_spec(
                folder / "flow.yaml", registry=using, allow=("env", "read", "write")
            )
            reported.result = run_sync(
                Workflow(watched(reported.spec), CompileOptions(registry=using)).run(
                    case["input"], **options
                )
            )
    except AxilError as error:
        reported.error = error
        reported.result = getattr(error, "result", None)
    return reported


# --------------------------------------------------------------------------------------------------


def flat(groups: list[Any]) -> list[str]:
    return [name for group in groups for name in ([group] if isinstance(group, str) else group)]


def rows(trace: list[dict[str, Any]]) -> dict[str, list[tuple[Any, Any]]]:
    found: dict[str, list[tuple[Any, Any]]] = {}
    for row in trace:
        found.setdefault(row["node"], []).append((row["inputs"], row["outputs"]))
    return found


def sorted_rows(activations: list[tuple[Any, Any]]) -> list[Any]:
    return [[sorted(map(str, messages)) for messages in activation] for activation in activations]


def noted(log: Log) -> dict[str, list[tuple[Any, Any]]]:
    found: dict[str, list[tuple[Any, Any]]] = {}
    for name, inputs, outputs in log:
        found.setdefault(name, []).append((inputs, outputs))
    return found


REORDERED = {
    "real_demo_dynamic",
    "real_spring_text_image_EN",
    "real_chatdev_v1_fast",
    "cycle_trigger_false_does_not_order",
}
"""Cases in which messages met in the order of their sources' layers or of completion; in axil they
meet in the order of the edges.
"""


def words(text: str | None) -> list[str]:
    return sorted(re.findall(r"\w+", text or ""))


def compare(case: dict[str, Any], reported: Reported) -> None:
    """Order, counts, inputs and outputs, and the final output, as they were recorded."""
    assert reported.error is None
    assert reported.result is not None
    assert reported.spec is not None
    assert reported.result.status == "done"
    names = {node.id for node in reported.spec.nodes}
    fired = [
        activation.node
        for activation, kind in reported.watch.started
        if kind != "cycle" and activation.path in names
    ]
    fired = [
        name
        for name in fired
        if name in case["execution_counts"] or not case["yaml"].count("is_majority_voting: true")
    ]
    edges = {
        frozenset((edge.source, edge.target))
        for edge in reported.spec.edges
        if edge.source != edge.target
    }
    assert Counter(fired) == Counter(case["execution_counts"])
    assert_same_order(fired, flat(case["expected_order_groups"]), edges)
    if case.get("trace"):
        kinds = {node.id: node.use.type for node in reported.spec.nodes if node.use}
        got = noted(reported.log)
        sort = case["name"] in REORDERED
        for name, activations in rows(case["trace"]).items():
            if kinds.get(name) != "subgraph":
                assert got.get(name) == activations or (
                    sort and sorted_rows(got.get(name, [])) == sorted_rows(activations)
                ), name
    for name, inner in (case.get("nested_orders") or {}).items():
        outer = name.removesuffix("_subgraph")
        fired_inside = [
            a.node
            for a, kind in reported.watch.started
            if kind != "cycle" and a.path.startswith(f"{outer}/")
        ]
        assert Counter(fired_inside) == Counter(flat(inner))
    if case["name"] in REORDERED:
        assert words(reported.result.output) == words(case["expected_final_output"])
    else:
        assert (reported.result.output or "") == (case["expected_final_output"] or "")
    if case.get("model_calls") is not None:
        assert reported.script is not None
        assert len(reported.script.requests) == case["model_calls"]


def without(case: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**case, "expected_error": None, **changes}


INVERTED = {
    "node_id_containing_node_underscore": {
        "expected_order_groups": ["S", "A", "B", "out_node_1"],
        "execution_counts": {"S": 1, "A": 1, "B": 1, "out_node_1": 1},
        "expected_final_output": "b",
    },
    "human_empty_reply": {"expected_final_output": "", "trace": None},
    "real_demo_dynamic": {"trace": None},  # what meets in another order is cut off elsewhere
    "dynamic_tree_single_item_not_executed": {
        "expected_final_output": "EXECUTED",
        "trace": None,
        "model_calls": 1,
    },
}
"""Recorded defects, and what cannot be compared: what a sane engine gives instead."""

FAILS: dict[str, tuple[type[BaseException], str]] = {
    "cycle_multiple_entries_error": (RunError, r"2 nodes at once \(A, B\)"),
    "cycle_entry_mismatch_error": (RunError, r"2 nodes at once \(A, B\)"),
    "dynamic_inconsistent_error": (SpecError, "dynamic"),
    "vars_unresolved_error": (SpecError, "NOPE_NOT_SET"),
    "no_start_error": (SpecError, "start"),
    "no_unique_sink_error": (SpecError, "end"),
    "invalid_loop_counter_error": (SpecError, "max_iterations"),
    "function_conditions": (AxilError, "no_such_function"),
    "agent_error_becomes_text": (ModelError, "scripted failure"),
    "unknown_provider": (SpecError, r'unknown model adapter "nope"'),
}


ORDINARY = [name for name in CASES if name not in FAILS]


def test_every_recorded_error_is_an_error_here_or_was_a_defect():
    errors = {
        name for name, case in CASES.items() if case["expected_error"] and name not in INVERTED
    }
    assert errors - set(FAILS) == set()
    assert (set(FAILS) | set(INVERTED)) - set(CASES) == set()


@pytest.mark.parametrize("name", ORDINARY)
def test_a_file_gives_the_recorded_order_messages_and_output(name, tmp_path):
    case = without(CASES[name], **INVERTED.get(name, {}))
    reported = run(case, tmp_path)
    if reported.error is not None:
        raise reported.error
    compare(case, reported)


@pytest.mark.parametrize("name", [name for name in FAILS if name in CASES])
def test_a_file_that_failed_fails_with_a_message_that_says_where(name, tmp_path):
    kind, says = FAILS[name]
    reported = run(CASES[name], tmp_path, scripted=name != "unknown_provider")
    assert reported.error is not None
    cause = reported.error.__cause__ if isinstance(reported.error, NodeFailed) else reported.error
    assert isinstance(cause, kind)
    with pytest.raises(AxilError, match=says):
        raise reported.error


def test_a_missing_condition_is_an_error_before_anything_runs(tmp_path):
    reported = run(CASES["function_conditions"], tmp_path)
    assert reported.watch.started == []

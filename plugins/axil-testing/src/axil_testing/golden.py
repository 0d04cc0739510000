"""Golden traces: the course of a run, written down once and compared from then on.

A trace has the activations with their inputs and payloads, the skipped ones, the output and the
state. Nothing in it depends on what finished first: activations stand in *steps*, by rounds and
levels, and a step has no order. Expectations about order go under ``order``: groups of nodes, all
of one before any of the next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from axil import Activation, Result, Workflow, run_sync
from axil.plugin import hook_manager, without_secrets
from axil_testing.recorder import Recorder

UPDATE = "AXIL_GOLDEN"
"""Set to ``update`` in the environment to write what a run did instead of comparing."""


class Deviation(AssertionError):
    """A run differs from its golden trace; one line for each difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The course of one run, as plain data."""

    status: str
    output: Any
    attributes: Mapping[str, Any]
    counts: Mapping[str, int]
    """The number of firings of each node, by path."""
    steps: Sequence[Sequence[str]]
    """Activations of nodes, by rounds and levels; those within one step in no order."""
    skipped: Sequence[str]
    inputs: Mapping[str, Any]
    """The payloads that each activation was given, in edge order, by its name."""
    payloads: Mapping[str, Any]
    """The output of each activation, by its name."""
    finished: Sequence[str] = ()
    """Paths of nodes in the order in which they ended: for ``order``, never written down."""

    def as_data(self) -> dict[str, Any]:
        """Return JSON data, in a stable order, without what the clock decided."""
        data = {name: getattr(self, name) for name in self.__slots__ if name != "finished"}
        return cast("dict[str, Any]", json.loads(_json(data)))


@dataclass
class Golden:
    """One workflow, one input, one file.

    ``check`` runs the workflow and compares; where the file is absent, or ``AXIL_GOLDEN=update`` is
    set, it is written (an ``order`` in it is kept). Fields that the file does not have are not
    compared: keep only what the test is about.
    """

    file: Path
    workflow: Workflow
    input: Any = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the run: ``answers``, ``limits``, ``clock``."""
    hidden: frozenset[str] = frozenset()
    """Attributes that differ from run to run: times, ids."""

    def check(self) -> Trace:
        """Run and compare. Raises: Deviation."""
        trace = self.run()
        if os.environ.get(UPDATE) == "update" or not self.file.exists():
            self.write(trace)
            return trace
        found = differences(self._expected(), trace)
        if found:
            raise Deviation(
                f"{self.file.name}: the run deviates from its golden trace.\n" + "\n".join(found)
            )
        return trace

    def write(self, trace: Trace) -> None:
        """Make ``trace`` the expected one."""
        kept = None
        if self.file.exists():
            with suppress(Deviation):  # one that is damaged is written anew
                kept = self._expected().get("order")
        data = trace.as_data() if kept is None else {**trace.as_data(), "order": kept}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(_json(data) + "\n", "utf-8")

    def _expected(self) -> dict[str, Any]:
        """Return the content of the file. Raises: Deviation: it is no golden trace."""
        why = "it is no mapping, or its steps or its order are no lists of lists of paths"
        try:
            found: Any = json.loads(self.file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            found, why = None, str(error)
        if not isinstance(found, dict) or not all(
            _is_grouped(cast("dict[str, Any]", found).get(name, [])) for name in ("steps", "order")
        ):
            advice = f"Correct it, or write it anew: {UPDATE}=update"
            raise Deviation(f"{self.file}: this is no golden trace: {why}. {advice}.")
        return cast("dict[str, Any]", found)

    def run(self) -> Trace:
        """Run, and return the trace."""
        recorder, before = Recorder(), self.workflow.setting.hooks
        hooks = hook_manager([*(before.get_plugins() if before else ()), recorder])
        watched = Workflow(self.workflow.spec, replace(self.workflow.setting, hooks=hooks))

        async def go() -> Result:
            async with watched:
                return await watched.start(self.input, **self.options)

        result: Result = run_sync(go())
        return traced(recorder, result, self.hidden)


def traced(recorder: Recorder, result: Result, hidden: Iterable[str] = ()) -> Trace:
    """Return the trace of a run that a recorder watched."""
    done = sorted(
        (record for record in recorder if record.status == "done"), key=lambda record: record.name
    )
    fired = [record for record in done if record.kind == "node"]
    apart = set(hidden)
    return Trace(
        status=result.status,
        output=result.output,
        attributes={
            name: value for name, value in sorted(result.attributes.items()) if name not in apart
        },
        counts={path: recorder.count(path) for path in sorted({record.path for record in fired})},
        steps=steps(recorder),
        skipped=sorted(recorder.names("skipped")),
        inputs={record.name: list(record.inputs) for record in fired if record.inputs is not None},
        payloads={record.name: record.payload for record in done},
        finished=recorder.order(),
    )


def steps(recorder: Recorder) -> list[list[str]]:
    """Group activations of nodes by their place in the plan: levels and rounds, from outside in."""
    first: dict[tuple[str | int, ...], str] = {}
    for activation in recorder._begun:  # pyright: ignore[reportPrivateUsage]  # the two are one
        first.setdefault(activation.frame, activation.node)
    groups: dict[tuple[Any, ...], list[str]] = {}
    for record in recorder:
        if record.status == "done" and record.kind == "node":
            place = _place(
                recorder.plan, Activation(record.frame, record.node, record.ordinal), first
            )
            groups.setdefault(place, []).append(record.name)
    return [sorted(groups[place]) for place in sorted(groups)]


def _place(
    plan: Any, activation: Activation, first: Mapping[tuple[str | int, ...], str]
) -> tuple[Any, ...]:
    """Return the position of an activation: levels of the scopes around it and rounds, outermost
    first; (0, number) or (1, name) each.
    """
    place: list[tuple[int, Any]] = []
    parts = [*activation.frame, activation.node]
    for position, part in enumerate(parts):
        if isinstance(part, int):
            place.append((0, part))
        elif part.startswith("#"):
            place.append((1, part))
        elif plan is not None and part in plan.index:
            node = plan.nodes[plan.index[part]]
            place.append((0, node.level))
            plan = _inside(node.body, tuple(parts[: position + 1]), parts[position + 1 :], first)
        else:
            place.append((1, part))
    return tuple(place)


def _inside(
    body: Any,
    frame: tuple[str | int, ...],
    rest: Sequence[str | int],
    first: Mapping[tuple[str | int, ...], str],
) -> Any:
    """Find the plan that runs inside a scope's frame; None: unknown (a body's own sub-runs)."""
    if hasattr(body, "members"):  # a cycle: its body depends on where it was entered
        numbers = [part for part in rest[:2] if isinstance(part, int) or part.startswith("#")]
        entry = first.get((*frame, *numbers))
        vertices: dict[str, int] = {body.graph.vertices[m].name: m for m in body.members}
        return body.body(vertices[entry]) if entry is not None and entry in vertices else None
    return getattr(body, "plan", None)


def _is_grouped(given: Any) -> bool:
    """Return whether it is a list of lists of texts."""
    return isinstance(given, list) and all(
        isinstance(group, list) and all(isinstance(each, str) for each in cast("list[Any]", group))
        for group in cast("list[Any]", given)
    )


def differences(expected: Mapping[str, Any], trace: Trace) -> list[str]:
    """Return where a trace differs from the expectation, as data; only expected keys are compared.

    Order within a step is no difference.
    """
    found = trace.as_data()
    lines: list[str] = []
    for key, value in expected.items():
        there = found.get(key)
        if key == "order":
            lines.extend(_disorder(value, trace.finished))
        elif key == "steps":
            lines.extend(_step_differences(value, there or []))
        elif key not in found:
            lines.append(f"{key}: a trace has no such field; it has {', '.join(found)}, and order")
        elif isinstance(value, dict) and isinstance(there, dict):
            lines.extend(
                _dict_differences(key, cast("dict[str, Any]", value), cast("dict[str, Any]", there))
            )
        elif value != there:
            lines.append(f"{key}: expected {_short(value)}, found {_short(there)}")
    return lines


def _disorder(groups: Sequence[Sequence[str]], finished: Sequence[str]) -> list[str]:
    """Return each node of a later group that fired before one of an earlier group had ended."""
    ends = {path: position for position, path in enumerate(finished)}
    begins = {path: finished.index(path) for path in ends}
    return [
        f"order: {later} fired before {earlier} had ended"
        for position, group in enumerate(groups)
        for earlier in group
        for next_group in groups[position + 1 :]
        for later in next_group
        if earlier in ends and later in begins and begins[later] < ends[earlier]
    ]


def _step_differences(
    expected: Sequence[Sequence[str]], found: Sequence[Sequence[str]]
) -> list[str]:
    before, after = [sorted(step) for step in expected], [sorted(step) for step in found]
    for number in range(max(len(before), len(after))):
        was = before[number] if number < len(before) else None
        now = after[number] if number < len(after) else None
        if was != now:
            return [f"steps[{number}]: expected {_short(was)}, found {_short(now)}"]
    return []


def _dict_differences(key: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{key}.{name}: expected {_short(expected[name])}, and there is none"
        for name in expected
        if name not in found
    ]
    lines += [
        f"{key}.{name}: {_short(found[name])}, and none is expected"
        for name in found
        if name not in expected
    ]
    lines += [
        f"{key}.{name}: expected {_short(expected[name])}, found {_short(found[name])}"
        for name in expected
        if name in found and found[name] != expected[name]
    ]
    return lines


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else text[:117] + "…"


def _json(data: Any) -> str:
    return json.dumps(without_secrets(data), ensure_ascii=False, indent=1, default=str)

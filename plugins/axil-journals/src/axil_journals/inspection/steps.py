"""The steps of a recorded run, and the differences between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from axil_journals.journal import Entry
from axil_journals.values import change_of, decode_value

_NO_STEPS = ("clock", "slept", "began", "prompt")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """One entry of a record, for people to read."""

    number: int
    """The place of the entry in the record, from 1; a fork ``at`` it keeps it and all before."""
    kind: str
    """As of ``Entry``."""
    activation: str
    at: float
    """Seconds since the run began."""
    output: Any = None
    """The payloads of its edges, by edge; of a question its text, of an answer its value, of an end
    its status."""
    delta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its writes to the state, without the nodes' own fields. Several writes of a frame to one
    field are ``{"writes": […]}``, with ``reset`` where the field was set before them."""
    used: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The usage of the run so far, as the entry has it."""
    by: str = ""
    """``deadline``, if no person gave the answer."""


def steps(entries: Sequence[Entry]) -> list[RunStep]:
    """Return the steps of a run, without sleeps, clock reads and prompts."""
    numbered = enumerate(entries, 1)
    return [_step(number, entry) for number, entry in numbered if entry.kind not in _NO_STEPS]


def _step(number: int, entry: Entry) -> RunStep:
    data = entry.data
    written: Mapping[str, Any] = data.get("delta") or data.get("changes") or {}
    return RunStep(
        number=number,
        kind=entry.kind,
        activation=str(entry.activation) if entry.node else "",
        at=float(data.get("at", 0.0)),
        output=_output(entry.kind, data),
        delta={k: _write(value) for k, value in written.items() if not k.startswith("@")},
        used=data.get("used", {}),
        by=str(data.get("by", "")),
    )


def _write(data: object) -> Any:
    if (change := change_of(data)) is None:
        return decode_value(data)
    writes = {"writes": decode_value(change["v"])}
    return {"reset": decode_value(change["reset"]), **writes} if "reset" in change else writes


def _output(kind: str, data: Mapping[str, Any]) -> Any:
    if kind == "done":
        return {name: decode_value(payload) for name, payload, _ in data["sends"]}
    if kind == "round":
        return {"round": data["round"], "end": data["end"]}
    if kind in ("step", "answer"):
        return {data.get("name") or data.get("id"): decode_value(data["value"])}
    if kind == "run":
        return decode_value(data["inputs"])
    shown = ("id", "text", "status", "error", "output")
    return {name: data[name] for name in shown if name in data} or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An activation whose outcome differs between two runs."""

    activation: str
    kind: str
    """``only first``, ``only second``, ``output``, ``delta``."""
    first: Any = None
    second: Any = None


def differences(first: Sequence[Entry], second: Sequence[Entry]) -> list[Difference]:
    """Return the differences of two runs by activation, in whatever order these ended."""
    return list(_differing(_outcomes(first), _outcomes(second)))


def _outcomes(entries: Sequence[Entry]) -> Mapping[str, RunStep]:
    return {step.activation: step for step in steps(entries) if step.kind == "done"}


def _differing(
    one: Mapping[str, RunStep],
    other: Mapping[str, RunStep],
) -> Iterator[Difference]:
    for name, step in one.items():
        if name not in other:
            yield Difference(activation=name, kind="only first", first=step.output)
            continue
        there = other[name]
        if step.output != there.output:
            yield Difference(activation=name, kind="output", first=step.output, second=there.output)
        if step.delta != there.delta:
            yield Difference(activation=name, kind="delta", first=step.delta, second=there.delta)
    for name, step in other.items():
        if name not in one:
            yield Difference(activation=name, kind="only second", second=step.output)

"""Kept runs in lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from axil import Question
from axil.driver import Difference, RunInfo, RunStep, format_time
from axil.plugin import format_duration, is_messages, text_of
from axil_cli.plain import as_json, plain
from axil_inspection import shortened

_WIDTH = 100


def listed(
    infos: Sequence[RunInfo], now: float, dues: Mapping[str, float] | None = None
) -> Iterator[str]:
    """Runs as a table. ``dues``: by run, when the first of its questions is due."""
    rows = [("RUN", "STATUS", "STEPS", "TOUCHED", "GRAPH", "THREAD")] if infos else []
    for info in infos:
        due = (dues or {}).get(info.run_id)
        status = info.status if due is None else f"{info.status}, {until(due - now)}"
        rows.append(
            (
                info.run_id,
                status,
                str(info.entries),
                ago(now - info.touched),
                info.graph,
                info.thread,
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(6)] if rows else []
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def ago(seconds: float) -> str:
    """How long that is, in one unit.

    >>> ago(5), ago(200), ago(7300), ago(200000)
    ('5s ago', '3m ago', '2h ago', '2d ago')
    """
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return f"{int(max(seconds, 0))}s ago"


def until(seconds: float) -> str:
    """How long there is to answer.

    >>> until(7300), until(-200)
    ('due in 2h 1m', 'overdue for 3m 20s')
    """
    return (
        f"due in {format_duration(seconds)}"
        if seconds > 0
        else f"overdue for {format_duration(-seconds)}"
    )


def told_question(question: Question, now: float) -> Iterator[str]:
    """A question that a run waits for."""
    what = "a time" if question.kind == "timer" else "an answer to"
    when = (
        ""
        if question.due is None
        else f", {until(question.due - now)} ({format_time(question.due)})"
    )
    yield f"waits for {what} {question.id}{when}"
    lines = [line for line in question.text.strip().splitlines() if line.strip()]
    if lines:
        yield f"    {shortened(lines[-1], _WIDTH - 4)}"
    if question.options:
        yield f"    one of: {', '.join(question.options)}"
    if question.due is not None:
        yield f"    then: {'it fails' if question.default is None else said(question.default)}"


def told_run(
    info: RunInfo, now: float, changed: Sequence[str], differences: Sequence[str] = ()
) -> Iterator[str]:
    """A run in a few lines.

    ``changed``: files that are not what they were; ``differences``: of its graph and what is there
    now.
    """
    yield f"{info.run_id}  {info.graph}  {info.status}"
    parts = [f"begun {ago(now - info.begun)}", f"touched {ago(now - info.touched)}"]
    parts += [f"thread {info.thread}"] if info.thread else []
    parts += [f"forked from {info.forked_from}"] if info.forked_from else []
    yield "  " + ", ".join(parts)
    if changed:
        yield f"  changed since: {', '.join(changed)}"
        yield from (f"    {line}" for line in differences)


def told_step(step: RunStep) -> Iterator[str]:
    """A step: its number, when it was, who, and what came of it."""
    who = " ".join(
        part
        for part in (
            step.activation,
            "" if step.kind == "done" else _KINDS.get(step.kind, step.kind),
        )
        if part
    )
    yield f"{step.number:>5} {step.at:>9.3f}s  {who}"
    if isinstance(step.output, dict):
        for name, value in step.output.items():
            yield _line(f"{name}: ", value)
    elif step.output is not None:
        yield _line("", step.output)
    if step.by:
        yield _line("by: ", step.by)
    for name, value in step.delta.items():
        yield _line(f"{name} := ", value)
    if tokens := step.used.get("tokens"):
        yield _line(
            "used so far: ",
            {**tokens, **({"cost": step.used["cost"]} if step.used.get("cost") else {})},
        )


_KINDS = {"run": "input"}


def _line(name: str, value: Any) -> str:
    return " " * 18 + shortened(name + said(value), _WIDTH - 18)


def said(value: Any) -> str:
    """A value on one line: of messages what they say, else JSON."""
    if is_messages(value):
        return " | ".join(" ".join(text_of(plain(each)).split()) for each in value)
    return " ".join(value.split()) if isinstance(value, str) else as_json(plain(value), indent=None)


def told_difference(each: Difference) -> Iterator[str]:
    """What one activation came to in each of two runs."""
    yield f"{each.activation}: {each.kind}"
    for sign, value in (("-", each.first), ("+", each.second)):
        if value is not None:
            told = (
                [f"{name}: {said(part)}" for name, part in value.items()]
                if isinstance(value, dict)
                else [said(value)]
            )
            yield from (f"  {sign} {shortened(line, _WIDTH)}" for line in told)

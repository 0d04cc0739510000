"""Kept runs in lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from axil import Question
from axil.plugin import is_messages, legible, render, text_of
from axil_cli.page import shortened
from axil_cli.plain import as_json, plain, table_lines
from axil_files import format_duration
from axil_journals import (
    Difference,
    Outline,
    OutlineNode,
    Prompt,
    RunInfo,
    RunStep,
    format_time,
)

_WIDTH = 100


def run_table(
    infos: Sequence[RunInfo], now: float, dues: Mapping[str, float] | None = None
) -> Iterator[str]:
    """Yield runs as a table. ``dues``: by run, when the first of its questions is due."""
    rows = [("RUN", "STATUS", "STEPS", "TOUCHED", "GRAPH", "THREAD")] if infos else []
    for info in infos:
        due = (dues or {}).get(info.run_id)
        status = info.status if due is None else f"{info.status}, {until(due - now)}"
        age = ago(now - info.touched)
        rows.append((info.run_id, status, str(info.entries), age, info.graph, info.thread))
    return table_lines(rows)


def ago(seconds: float) -> str:
    """Return the age in one unit.

    >>> ago(5), ago(200), ago(7300), ago(200000)
    ('5s ago', '3m ago', '2h ago', '2d ago')
    """
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return f"{int(max(seconds, 0))}s ago"


def until(seconds: float) -> str:
    """Return the time left to answer.

    >>> until(7300), until(-200)
    ('due in 2h 1m', 'overdue for 3m 20s')
    """
    return (
        f"due in {format_duration(seconds)}"
        if seconds > 0
        else f"overdue for {format_duration(-seconds)}"
    )


def open_question_lines(question: Question, now: float) -> Iterator[str]:
    """Yield the lines of a question that a run waits for, with its id."""
    what = "a time" if question.kind == "timer" else "an answer to"
    when = (
        ""
        if question.due is None
        else f", {until(question.due - now)} ({format_time(question.due)})"
    )
    yield f"waits for {what} {question.id}{when}"
    yield from (f"    {line}" for line in question_lines(question))
    if question.due is not None:
        yield f"    then: {'it fails' if question.default is None else inline(question.default)}"


def question_lines(question: Question) -> Iterator[str]:
    """Yield the lines by which a question is answered: of a tool its arguments and its changes, of
    a breakpoint the node's input, else the whole text; what is hidden in them as escapes.
    """
    return map(legible, _question_lines(question))


def _question_lines(question: Question) -> Iterator[str]:
    data: Mapping[str, Any] = plain(question.data)
    if question.kind == "tool_approval" and "tool" in data:
        fault = question.text.partition("\n")[0]
        if str(data["tool"]) not in fault:  # why it is asked again
            yield fault
        yield f"May the tool {data['tool']} be called with these arguments?"
        yield from _fields(data.get("arguments") or {})
        for name in ("does", "changes"):
            if data.get(name):
                yield f"{name}: {data[name]}"
    else:
        if data.get("description"):
            yield from str(data["description"]).strip().splitlines()
        yield from (line for line in question.text.strip().splitlines() if line.strip())
        if question.kind == "break":
            yield from _fields(data.get("inputs") or {})
        if question.kind == "form":
            yield from _fields(data.get("fields") or {})
    if question.options:
        yield f"one of: {', '.join(question.options)}"


def _fields(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield values by name, each line of a text on a line of its own.

    A text that would read as another value, such as ``5``, is in quotation marks.
    """
    for key, value in values.items():
        name = key if key.isprintable() else json.dumps(key)
        report = text_of(value) if is_messages(value) else value
        text = "null" if report is None else render(report)
        if isinstance(report, str) and _is_json(report):
            text = json.dumps(report, ensure_ascii=False)
        first, *more = text.split("\n")
        yield f"    {name}: {first}"
        yield from (f"    {' ' * (len(name) + 2)}{line}" for line in more)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def run_lines(
    info: RunInfo, now: float, changed: Sequence[str], differences: Sequence[str] = ()
) -> Iterator[str]:
    """Yield a few lines about a run.

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


def outline_lines(drawn: Outline) -> Iterator[str]:
    """Yield a run's nodes as a tree: how often each ended, when, and what it used; input and
    output.
    """
    used = spent(drawn.used.get("tokens", {}), drawn.used.get("cost", 0.0))
    firings = drawn.used.get("firings", 0)
    parts = [f"{drawn.seconds:.1f} s", f"{firings} firing{'s' if firings != 1 else ''}", *used]
    yield "  " + " · ".join(parts)
    if drawn.input and (given := inline(drawn.input)):
        yield f"input: {shortened(given, _WIDTH - 7)}"
    rows = [_row(drawn.nodes, number) for number in range(len(drawn.nodes))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for row in rows:
        name, *cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {name}  {'  '.join(cells)}".rstrip()
    if drawn.output is not None:
        yield f"output: {shortened(inline(drawn.output), _WIDTH - 8)}"
    if drawn.error and not any(node.waits for node in drawn.nodes):
        first = drawn.error.strip().splitlines()[0]
        yield f"error: {shortened(first, _WIDTH - 7)}"


def _row(nodes: Sequence[OutlineNode], number: int) -> tuple[str, str, str, str]:
    """Return a node in the tree: its name, what became of it, when that was, and what it used."""
    node = nodes[number]
    later = [each for each in nodes[number + 1 :] if len(each.path) >= len(node.path)]
    margin = "".join(
        ("│  " if _continues(nodes[number + 1 :], depth) else "   ")
        for depth in range(1, len(node.path))
    )
    is_last = not _continues(later, len(node.path))
    name = f"{margin}{'└' if is_last else '├'} {node.path[-1]}"
    rounds = f"{node.rounds} round{'s' if node.rounds != 1 else ''}" if node.rounds else ""
    times = f"×{node.times}" if node.times > 1 else ""
    failed = "failed" if node.times == 1 else f"{node.failures} failed"
    state = (
        "waits"
        if node.waits
        else "not finished"
        if not (node.times or node.rounds)
        else failed
        if node.failures
        else ""
    )
    ended = "" if node.ended is None else f"at {node.ended:.1f} s"
    message = " ".join(part for part in (rounds or times, state) if part)
    return name, message, ended, " · ".join(spent(node.tokens, node.cost))


def _continues(later: Sequence[OutlineNode], depth: int) -> bool:
    """Return whether a branch at this depth has another node below."""
    for node in later:
        if len(node.path) == depth:
            return True
        if len(node.path) < depth:
            return False
    return False


def spent(tokens: Mapping[str, float], cost: float) -> list[str]:
    """Return tokens and money in words; nothing where there are none.

    >>> spent({"input": 1200, "output": 30}, 0.0021)
    ['1,200 input, 30 output tokens', 'cost 0.0021']
    """
    kinds = ", ".join(
        f"{int(count):,} {kind.removesuffix('_tokens').replace('_', ' ')}"
        for kind, count in tokens.items()
        if count
    )
    return [*([f"{kinds} tokens"] if kinds else []), *([f"cost {cost:.4f}"] if cost else [])]


def step_lines(step: RunStep) -> Iterator[str]:
    """Yield the lines of a step: its number, time, node and result."""
    who = " ".join(
        part
        for part in (
            step.activation,
            "" if step.kind == "done" else _KINDS.get(step.kind, step.kind),
        )
        if part
    )
    yield f"{step.number:>5} {step.at:>9.3f}s  {who}"
    output: Any = step.output
    if isinstance(output, Mapping):
        for name, value in cast("Mapping[str, Any]", output).items():
            yield _line(f"{name}: ", value)
    elif output is not None:
        yield _line("", output)
    if step.by:
        yield _line("by: ", step.by)
    for name, value in step.delta.items():
        yield _line(f"{name} := ", value)


def prompt_lines(prompts: Sequence[Prompt]) -> Iterator[str]:
    """Yield the lines of the prompts that a run kept, each with its reply and what it used."""
    if not prompts:
        yield "no prompts are kept: axil run --prompts whole keeps them"
    for prompt in prompts:
        yield f"{prompt.activation}  {prompt.step}"
        for message in prompt.messages:
            if "digest" in message:
                text = f"{message['characters']} characters, {message['digest']}"
            else:
                text = inline(message.get("content") or message.get("tool_calls"))
            yield from _block(f"{message.get('role')}: ", text)
        reply = prompt.reply
        for part in cast("Sequence[Mapping[str, Any]]", reply.get("parts") or ()):
            yield from _block(f"{part.get('type')}: ", str(part.get("text") or ""))
        text = f"{reply['characters']} characters" if "characters" in reply else None
        yield from _block("reply: ", text or inline(reply.get("text") or reply.get("tool_calls")))
        used = cast("Mapping[str, Any]", reply.get("usage") or {})
        if amounts := [f"{value} {name}" for name, value in used.items() if value]:
            yield from _block("used: ", ", ".join(amounts))


def _block(name: str, text: str) -> Iterator[str]:
    first, *rest = text.splitlines() or [""]
    yield f"    {name}{first}"
    yield from (f"    {line}" for line in rest)


_KINDS = {"run": "input"}


def _line(name: str, value: Any) -> str:
    return " " * 18 + shortened(name + inline(value), _WIDTH - 18)


def inline(value: Any) -> str:
    """Return a value on one line: of messages and replies what they say, else JSON."""
    if is_messages(value):
        return " | ".join(" ".join(text_of(plain(each)).split()) for each in value)
    if isinstance(value, Mapping) and "tool_calls" in value:
        return _reply(plain(cast("Mapping[str, Any]", value)))
    return " ".join(value.split()) if isinstance(value, str) else as_json(plain(value), indent=None)


def _reply(reply: Mapping[str, Any]) -> str:
    """Return the text of a model, and the calls that it asked for."""
    calls = cast("list[Mapping[str, Any]]", reply.get("tool_calls") or [])
    lines = [
        f"{call.get('name', '')}({as_json(call.get('arguments') or {}, indent=None)})"
        for call in calls
    ]
    text = " ".join(str(reply.get("text") or "").split())
    return " ".join(part for part in (text, *(f"⚙ {each}" for each in lines)) if part)


def difference_lines(each: Difference) -> Iterator[str]:
    """Yield the results of one activation in two runs, a line for each."""
    yield f"{each.activation}: {each.kind}"
    for sign, value in (("-", each.first), ("+", each.second)):
        if value is None:
            continue
        lines = (
            [f"{name}: {inline(part)}" for name, part in cast("Mapping[str, Any]", value).items()]
            if isinstance(value, Mapping)
            else [inline(value)]
        )
        yield from (f"  {sign} {shortened(line, _WIDTH)}" for line in lines)

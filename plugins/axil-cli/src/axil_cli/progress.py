"""The events of a run for a person who watches: texts in order, tool calls, rounds.

One node writes at a time. The events of others wait until its text ends, so that words never mix;
nothing is lost, and the order of each node's events stays. On a terminal words appear as they come.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

from axil import Activation, NodeFailed
from axil.driver import Frame
from axil.plugin import Plan, has_failed, is_messages, render, text_of
from axil_cli.command import clean
from axil_cli.page import Page, Paragraph, columns
from axil_cli.plain import as_json
from axil_journals import walk_plan

_NOTICE_SECONDS: Final = 0.2
"""Seconds until a firing is announced that has not ended."""
_LINES: Final = 8
"""Lines of a node's text; the run's output is printed in full."""
_NAME: Final = 14
"""Columns for names; behind longer ones a text begins further to the right."""
_INPUT: Final = "input"
_TAKEN_BACK: Final = "(taken back)"
"""The mark of the text of a reply that broke off or did not fit."""
_STRUCTURED: Final = ("{", "[", "`")
"""Beginnings of replies that are data: their fields are shown when they are whole."""


class Progress:
    """An observer that writes what happens as a page; for one run."""

    def __init__(self, stream: TextIO, input: Any = None) -> None:
        """``input``: what the run is given; it is shown first."""
        self.page = Page(stream)
        self._input = "" if input is None or input == {} else _as_text(input)
        self._title = "run"
        self._column = len(_INPUT) + 2
        """The position at which the shown text begins."""
        self._colours: dict[str, int] = {}
        self._heading: tuple[str, str] | None = None
        self._since: dict[Activation, float] = {}
        self._notices: dict[Activation, asyncio.TimerHandle] = {}
        self._turns: dict[Activation, _Turn] = {}
        self._writer: Activation | None = None
        self._later: list[tuple[Activation, Callable[[], None]]] = []
        self._questions = 0
        self._last_named: Activation | None = None
        self._last = ""
        """The last text, on one line."""

    @contextmanager
    def quiet(self) -> Generator[None]:
        """Hold events while a question is open; they are shown after the answer."""
        if not self._questions:
            self._end_turns()
            self.page.hold()
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self.page.release()

    # -- the events of observers

    def run_started(self, run_id: str, plan: Plan) -> None:
        self._title = plan.graph.spec.id or self._title
        names = [
            columns(step.node.name)
            for step in walk_plan(plan)
            if step.node is not None and step.node.vertex.body.mode != "scope"
        ]
        self._column = min(max([*names, len(_INPUT)]), _NAME) + 2
        if self._input:
            self._write_heading(("", ""))
            self.page.write(self.page.styled(_INPUT.ljust(self._column), "dim"))
            paragraph = Paragraph(self.page, self._column, lines=_LINES)
            paragraph.feed(self._input)
            paragraph.end()

    def firing_started(self, activation: Activation, kind: str) -> None:
        self._since[activation] = time.monotonic()
        if kind == "node":
            self._notices[activation] = asyncio.get_running_loop().call_later(
                _NOTICE_SECONDS, self._announce, activation
            )

    def chunk(self, activation: Activation, chunk: Any) -> None:
        if isinstance(chunk, Mapping) and cast("Mapping[str, Any]", chunk).get("inside"):
            self._take_back_inside(activation)
        self._when_free(activation, lambda: self._show_chunk(activation, chunk))

    def firing_finished(self, activation: Activation, kind: str, output: Any) -> None:
        took = self._took(activation)
        if kind == "node":
            self._when_free(activation, lambda: self._finished(activation, output, took))

    def firing_failed(self, activation: Activation, kind: str, error: BaseException) -> None:
        self._took(activation)
        # a failure inside a graph was shown already
        if kind == "node" or not isinstance(error, NodeFailed):
            self._when_free(activation, lambda: self._failed(activation, error))

    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self._when_free(activation, lambda: self._write_line(activation, "·", "skipped"))

    def run_finished(self, run_id: str) -> None:
        self._end_turns()
        for waiting in self._notices.values():
            waiting.cancel()
        self._notices.clear()

    # -- one node at a time

    def _when_free(self, activation: Activation, tell: Callable[[], None]) -> None:
        if self._writer is None or self._writer == activation:
            tell()
        else:
            self._later.append((activation, tell))

    def _release(self) -> None:
        """Let the next one write, and show what waited until one of these texts goes on."""
        self._writer = None
        waiting, self._later = self._later, []
        for activation, tell in waiting:
            self._when_free(activation, tell)

    def _end_turns(self) -> None:
        """End the present text, and show all that waited."""
        while self._writer is not None:
            turn = self._turns.get(self._writer)
            if turn is not None:
                turn.end()
            self._release()

    # -- texts

    def _announce(self, activation: Activation) -> None:
        """Show that a firing goes on, of which nothing was shown yet."""
        if self._notices.pop(activation, None) is None:
            return
        if self._questions or self._writer is not None:
            self._notices[activation] = asyncio.get_running_loop().call_later(
                _NOTICE_SECONDS, self._announce, activation
            )
        else:
            self._write_line(activation, "▸", self.page.sign("…"))

    def _show_chunk(self, activation: Activation, chunk: Any) -> None:
        data: Mapping[str, Any] = (
            cast("Mapping[str, Any]", chunk) if isinstance(chunk, Mapping) else {"text": chunk}
        )
        kind, call = data.get("kind", "text"), str(data.get("id", ""))
        turn = self._turns.setdefault(activation, _Turn())
        if kind == "reasoning":
            turn.thoughts += text_of(data.get("text", ""))
            return
        if kind == "reset":
            self._take_back(activation, turn)
            return
        self._show_thoughts(activation, turn)
        if kind == "text":
            self._show_text(activation, turn, text_of(data.get("text", "")))
        elif kind == "output":
            self._show_fields(activation, turn, cast("Mapping[str, Any]", data.get("fields") or {}))
        elif kind == "tool_call":
            turn.calls[call] = _call_of(data)
            self._end_text(activation, turn)
        elif kind == "tool_result":
            self._end_text(activation, turn)
            known = turn.calls.pop(call, (str(data.get("name", "")), ""))
            self._tool(
                activation, known, text_of(data.get("content", "")), failed=bool(data.get("failed"))
            )
        elif kind == "part":
            self._end_text(activation, turn)
            self._write_line(activation, "▸", _part_of(data.get("part")))
        elif kind == "retry":  # the text of a reply that broke off is followed by all of it
            self._end_text(activation, turn)
            self._write_line(
                activation,
                "↻",
                f"{data.get('try', '')} of {data.get('of', '')}: {data.get('error', '')}",
            )
        elif kind == "guard":
            action, guard, place = (
                str(data.get(name, "")) for name in ("action", "guard", "place")
            )
            text = f"guard {guard}, {place}: {action}, {data.get('reason', '')}"
            self._write_line(activation, "✗", text, bad=action == "block")
        elif kind == "context_failed":
            self._write_line(
                activation, "✗", f"{data.get('provider', '')}: {data.get('error', '')}", bad=True
            )

    def _show_thoughts(self, activation: Activation, turn: _Turn) -> None:
        """Write what a model thought before it said or did something, on one line."""
        thoughts, turn.thoughts = " ".join(turn.thoughts.split()), ""
        if thoughts:
            self._cancel_notice(activation)
            self._write_line(activation, "∴", thoughts)

    def _show_text(self, activation: Activation, turn: _Turn, text: str) -> None:
        turn.text += text
        begun = turn.text.lstrip()
        if not begun or turn.fields is not None or begun.startswith(_STRUCTURED):
            return
        if turn.paragraph is None:
            text = begun
        self._paragraph_of(activation, turn).feed(text)

    def _show_fields(self, activation: Activation, turn: _Turn, fields: Mapping[str, Any]) -> None:
        """Write the fields of a structured reply that are whole: those that stay where others
        change.
        """
        known, turn.fields = turn.fields or {}, fields
        if fields != known:
            whole = {name: value for name, value in fields.items() if known.get(name) == value}
            self._write_fields(activation, turn, whole)

    def _write_fields(self, activation: Activation, turn: _Turn, fields: Mapping[str, Any]) -> None:
        for name, value in fields.items():
            if name not in turn.written:
                text = f"{name}: {render(value)}"
                self._paragraph_of(activation, turn).feed(f"\n{text}" if turn.written else text)
                turn.written.add(name)

    def _paragraph_of(self, activation: Activation, turn: _Turn) -> Paragraph:
        """Return the paragraph of the text that a node has begun."""
        if turn.paragraph is None:
            self._cancel_notice(activation)
            self._writer = activation
            turn.paragraph = self._paragraph(activation)
        return turn.paragraph

    def _take_back(self, activation: Activation, turn: _Turn) -> None:
        """End the present text with a mark that it does not count."""
        turn.end(_TAKEN_BACK)
        turn.thoughts, turn.text, turn.fields, turn.written = "", "", None, set()
        if self._writer == activation:
            self._release()

    def _take_back_inside(self, activation: Activation) -> None:
        """Take back the texts that firings inside of this one have begun."""
        around = (*activation.frame, activation.node)
        for inner in [a for a in self._turns if a.frame[: len(around)] == around]:
            self._take_back(inner, self._turns[inner])

    def _end_text(self, activation: Activation, turn: _Turn) -> None:
        """End the present text; the node continues."""
        if turn.paragraph is not None:
            self._last = " ".join(turn.text.split())
        turn.end()
        turn.text, turn.fields, turn.written = "", None, set()
        if self._writer == activation:
            self._release()

    def _finished(self, activation: Activation, output: Any, took: str) -> None:
        turn = self._turns.pop(activation, None) or _Turn()
        stated = _as_text(output)
        if turn.fields is not None:
            self._write_fields(activation, turn, _fields_of(output) or turn.fields)
        if turn.paragraph is not None:
            self._last = " ".join((stated if turn.written else turn.text).split())
            turn.end(took)
        elif turn.text:
            self._last = " ".join(stated.split())
            paragraph = self._paragraph(activation)
            paragraph.feed(stated or turn.text.lstrip())
            paragraph.end(took)
        else:
            line = " ".join(stated.split())
            words = "(nothing)" if not line else "(passed on)" if line == self._last else line
            self._last = line or self._last
            is_bad = has_failed(output)
            self._write_line(
                activation, "✗" if is_bad else "", f"{took}  {words}".strip(), bad=is_bad
            )
        if self._writer == activation:
            self._release()

    def _failed(self, activation: Activation, error: BaseException) -> None:
        turn = self._turns.pop(activation, None)
        if turn is not None:
            turn.end()
        self._write_line(activation, "✗", f"{type(error).__name__}: {error}", bad=True)
        if self._writer == activation:
            self._release()

    # -- lines

    def _paragraph(self, activation: Activation) -> Paragraph:
        return Paragraph(self.page, self._column, column=self._write_name(activation), lines=_LINES)

    def _write_line(
        self, activation: Activation, sign: str, words: str, *, bad: bool = False
    ) -> None:
        """Write one line."""
        at = self._write_name(activation, bad=bad)
        mark = f"{self.page.sign(sign)} " if sign else ""
        text = self.page.fit(clean(mark + words), self.page.width - at - 1)
        self.page.write(self.page.styled(text, "bad" if bad else "dim").rstrip() + "\n")

    def _tool(
        self, activation: Activation, call: tuple[str, str], result: str, *, failed: bool
    ) -> None:
        """Write a call and its result on one line; the result is cut last."""
        self._cancel_notice(activation)
        at = self._write_name(activation)
        name, arguments = call
        sign, arrow = f"{self.page.sign('⚙')} {name}(", f") {self.page.sign('→')} "
        room = self.page.width - at - 1 - columns(sign) - columns(arrow)
        back = self.page.fit(clean(_flat(result)), max(room - min(columns(arguments), 7), 16))
        given = self.page.fit(clean(arguments), max(room - columns(back), 3)) if arguments else ""
        self.page.write(
            self.page.styled(sign + given + arrow, "dim")
            + self.page.styled(back, "bad" if failed else "dim")
            + "\n"
        )

    def _write_name(self, activation: Activation, *, bad: bool = False) -> int:
        """Write the heading, if it is another one, and the node's name unless it was the last one;
        return the column behind it.
        """
        rounds, item, path = where(activation.frame, activation.path)
        scope, _, node = path.rpartition("/")
        is_new = self._write_heading((scope, rounds))
        name = clean(f"{node} {item}".strip())
        at = max(self._column, columns(name) + 2)
        if is_new or activation != self._last_named:
            colour = self._colours.setdefault(path, len(self._colours))
            self.page.write(
                self.page.styled(name, "bad" if bad else colour) + " " * (at - columns(name))
            )
        else:
            self.page.write(" " * at)
        self._last_named = activation
        return at

    def _write_heading(self, heading: tuple[str, str]) -> bool:
        """Write the heading, if it is another one."""
        if heading == self._heading:
            return False
        self._heading = heading
        self.page.rule(" · ".join(part for part in heading if part) or self._title)
        return True

    def _cancel_notice(self, activation: Activation) -> None:
        waiting = self._notices.pop(activation, None)
        if waiting is not None:
            waiting.cancel()

    def _took(self, activation: Activation) -> str:
        """Return how long a finished firing took, if it was long."""
        self._cancel_notice(activation)
        seconds = time.monotonic() - self._since.pop(activation, time.monotonic())
        return f"{seconds:.1f} s" if seconds >= _NOTICE_SECONDS else ""


class _Turn:
    """The output of a node in one firing, between two tool calls."""

    def __init__(self) -> None:
        self.text = ""
        self.fields: Mapping[str, Any] | None = None
        """The fields of a structured reply that are there and fit; its text is not shown."""
        self.written: set[str] = set()
        """The names of the fields that are written."""
        self.paragraph: Paragraph | None = None
        self.calls: dict[str, tuple[str, str]] = {}
        self.thoughts = ""
        """Thoughts of the model that are not shown yet."""

    def end(self, tail: str = "") -> None:
        """End the text."""
        if self.paragraph is not None:
            self.paragraph.end(tail)
            self.paragraph = None


def _call_of(chunk: Mapping[str, Any]) -> tuple[str, str]:
    """Return a call's name and arguments, as they would be written."""
    given = cast("Mapping[str, Any]", chunk.get("arguments") or {})
    return str(chunk.get("name", "")), ", ".join(
        f"{name}={as_json(value, indent=None)}" for name, value in given.items()
    )


def _flat(result: str) -> str:
    """Return a tool's result; fields without braces and quotes."""
    try:
        data: Any = json.loads(result) if result.startswith("{") else None
    except ValueError:
        data = None
    return (
        ", ".join(f"{name} {render(value)}" for name, value in cast("dict[str, Any]", data).items())
        if data
        else result
    )


def _fields_of(output: Any) -> Mapping[str, Any]:
    """Return the fields of an output, also of one that is a text of JSON."""
    if isinstance(output, Mapping) and not is_messages(output):
        return cast("Mapping[str, Any]", output)
    try:
        data: Any = json.loads(text_of(output))
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else {}


def _as_text(output: Any) -> str:
    """Return an output in words: messages as their texts, fields one after the other."""
    if isinstance(output, Mapping) and not is_messages(output):
        fields = cast("Mapping[str, Any]", output)
        if set(fields) - {"message"}:
            return "\n".join(f"{name}: {render(value)}" for name, value in fields.items())
    return text_of(output)


def where(frame: Frame, path: str) -> tuple[str, str, str]:
    """Return the rounds of the cycles and the items of the maps that a frame belongs to, counted
    from one (a tree's in each layer), and the node's path.
    """
    rounds: list[int] = []
    fans: list[list[int]] = []
    scope = ""
    for part in frame:
        if isinstance(part, str):
            if not part.startswith("#"):
                scope = part
                fans.append([])
        elif scope.startswith("cycle("):
            rounds.append(part)
        else:
            fans[-1].append(part)
    *around, node = path.split("/")
    items = [fan[-1] for fan in fans if fan]
    layers = [fan[0] for fan in fans if len(fan) > 1]
    if items and around[-1:] == [node] == [scope]:  # a map runs its own node in frames of that name
        path = "/".join(around)
    turned = f"round {'.'.join(str(n + 1) for n in rounds)}" if rounds else ""
    report = ("/".join(str(n + 1) for n in numbers) for numbers in (layers, items) if numbers)
    return turned, ":".join(report), path


def _part_of(given: Any) -> str:
    """Return a part of a reply in a line: a source, or what an image is."""
    part = cast("Mapping[str, Any]", given if isinstance(given, Mapping) else {})
    names = ("text",) if part.get("type") == "heard" else ("title", "name", "url")
    said = [str(part.get(name) or "") for name in names]
    return " ".join(filter(None, [f"[{part.get('type', '')}]", *said]))

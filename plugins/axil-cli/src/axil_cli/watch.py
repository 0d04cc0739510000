"""Those who watch a run for the command: the record of activations, progress for people, events as lines of JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, TextIO

from axil.inputs import text_of
from axil.tokens import Activation, Frame
from axil_cli.command import can_show, clean, write
from axil_cli.plain import as_json, plain, summary

_PREVIEW: Final = 72
_PATIENCE: Final = 0.2
"""Seconds until a firing that goes on is announced; one that is over sooner gets a single line."""


def named(activation: Activation, kind: str, **more: Any) -> dict[str, Any]:
    """An activation as data; ``ordinal`` is 0 for a node's only firing in its frame."""
    ordinal = list(activation.ordinal) or 0
    return {"node": activation.node, "path": activation.path, "kind": kind, "frame": list(activation.frame), "ordinal": ordinal, **more}


class Record:
    """All activations, in the order in which they finished."""

    def __init__(self) -> None:
        self.activations: list[dict[str, Any]] = []

    def firing_finished(self, activation: Activation, kind: str) -> None:
        self.activations.append(named(activation, kind, status="done"))

    def firing_failed(self, activation: Activation, kind: str) -> None:
        self.activations.append(named(activation, kind, status="failed"))

    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self.activations.append(named(activation, kind, status="skipped"))


class Lines:
    """Everything that happens, as one JSON object a line. ``stop`` is called when nobody reads them any more."""

    def __init__(self, stream: TextIO, stop: Callable[[], None]) -> None:
        self._stream, self._stop = stream, stop
        self.is_broken = False

    def _line(self, event: str, **data: Any) -> None:
        if self.is_broken:
            return
        try:
            write(self._stream, as_json({"event": event, **data}, indent=None) + "\n")
        except BrokenPipeError:
            self.is_broken = True
            self._stop()

    def run_started(self, run_id: str, plan: Any) -> None:
        self._line("run_started", run_id=run_id, graph=plan.graph.spec.id)

    def firing_started(self, activation: Activation, kind: str) -> None:
        self._line("firing_started", **named(activation, kind))

    def chunk(self, activation: Activation, chunk: Any) -> None:
        self._line("chunk", **named(activation, "node"), chunk=plain(chunk))

    def firing_finished(self, activation: Activation, kind: str, output: Any) -> None:
        self._line("firing_finished", **named(activation, kind), output=plain(output))

    def firing_failed(self, activation: Activation, kind: str, error: BaseException) -> None:
        self._line("firing_failed", **named(activation, kind), error=plain(error))

    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self._line("firing_skipped", **named(activation, kind))

    def run_finished(self, run_id: str, result: Any) -> None:
        self._line("run_finished", **summary(result))


class Progress:
    """What happens, for somebody who watches: one line for each firing, indented by depth, chunks as they come."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._marks = {mark: mark if can_show(stream, mark) else bare for mark, bare in (("▸", ">"), ("✓", "+"), ("✗", "x"), ("·", "-"))}
        self._since: dict[Activation, float] = {}
        self._silent: dict[Activation, asyncio.TimerHandle] = {}
        self._speaker: Activation | None = None
        self._questions = 0
        self._held: list[str] = []

    @contextmanager
    def quiet(self) -> Generator[None]:
        """While a question is open nothing is written over it; what happened meanwhile is told behind the answer."""
        if not self._questions and self._speaker is not None:
            self._write("\n")
            self._speaker = None
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                held, self._held = "".join(self._held), []
                write(self._stream, held)

    def _write(self, text: str) -> None:
        if self._questions:
            self._held.append(text)
        else:
            write(self._stream, text)

    def _line(self, mark: str, activation: Activation, words: str = "") -> None:
        if self._speaker is not None:
            self._write("\n")
            self._speaker = None
        where, path = _where(activation.frame, activation.path)
        indent = "  " * sum(1 for part in activation.frame if isinstance(part, str) and not part.startswith("#"))
        told = "  ".join(part for part in (f"{indent}{self._marks[mark]} {path}", where, words) if part)
        self._write(clean(told) + "\n")

    def firing_started(self, activation: Activation, kind: str) -> None:
        self._since[activation] = time.monotonic()
        if kind == "node":
            loop = asyncio.get_running_loop()
            self._silent[activation] = loop.call_later(_PATIENCE, self._announce, activation)
        else:
            self._line("▸", activation)

    def _announce(self, activation: Activation) -> None:
        if self._questions:  # the person is the slow one
            self._silent[activation] = asyncio.get_running_loop().call_later(_PATIENCE, self._announce, activation)
        elif self._silent.pop(activation, None) is not None:
            self._line("▸", activation, "…")

    def chunk(self, activation: Activation, chunk: Any) -> None:
        text = text_of(chunk) if chunk is not None else ""
        if self._speaker != activation:
            self._line("▸", activation)
            self._speaker = activation
        self._write(clean(text))

    def _over(self, activation: Activation, mark: str, words: str) -> None:
        waiting = self._silent.pop(activation, None)
        if waiting is not None:
            waiting.cancel()
        took = time.monotonic() - self._since.pop(activation, time.monotonic())
        self._line(mark, activation, "  ".join(part for part in (f"{took:.1f} s" if took >= 0.05 else "", words) if part))

    def firing_finished(self, activation: Activation, kind: str, output: Any) -> None:
        self._over(activation, "✓", _preview(output) if kind == "node" else "")

    def firing_failed(self, activation: Activation, kind: str, error: BaseException) -> None:
        self._over(activation, "✗", _shortened(f"{type(error).__name__}: {error}"))

    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self._line("·", activation, "skipped")

    def run_finished(self, run_id: str) -> None:
        if self._speaker is not None:
            self._write("\n")
        for waiting in self._silent.values():
            waiting.cancel()
        self._silent.clear()


def _where(frame: Frame, path: str) -> tuple[str, str]:
    """The rounds of the cycles and the items of the maps that a frame belongs to, counted from one, and the node's path.

    A tree's items are counted in each of its layers.
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
    told = (("round", rounds), ("layer", layers), ("item", items))
    return ", ".join(f"{word} {'.'.join(str(n + 1) for n in numbers)}" for word, numbers in told if numbers), path


def _preview(output: Any) -> str:
    text = text_of(output)
    return _shortened(text) if text else ""


def _shortened(text: str) -> str:
    line = " ".join(text[: 4 * _PREVIEW].split())
    return line if len(line) <= _PREVIEW else line[: _PREVIEW - 1] + "…"

"""Observers for the command: the record of activations, and events as lines of JSON.

For people: ``progress``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TextIO

from axil import Activation
from axil.plugin import has_failed
from axil_cli.command import write
from axil_cli.plain import as_json, plain, summary


def named(activation: Activation, kind: str, **more: Any) -> dict[str, Any]:
    """Return an activation as data; ``ordinal`` is 0 for a node's only firing in its frame."""
    ordinal = list(activation.ordinal) or 0
    return {
        "node": activation.node,
        "path": activation.path,
        "kind": kind,
        "frame": list(activation.frame),
        "ordinal": ordinal,
        **more,
    }


def _status(output: Any) -> str:
    """Return the status of a firing that has an output."""
    return "failed" if has_failed(output) else "done"


class Record:
    """All activations, in the order in which they finished."""

    def __init__(self) -> None:
        self.activations: list[dict[str, Any]] = []

    def firing_finished(self, activation: Activation, kind: str, output: Any) -> None:
        self.activations.append(named(activation, kind, status=_status(output)))

    def firing_failed(self, activation: Activation, kind: str) -> None:
        self.activations.append(named(activation, kind, status="failed"))

    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self.activations.append(named(activation, kind, status="skipped"))


class Lines:
    """Everything that happens, as one JSON object a line.

    ``stop`` is called when their reader has gone.
    """

    def __init__(self, stream: TextIO, stop: Callable[[], None]) -> None:
        self._stream, self._stop = stream, stop
        self.fault: OSError | None = None

    def _line(self, event: str, **data: Any) -> None:
        if self.fault is not None:
            return
        try:
            write(self._stream, as_json({"event": event, **data}, indent=None) + "\n")
        except OSError as error:
            self.fault = error
            self._stop()

    def run_started(self, run_id: str, plan: Any) -> None:
        self._line("run_started", run_id=run_id, graph=plan.graph.spec.id)

    def firing_started(self, activation: Activation, kind: str) -> None:
        self._line("firing_started", **named(activation, kind))

    def chunk(self, activation: Activation, chunk: Any) -> None:
        self._line("chunk", **named(activation, "node"), chunk=plain(chunk))

    def firing_finished(self, activation: Activation, kind: str, output: Any) -> None:
        status = _status(output)
        self._line(
            "firing_finished", **named(activation, kind), status=status, output=plain(output)
        )

    def firing_failed(self, activation: Activation, kind: str, error: BaseException) -> None:
        self._line("firing_failed", **named(activation, kind), error=plain(error))

    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self._line("firing_skipped", **named(activation, kind))

    def run_finished(self, run_id: str, result: Any) -> None:
        self._line("run_finished", **summary(result))

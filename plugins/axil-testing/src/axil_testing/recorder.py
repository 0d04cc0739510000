"""An observer that keeps what happened: one record for each activation, in the order of their ends.

Registered as a hook plugin (``axil.plugin.hook_manager([recorder])``) before the plan is made, it
also sees what bodies are given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from axil import Activation, NodeSpec, hookimpl

Outcome = Literal["done", "skipped", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One activation that ended."""

    name: str
    """As the journal and the frames of errors have it: ``loop/0/w#1``."""
    node: str
    path: str
    """The node through its graphs, without rounds."""
    kind: str
    """``node``, ``graph`` or ``cycle``."""
    frame: tuple[str | int, ...]
    ordinal: tuple[int, ...]
    status: Outcome
    payload: Any = None
    """The payload of its first live edge; of a failure, the error."""
    chunks: tuple[Any, ...] = ()
    inputs: tuple[Any, ...] | None = None
    """The payloads it was given, in edge order; None: the recorder was no hook plugin, or it is no
    node.
    """


@dataclass(eq=False)
class Recorder:
    """Give it to a run as one of its ``observers``; read it when the run has ended.

    ``started`` and ``records`` are in the order of the clock, which is not a law: compare them as
    ``golden`` does, or sorted.
    """

    records: list[Recorded] = field(default_factory=list[Recorded])
    started: list[str] = field(default_factory=list[str])
    plan: Any = None
    result: Any = None
    """The run's result, when it has ended."""
    _begun: list[Activation] = field(default_factory=list[Activation], repr=False)
    _chunks: dict[Activation, list[Any]] = field(
        default_factory=dict[Activation, list[Any]], repr=False
    )
    _inputs: dict[Activation, tuple[Any, ...]] = field(
        default_factory=dict[Activation, "tuple[Any, ...]"], repr=False
    )

    def __iter__(self) -> Iterator[Recorded]:
        return iter(self.records)

    def names(self, status: Outcome = "done", *, kind: str | None = None) -> list[str]:
        """Return the activations that ended so, in the order in which they did."""
        return [
            record.name
            for record in self.records
            if record.status == status and kind in (None, record.kind)
        ]

    def order(self) -> list[str]:
        """Return the paths of the nodes that fired, graphs and cycles left out."""
        return [
            record.path
            for record in self.records
            if record.status == "done" and record.kind == "node"
        ]

    def count(self, path: str) -> int:
        """Return how often the node at ``path`` fired."""
        return self.order().count(path)

    def __getitem__(self, name: str) -> Recorded:
        """Return the record of one activation. Raises: KeyError, naming those there are."""
        for record in self.records:
            if record.name == name:
                return record
        raise KeyError(f"{name}; there are {', '.join(record.name for record in self.records)}")

    # -- what a run calls

    @hookimpl
    def wrap_body(self, spec: NodeSpec, body: Any) -> Any:
        return None if body.mode == "scope" else _Noting(body, self._inputs)

    @hookimpl
    def run_started(self, run_id: str, plan: object) -> None:
        for kept in (self.records, self.started, self._begun, self._chunks, self._inputs):
            kept.clear()
        self.plan, self.result = plan, None

    @hookimpl
    def firing_started(self, activation: Activation) -> None:
        self.started.append(str(activation))
        self._begun.append(activation)

    @hookimpl
    def chunk(self, activation: Activation, chunk: object) -> None:
        self._chunks.setdefault(activation, []).append(chunk)

    @hookimpl
    def firing_finished(self, activation: Activation, kind: str, output: object) -> None:
        self._add(activation, kind, "done", output)

    @hookimpl
    def firing_failed(self, activation: Activation, kind: str, error: BaseException) -> None:
        self._add(activation, kind, "failed", error)

    @hookimpl
    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self._add(activation, kind, "skipped")

    @hookimpl
    def run_finished(self, run_id: str, result: object) -> None:
        self.result = result

    def _add(self, activation: Activation, kind: str, status: Outcome, payload: Any = None) -> None:
        self.records.append(
            Recorded(
                name=str(activation),
                node=activation.node,
                path=activation.path,
                kind=kind,
                frame=activation.frame,
                ordinal=activation.ordinal,
                status=status,
                payload=payload,
                chunks=tuple(self._chunks.pop(activation, ())),
                inputs=self._inputs.pop(activation, None),
            )
        )


class _Noting:
    """A body that notes what it is given."""

    wants_ctx = True

    def __init__(self, body: Any, inputs: dict[Activation, tuple[Any, ...]]) -> None:
        self.body, self.inputs, self.mode = body, inputs, body.mode

    def __call__(self, task: Any, ctx: Any, /) -> Any:
        self.inputs[ctx.activation] = tuple(token.payload for token in task.tokens)
        return self.body(task, ctx)

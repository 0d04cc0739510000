"""The options of a run and its result."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Self, TypeVar, cast

from axil.contract.context import Channel, Clock, Executor, Question
from axil.contract.messages import Message
from axil.contract.meters import RunUsage
from axil.contract.views import Thawed
from axil.errors import AxilError, RunError
from axil.kernel.events import CycleTally, Ending, Status
from axil.kernel.machine import FrameResult, output_of
from axil.kernel.plan import ResolvedGraph
from axil.kernel.values import ATOMS, thaw
from axil.spec.graph import Limits

if TYPE_CHECKING:
    from pathlib import Path

    import pluggy
    from typing_extensions import TypeVar

    from axil.runtime.recorder import RunJournal

    Out = TypeVar("Out", default=Any)
    S = TypeVar("S", default=Any)
else:
    Out, S = TypeVar("Out"), TypeVar("S")


_NONE: Any = None
Prompts = Literal["off", "digests", "whole"]
"""The part of prompts that a journal keeps."""
_SHOWN = ("status", "run_id", "output", "questions", "usage", "error")
"""The fields of a result that are shown to people; the rest can be as large as a state."""
_ROWS = 50
"""Rows of a result in a notebook."""
_METHODS = {
    "channel": "ask",
    "clock": "now",
    "hooks": "hook",
    "executor": "execute",
    "journal": "entries",
    "workspace": "joinpath",
}
"""An attribute of each option that is an object."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """The options of a run; each may be left out."""

    run_id: str = ""
    """Empty: a fresh one. That of a known run resumes it, if graph and input are the same."""
    resuming: bool = False
    """Continue a known run, whatever its input was."""
    journal: RunJournal | None = None
    """None: nothing is kept; a run that pauses cannot be resumed."""
    thread: str = ""
    """The conversation to continue: the run begins with the final state of the thread's last run.
    Needs a journal.
    """
    migrate: bool = False
    """Continue a run that was begun with another version of the graph or its plugins: what was done
    stays done, under its names; the rest runs as it is now, and it is that version's run from then
    on.
    """
    origin: Mapping[str, object] = field(default_factory=lambda: {})
    """Plain data to keep with the run: its file, with what variables."""
    pins: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {})
    """The distributions of the graph's components, with versions; a workflow knows them."""
    answers: Mapping[str, object] = field(default_factory=lambda: {})
    """Answers to questions that an earlier part of the run asked, by question id."""
    prompts: Prompts = "off"
    """The part of prompts that the journal keeps: ``off``, a digest of each request, by which a
    resumed run finds its reply; ``digests``, the role, the length and a digest of each message;
    ``whole``, the messages as well, without known forms of secrets.
    """
    channel: Channel | None = None
    observers: Sequence[object] = ()
    """Objects with methods named like the observer hooks."""
    hooks: pluggy.PluginManager | None = None
    """A pluggy manager; see ``axil.plugin.hook_manager``."""
    clock: Clock | None = None
    limits: Limits | None = None
    """None: those that the run was given before, else the graph's own."""
    deps: object = None
    workspace: Path | None = None
    """A text is taken as a path."""
    allow: frozenset[str] = frozenset()
    """Actions that files may do: ``code``. An unknown word is a ConfigError (AX136)."""
    executor: Executor | None = None
    """The executor of bodies (``axil.driver.Executor``), closed with the run; None: this event
    loop.
    """
    threads: int = 64
    """Bodies that may block at the same time, in threads of the run's own."""

    def __post_init__(self) -> None:
        if isinstance(self.limits, Mapping):
            raise TypeError("limits: expected Limits, found a mapping. Write Limits(firings=3).")
        if isinstance(self.journal, (str, os.PathLike)):
            hint = f'SqliteJournal("{self.journal}") of axil-sqlite, or a MemoryJournal().'
            raise TypeError(f"journal: expected a journal, found a path. Give {hint}")
        if isinstance(self.workspace, str):
            from pathlib import Path

            object.__setattr__(self, "workspace", Path(self.workspace))
        for name, has in _METHODS.items():
            given = getattr(self, name)
            if given is not None and not hasattr(given, has):
                raise TypeError(f"{name}: expected an object with {has}, found {given!r:.80}.")
        if self.allow != frozenset():
            from axil.settings.grants import Grants

            Grants.of(self.allow)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result(Generic[Out, S]):
    """The result of a run; ``Out`` and ``S`` are the types of its output and its final state, for
    type checkers alone.

    Only ``done`` is a whole result; anything else is partial, and ``error`` says why.
    """

    if not TYPE_CHECKING:

        @classmethod
        def __class_getitem__(cls, types: object) -> type[Self]:
            """Return the class itself: the types may be left out from the end."""
            return cls

    status: Status
    run_id: str
    output: Out = _NONE
    """Fields (a dict), the text of the final message, or the final state; None if the run is not
    done.
    """
    state: S = _NONE
    """The final state, as its schema's kind; a dict for attribute graphs."""
    attributes: dict[str, Any] = field(default_factory=lambda: {})
    """The final state as a plain dict."""
    messages: tuple[Message, ...] = ()
    """Message graphs: the messages of the final output."""
    exits: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: {})
    """Every payload that left, by the node it came from."""
    questions: tuple[Question, ...] = ()
    usage: RunUsage = field(default_factory=RunUsage)
    """The usage: firings, seconds, model tokens and money."""
    cycles: Mapping[str, CycleTally] = field(default_factory=lambda: {})
    """The ends of cycles, by path."""
    error: AxilError | None = None

    def __repr__(self) -> str:
        """Return the fields that say how the run ended, cut where they are long."""
        fields = (
            f"{name}={_short(repr(value), 300)}"
            for name in _SHOWN
            if (value := getattr(self, name)) or name == "status"
        )
        return f"{type(self).__name__}({', '.join(fields)})"

    def _repr_html_(self) -> str:
        """Return the same as a table, for notebooks: a row for each field of the output."""
        from html import escape

        rows: list[tuple[str, object]] = []
        for name in _SHOWN:
            value = getattr(self, name)
            if name == "output" and isinstance(value, Mapping):
                rows += cast("Mapping[str, Any]", value).items()
            elif name == "questions":
                rows += [(f"asked by {question.node}", question.text) for question in value]
            elif name == "usage":
                tokens = (f"{count} {kind}" for kind, count in value.tokens.items())
                counts = (f"{value.firings} firings", f"{value.seconds:.2f} s", *tokens)
                rows.append((name, ", ".join(counts) + f", cost {value.cost}" * bool(value.cost)))
            elif value:
                rows.append((name, value))
        cells = (
            f"<tr><th>{escape(_short(str(name), 100))}</th>"
            f'<td style="text-align:left;white-space:pre-wrap">{escape(_short(str(value), 2000))}'
            "</td></tr>"
            for name, value in rows[:_ROWS]
        )
        more = f"<tr><td></td><td>… {len(rows) - _ROWS} more</td></tr>" * (len(rows) > _ROWS)
        return f"<table>{''.join(cells)}{more}</table>"

    def __iter__(self) -> Any:
        """``output, attributes = result``."""
        return iter((self.output, self.attributes))

    def __getitem__(self, index: Literal[0, 1]) -> Any:
        """Return the output (0) or the attributes (1)."""
        return (self.output, self.attributes)[index]

    def __eq__(self, other: object) -> bool:
        """Compare all fields; with a pair: output and attributes, as the result unpacks."""
        if isinstance(other, tuple):
            return (self.output, self.attributes) == other
        if type(other) is type(self):
            return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)
        return NotImplemented


def _short(text: str, most: int) -> str:
    """Return a text for people: without secrets and hidden characters, and not longer."""
    from axil.contract.legible import legible
    from axil.secrecy import without_secrets

    shown = legible(without_secrets(text))
    return shown if len(shown) <= most else f"{shown[:most]}… ({len(shown)} characters)"


def made(
    run_id: str,
    graph: ResolvedGraph,
    ended: FrameResult,
    ending: Ending,
    usage: RunUsage,
    cycles: Mapping[str, CycleTally],
) -> Result:
    """Return the result of a run, from its frame."""
    schema, payload = graph.schema, graph.spec.payload
    attributes = ended.state.plain()
    if not ATOMS.issuperset(map(type, attributes.values())):
        attributes = Thawed(attributes)
    state = schema.view(schema.start(attributes.copy())) if schema.view else attributes
    exits: dict[str, list[object]] = {}
    for exit in ended.exits:
        source = graph.edges[exit.edge].source
        exits.setdefault(graph.vertices[source].name if source >= 0 else "@entry", []).append(
            thaw(exit.payload)
        )
    output: Any = None
    messages: tuple[Message, ...] = ()
    if ending.status == "done":
        output = state if payload == "state" else thaw(output_of(graph, ended))
        if payload == "messages":
            messages = tuple(output or ())
            output = messages[-1]["content"] if messages else None
        elif output is None:
            output = {}
    result = Result(
        status=ending.status,
        run_id=run_id,
        output=output,
        state=state,
        attributes=attributes,
        messages=messages,
        exits={name: tuple(payloads) for name, payloads in exits.items()},
        questions=ending.questions,
        usage=usage,
        cycles=cycles,
        error=ending.error,
    )
    if isinstance(ending.error, RunError):
        ending.error.result = result
    return result


class Event(NamedTuple):
    """One thing that happened in a run."""

    kind: str
    """``run_started``, ``firing_started``, ``chunk``, ``firing_finished``, ``firing_failed``,
    ``firing_skipped``, ``run_finished``.
    """
    activation: Any = None
    data: Any = None
    lost: int = 0
    """Chunks that were dropped just before because the reader was slow."""

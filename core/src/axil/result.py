"""What a run is asked to do, and what it comes to."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from axil.composite import output_of
from axil.context import Channel, Clock, Question
from axil.errors import AxilError, KernelBug, LimitReached, NodeFailed, RunError, RunPaused
from axil.inputs import Message
from axil.journal import Journal
from axil.ledger import Budget, Ledger, Usage
from axil.outcome import Ended
from axil.plan import Graph
from axil.spec import Limits
from axil.values import thaw
from axil.views import thawed

if TYPE_CHECKING:
    from pathlib import Path

Status = Literal["done", "paused", "failed", "limited", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run; everything has a sensible absence."""

    run_id: str = ""
    """Empty: a fresh one. The id of a run that the journal knows goes on with it, if graph and input are the same."""
    resuming: bool = False
    """Go on with a run that the journal knows, whatever its input was."""
    journal: Journal | None = None
    """None: nothing is kept, and a run that pauses cannot be resumed."""
    thread: str = ""
    """The conversation that the run continues: it begins with the state in which the thread's last run ended. Needs a journal."""
    migrate: bool = False
    """Go on with a run that was begun with another version of the graph or of its plugins: what was done stays done, under the names
    that it was done under; the rest runs as it is now. It is that version's run from then on."""
    origin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Plain data that the journal keeps with the run: which file it was, with what variables."""
    pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"])
    """The distributions that the graph's components come from, with their versions; a workflow knows them."""
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Answers to questions that an earlier part of the run asked, by question id."""
    channel: Channel | None = None
    observers: Sequence[Any] = ()
    """Objects with methods named like the observer hooks."""
    hooks: Any = None
    """A pluggy manager; see ``axil.hooks.manager``."""
    clock: Clock | None = None
    limits: Limits | None = None
    """None: the graph's own."""
    deps: Any = None
    workspace: Path | None = None
    allow: frozenset[str] = frozenset()
    """What files may do: ``code``."""
    executor: Any = None
    """Where bodies run (``axil.context.Executor``); None: here. It is closed with the run."""
    threads: int = 64
    """Bodies that may block at the same time, in threads of the run's own."""

    def identified(self) -> str:
        """The run's id."""
        return self.run_id or os.urandom(8).hex()


class Meter:
    """Counts what a run uses and says when a limit is reached."""

    __slots__ = ("ledger", "limits", "most", "usage")

    def __init__(self, limits: Limits, stop: Callable[[LimitReached], None]) -> None:
        """``stop``: ends the run when a limit is passed while bodies are at work."""
        self.limits = limits
        self.most: float = math.inf if limits.firings is None else limits.firings
        """Firings that may begin."""
        self.usage = Usage()
        says = (limits.tokens, limits.cost, limits.pricing) != (None, None, None)
        budget = Budget(tokens=limits.tokens, cost=limits.cost, pricing=limits.pricing) if says else None
        self.ledger = Ledger(self.usage, budget, limits.estimate, stop)
        """Who spends what, and what is reserved."""

    def restore(self, used: Mapping[str, Any]) -> None:
        """Count on from what a journal says was used."""
        self.usage.firings, self.usage.cost = used.get("firings", 0), used.get("cost", 0.0)
        self.usage.tokens = dict(used.get("tokens", ()))
        self.ledger.restore(used.get("nodes", {}))

    @property
    def has_spent(self) -> bool:
        """Whether there is anything to be told but firings."""
        return bool(self.usage.tokens or self.usage.cost or self.ledger.has_accounts)

    def told(self) -> dict[str, Any]:
        """What ``restore`` reads."""
        used: dict[str, Any] = {"firings": self.usage.firings, "tokens": dict(self.usage.tokens), "cost": self.usage.cost}
        nodes = self.ledger.told()
        return {**used, "nodes": nodes} if nodes else used

    def limit(self) -> LimitReached:
        """What a run is told that has fired as often as it may."""
        return LimitReached(f"the run fired {self.most} times, which is its limit.", id="AX412")


@dataclass(slots=True)
class CycleTally:
    """How the entries of one cycle ended."""

    entries: int = 0
    rounds: int = 0
    ends: dict[str, int] = field(default_factory=dict[str, int])
    """``exit``, ``natural`` and ``limit``, with how often."""

    def count(self, reason: str, rounds: int) -> None:
        """Count one entry that has ended."""
        self.entries += 1
        self.rounds += rounds
        self.ends[reason] = self.ends.get(reason, 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run came to. Only ``done`` is a whole result; anything else is partial, and ``error`` says why."""

    status: Status
    run_id: str
    output: Any = None
    """Fields (a dict), the text of the final message, or the final state; None if nothing reached the exit."""
    state: Any = None
    """The final state, as its schema's kind; a dict for attribute graphs."""
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    """The final state as a plain dict."""
    messages: tuple[Message, ...] = ()
    """Message graphs: the messages of the final output."""
    exits: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, "tuple[Any, ...]"])
    """Every payload that left, by the node it came from."""
    questions: tuple[Question, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cycles: Mapping[str, CycleTally] = field(default_factory=dict[str, CycleTally])
    """How cycles ended, by path."""
    error: AxilError | None = None

    def __iter__(self) -> Any:
        """``output, attributes = result``."""
        return iter((self.output, self.attributes))


class Ending(NamedTuple):
    """How a run ended, before it is put into a result."""

    status: Status
    error: AxilError | None = None
    questions: tuple[Question, ...] = ()


def ending_of(failed: Sequence[tuple[Any, NodeFailed]], stop: AxilError | None, has_ended: bool, questions: tuple[Question, ...]) -> Ending:
    """How a run ended: the first failure in plan order, why it was stopped, or what it waits for. Raises: KernelBug.

    ``failed``: each with its place in plan order.
    """
    if failed:
        failures = [failure for _, failure in sorted(failed, key=lambda item: item[0])]
        failures[0].others = tuple(failures[1:])
        return Ending(status="failed", error=failures[0])
    if isinstance(stop, LimitReached):
        return Ending(status="limited", error=stop)
    if stop is not None:
        return Ending(status="cancelled", error=stop)
    if has_ended:
        return Ending(status="done")
    if not questions:
        raise KernelBug("the run has nothing to do, has not ended, and waits for nobody.")
    return Ending(status="paused", error=RunPaused(f"{len(questions)} open question(s): {questions[0].text}"), questions=questions)


def made(run_id: str, graph: Graph, ended: Ended, ending: Ending, usage: Usage, cycles: Mapping[str, CycleTally]) -> Result:
    """The result of a run: what its frame left behind, as callers want it."""
    schema, payload = graph.schema, graph.spec.payload
    attributes = thawed(ended.state.plain())
    state = schema.view(schema.start(attributes.copy())) if schema.view else attributes
    exits: dict[str, list[Any]] = {}
    for exit in ended.exits:
        source = graph.edges[exit.edge].source
        exits.setdefault(graph.vertices[source].name if source >= 0 else "@entry", []).append(thaw(exit.payload))
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
    """One thing that happened in a run, for those who watch it."""

    kind: str
    """``run_started``, ``firing_started``, ``chunk``, ``firing_finished``, ``firing_failed``, ``firing_skipped``, ``run_finished``."""
    activation: Any = None
    data: Any = None
    lost: int = 0
    """Chunks that were dropped just before this event because the reader was slow."""


__all__ = ["CycleTally", "Ending", "Event", "Meter", "Options", "Result", "Status", "Usage", "ending_of", "made"]

"""What a run is asked to do, and what it comes to."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from axil.context import Channel, Clock, Question
from axil.errors import AxilError
from axil.inputs import Message
from axil.journal import Journal
from axil.spec import Limits

Status = Literal["done", "paused", "failed", "limited", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run; everything has a sensible absence."""

    run_id: str = ""
    """Empty: a fresh one."""
    journal: Journal | None = None
    """None: nothing is kept, and a run that pauses cannot be resumed."""
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
    threads: int = 64
    """Bodies that may block at the same time, in threads of the run's own."""

    def identified(self) -> str:
        """The run's id."""
        return self.run_id or secrets.token_hex(8)


@dataclass(slots=True)
class Usage:
    """What a run has used."""

    firings: int = 0
    seconds: float = 0.0
    tokens: dict[str, int] = field(default_factory=dict[str, int])
    """Model tokens by kind, as bodies reported them."""
    cost: float = 0.0


@dataclass(slots=True)
class CycleTally:
    """How the entries of one cycle ended."""

    entries: int = 0
    rounds: int = 0
    ends: dict[str, int] = field(default_factory=dict[str, int])
    """``exit``, ``natural`` and ``limit``, with how often."""


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


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run, for those who watch it."""

    kind: str
    """``run_started``, ``firing_started``, ``chunk``, ``firing_finished``, ``firing_failed``, ``firing_skipped``, ``run_finished``."""
    activation: Any = None
    data: Any = None
    lost: int = 0
    """Chunks that were dropped just before this event because the reader was slow."""

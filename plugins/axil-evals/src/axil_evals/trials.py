"""Cases, trials of a target with a case, and scores of trials."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from pydantic import TypeAdapter

from axil import MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case of a dataset."""

    name: str
    inputs: Any
    """Fields, or the text of a message."""
    expected: Any = MISSING
    """``MISSING``: nothing certain is expected."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    scorers: tuple[Any, ...] = ()
    """Scorers of this case alone: names, or ``{type: …, …}``."""

    def plain(self) -> dict[str, Any]:
        """Return the case as plain data."""
        data: dict[str, Any] = {"name": self.name, "inputs": self.inputs}
        if self.expected is not MISSING:
            data["expected"] = self.expected
        if self.metadata:
            data["metadata"] = dict(self.metadata)
        if self.scorers:
            data["scorers"] = list(self.scorers)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of a case."""

    status: str
    """As of a run: ``done``, ``failed``, ``limited`` …"""
    output: Any = None
    """Plain data: fields, a text, or a state."""
    error: str = ""
    seconds: float = 0.0
    cost: float = 0.0
    tokens: int = 0
    nodes: tuple[str, ...] = ()
    """Paths of the nodes that fired, in the order in which they ended."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were called, in order."""

    def plain(self) -> dict[str, Any]:
        """Return the trial as plain data."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return {**data, "nodes": list(self.nodes), "tools": list(self.tools)}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Trial:
        """Return the trial of which ``plain`` made data."""
        return TypeAdapter(cls).validate_python(data)

    def text(self, field: str = "") -> str:
        """Return a field of the output as text; empty: the only field, or the whole output."""
        value = self.value(field)
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)

    def value(self, field: str = "") -> Any:
        """Return a field of the output; empty: the only field, or the whole output."""
        return value_of(self.output, field)


def value_of(output: Any, field: str = "") -> Any:
    """Return a field of an output or of an expectation; empty: the only field, or all.

    >>> value_of({"text": "hi"}), value_of({"a": 1, "b": 2}, "b"), value_of("hi", "text")
    ('hi', 2, 'hi')
    """
    if isinstance(output, Mapping):
        fields = cast("Mapping[str, Any]", output)
        if field:
            return fields.get(field)
        if len(fields) == 1:
            return next(iter(fields.values()))
    return cast("Any", output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The value that a scorer gives a trial."""

    value: float
    """From 0, bad, to 1, good."""
    passed: bool
    reason: str = ""

    def __post_init__(self) -> None:
        """Raises: ValueError: the value is not from 0 to 1."""
        if not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a score is from 0 to 1, found {self.value!r}.")

    @classmethod
    def of(cls, given: Score | bool | float) -> Score:
        """Return a scorer's answer as a score; a number passes from one half on."""
        if isinstance(given, Score):
            return given
        return cls(value=float(given), passed=float(given) >= 0.5)

    def plain(self) -> dict[str, Any]:
        """Return the score as plain data."""
        return {"value": self.value, "passed": self.passed, "reason": self.reason}


Scored: TypeAlias = Score | bool | float


class Scorer(Protocol):
    """``axil.scorers``: says how good a trial is."""

    def score(self, case: Case, trial: Trial, ctx: Any, /) -> Scored | Awaitable[Scored]:
        """Return the score of a trial that is done; awaited if necessary.

        Args:
            ctx: the context of a body (``axil.Context``): a scorer that asks a model asks it in a
                step.
        """
        ...


def in_order(wanted: Sequence[str], seen: Sequence[str]) -> int:
    """Return how many of ``wanted`` are in ``seen`` in this order: the longest common subsequence.

    >>> in_order(["a", "b", "c"], ["a", "x", "c", "b"])
    2
    """
    lengths = [0] * (len(seen) + 1)
    for each in wanted:
        before = 0
        for at, there in enumerate(seen, 1):
            longest = before + 1 if each == there else max(lengths[at], lengths[at - 1])
            before, lengths[at] = lengths[at], longest
    return lengths[-1]

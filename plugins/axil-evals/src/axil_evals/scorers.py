"""Scorers that need no model: the output, what it cost, and the way to it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from axil import MISSING
from axil.plugin import BoundedSchema, JsonSchema, Pattern, PatternText, compile_pattern, thaw
from axil_evals.errors import EvalError
from axil_evals.trials import Case, Score, Trial, in_order, value_of


class Settings(BaseModel):
    """The config of a scorer: strict, and fixed once it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def expected_of(case: Case, field: str, of: str) -> Any:
    """Return what a case expects. Raises: EvalError (AX972): it expects nothing."""
    if case.expected is MISSING:
        message = f'case "{case.name}" expects nothing, which "{of}" compares with.'
        raise EvalError("AX972", message, 'Give the case "expected", or the scorer a setting.')
    return value_of(case.expected, field)


class ExactConfig(Settings):
    """An output that equals what the case expects."""

    field: str = Field("", description="The field of the output; empty: the only one, or all.")
    value: Any = Field(None, description="What is expected; without it, the case says it.")
    normalize: bool = Field(
        False, description="Texts are compared without case and surplus white space."
    )
    if_expected: bool = Field(
        False, description="Whether a case that expects nothing passes, instead of an error."
    )


class Exact:
    """``exact``: the output equals what is expected."""

    Config = ExactConfig
    examples: ClassVar[Any] = ({}, {"normalize": True})

    def __init__(self, config: ExactConfig | None = None) -> None:
        self.config = config or ExactConfig.model_validate({})

    def score(self, case: Case, trial: Trial, ctx: Any, /) -> Score:
        """Return 1 if it is equal, else 0."""
        has_value = "value" in self.config.model_fields_set
        field = self.config.field
        if self.config.if_expected and not has_value and case.expected is MISSING:
            return Score(value=1.0, passed=True, reason="nothing is expected")
        wanted = self.config.value if has_value else expected_of(case, field, "exact")
        found = trial.value(field)
        if self.config.normalize and isinstance(found, str) and isinstance(wanted, str):
            same = " ".join(found.casefold().split()) == " ".join(wanted.casefold().split())
        else:
            same = found == wanted
        return Score(value=float(same), passed=same, reason="" if same else f"expected {wanted!r}")


class ContainsConfig(Settings):
    """A text in the output."""

    field: str = Field("", description="The field of the output; empty: the only one, or all.")
    text: str = Field("", description="The text; without it, what the case expects.")
    ignore_case: bool = Field(True, description="Whether upper and lower case are the same.")


class Contains:
    """``contains``: the output contains a text."""

    Config = ContainsConfig
    examples: ClassVar[Any] = ({"text": "Paris"},)

    def __init__(self, config: ContainsConfig | None = None) -> None:
        self.config = config or ContainsConfig.model_validate({})

    def score(self, case: Case, trial: Trial, ctx: Any, /) -> Score:
        """Return 1 if it is in the output, else 0."""
        field = self.config.field
        wanted = self.config.text or str(expected_of(case, field, "contains"))
        found = trial.text(field)
        has = wanted.casefold() in found.casefold() if self.config.ignore_case else wanted in found
        return Score(value=float(has), passed=has, reason="" if has else f"lacks {wanted!r}")


class RegexConfig(Settings):
    """A regular expression that the output matches."""

    field: str = Field("", description="The field of the output; empty: the only one, or all.")
    pattern: PatternText = Field(description="The expression; it is searched for anywhere.")


class Regex:
    """``regex``: the output matches a regular expression."""

    Config = RegexConfig
    examples: ClassVar[Any] = ({"pattern": "[0-9]+ EUR"},)

    def __init__(self, config: RegexConfig) -> None:
        self.config = config
        self._pattern: Pattern = compile_pattern(config.pattern)

    def score(self, case: Case, trial: Trial, ctx: Any, /) -> Score:
        """Return 1 if it matches, else 0."""
        has = self._pattern.search(trial.text(self.config.field)) is not None
        return Score(
            value=float(has), passed=has, reason="" if has else f"no match of {self.config.pattern}"
        )


class SchemaConfig(Settings):
    """A JSON Schema that the output fits."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    field: str = Field("", description="The field of the output; empty: the only one, or all.")
    json_schema: JsonSchema = Field(alias="schema", description="The JSON Schema.")


class Schema:
    """``schema``: the output fits a JSON Schema; a text is read as JSON."""

    Config = SchemaConfig
    examples: ClassVar[Any] = ({"schema": {"type": "object", "required": ["city"]}},)

    def __init__(self, config: SchemaConfig) -> None:
        self.config = config

    @cached_property
    def _schema(self) -> BoundedSchema:
        return BoundedSchema(self.config.json_schema)

    async def score(self, case: Case, trial: Trial, ctx: Any, /) -> Score:
        """Return 1 if it fits, else 0 with the first fault.

        Raises: PatternFault (AX637), PatternLimit (AX638): the schema cannot be used.
        """
        value = thaw(trial.value(self.config.field))
        if isinstance(value, str) and self.config.json_schema.get("type") != "string":
            try:
                value = json.loads(value)
            except ValueError:
                return Score(value=0.0, passed=False, reason="it is no JSON")
        fault = await asyncio.to_thread(lambda: self._schema.first_fault(value))
        reason = "" if fault is None else f"{fault.path}: {fault.message}"[:200]
        return Score(value=float(fault is None), passed=fault is None, reason=reason)


class CostConfig(Settings):
    """Money that a trial may cost."""

    most: float = Field(gt=0, description="The most that it may cost.")


class Cost:
    """``cost``: a trial costs no more than this."""

    Config = CostConfig
    examples: ClassVar[Any] = ({"most": 0.01},)

    def __init__(self, config: CostConfig) -> None:
        self.config = config

    def score(self, case: Case, trial: Trial, ctx: Any, /) -> Score:
        """Return 1 if it is within the limit, else 0."""
        within = trial.cost <= self.config.most
        return Score(value=float(within), passed=within, reason=f"{trial.cost:.6g}")


class TimeConfig(Settings):
    """Seconds that a trial may take."""

    most_seconds: float = Field(gt=0, description="The longest time.")


class Time:
    """``time``: a trial takes no longer than this."""

    Config = TimeConfig
    examples: ClassVar[Any] = ({"most_seconds": 30.0},)

    def __init__(self, config: TimeConfig) -> None:
        self.config = config

    def score(self, case: Case, trial: Trial, ctx: Any, /) -> Score:
        """Return 1 if it is within the limit, else 0."""
        within = trial.seconds <= self.config.most_seconds
        return Score(value=float(within), passed=within, reason=f"{trial.seconds:.3f} s")


class TrajectoryConfig(Settings):
    """The nodes and tools of a trial, and their order."""

    nodes: tuple[str, ...] | None = Field(
        None, description="Paths of nodes; without them, `nodes` of the case's metadata."
    )
    tools: tuple[str, ...] | None = Field(
        None, description="Names of tools; without them, `tools` of the case's metadata."
    )
    order: Literal["exact", "in_order", "any_order"] = Field(
        "in_order",
        description="exact: these and no others, in this order; in_order: others may be between; "
        "any_order: each of them at least as often.",
    )


class Trajectory:
    """``trajectory``: the nodes that fired and the tools that were called, in which order.

    The value is the part of what is wanted that is there; with ``exact``, of all that is there.
    """

    Config = TrajectoryConfig
    examples: ClassVar[Any] = ({"tools": ["search", "answer"]},)

    def __init__(self, config: TrajectoryConfig | None = None) -> None:
        self.config = config or TrajectoryConfig.model_validate({})

    def score(self, case: Case, trial: Trial, ctx: Any, /) -> Score:
        """Return the part of the trajectory that is there; it passes if that is all of it."""
        right = total = 0
        missing: list[str] = []
        for kind, seen in (("nodes", trial.nodes), ("tools", trial.tools)):
            wanted = getattr(self.config, kind)
            if wanted is None:
                wanted = case.metadata.get(kind)
            if wanted is None:
                continue
            there = self._there([str(each) for each in wanted], list(seen))
            right += there
            length = len(wanted)
            if self.config.order == "exact":
                length = max(length, len(seen))
            total += length
            if there < length:
                missing.append(f"{kind}: expected {', '.join(map(str, wanted))}; {', '.join(seen)}")
        if not total and not missing:
            if self.config.nodes is None and self.config.tools is None and not case.metadata:
                message = f'case "{case.name}" says nothing of nodes or tools.'
                hint = 'Give its metadata "nodes" or "tools", or the scorer a setting.'
                raise EvalError("AX972", message, hint)
            return Score(value=1.0, passed=True)
        return Score(value=right / total, passed=right == total, reason="; ".join(missing))

    def _there(self, wanted: list[str], seen: list[str]) -> int:
        if self.config.order != "any_order":
            return in_order(wanted, seen)
        return (Counter(wanted) & Counter(seen)).total()

"""Conditions for edges: pure functions of what the edge sees."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from axil.plugin import FAILED_CODE, EdgeInput, PatternText, compile_pattern, refers_to
from axil_control.expression import Expression
from axil_control.named import as_condition, component
from axil_control.patterns import PatternConfig


def _readable(text: str) -> str:
    Expression(text)
    return text


ExpressionText = Annotated[str, AfterValidator(_readable)]
"""A setting that holds an expression."""
FAILED: Final = FAILED_CODE
"""The beginning of the text of a failed ``python`` node."""


class _Plain:
    """A condition without settings."""

    class Config(BaseModel, extra="forbid", frozen=True):
        """A condition without settings."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()


class Always(_Plain):
    """``true``: the edge is taken."""

    says = True

    def __call__(self, seen: EdgeInput) -> bool:
        return True


class Never(_Plain):
    """``false``, ``always_false``: the edge is not taken."""

    says = False

    def __call__(self, seen: EdgeInput) -> bool:
        return False


class CodePassed(_Plain):
    """``code_pass``: the text does not report failed code."""

    says = ("not", ("has", ("text",), FAILED))

    def __call__(self, seen: EdgeInput) -> bool:
        return FAILED not in seen.text


class CodeFailed(_Plain):
    """``code_fail``: the text reports failed code."""

    says = ("has", ("text",), FAILED)

    def __call__(self, seen: EdgeInput) -> bool:
        return FAILED in seen.text


class Keyword:
    """``keyword``: words that must not be there (``none``), words or patterns of which one must
    (``any``, ``regex``).

    First ``none``: any hit is no. Then ``any``, then ``regex``: any hit is yes. Without a hit: no
    if ``any`` or ``regex`` was given, else yes. Empty words are ignored.
    """

    examples = ({"any": ["APPROVED"], "none": ["NOT APPROVED"]},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The words that ``keyword`` looks for."""

        any: tuple[str, ...] = Field(default=(), description="Texts; one of them found: yes.")
        none: tuple[str, ...] = Field(
            default=(), description="Texts; one of them found: no, whatever else is found."
        )
        regex: tuple[PatternText, ...] = Field(
            default=(), description="Regular expressions; one of them found: yes."
        )
        case_sensitive: bool = Field(default=True, description="Tell upper case from lower case.")
        default: bool = Field(
            default=False, description="Without effect; DevAll files may hold it."
        )

        @field_validator("any", "none", "regex", mode="before")
        @classmethod
        def _nothing_is_empty(cls, value: object) -> object:
            return () if value is None else (value,) if isinstance(value, str) else value

        @model_validator(mode="after")
        def _asks_something(self) -> Self:
            if not (self.any or self.none or self.regex):
                raise ValueError(
                    "AX603 keyword asks nothing; give at least one of any, none and regex."
                )
            return self

    def __init__(self, config: Config) -> None:
        self.config = config
        self._any, self._none = (
            [self._folded(word) for word in words if word] for words in (config.any, config.none)
        )
        self._patterns = [
            compile_pattern(pattern, case_sensitive=config.case_sensitive)
            for pattern in config.regex
        ]
        has = "has" if config.case_sensitive else "has folded"
        hits = [
            *((has, ("text",), word) for word in self._any),
            *((_matches(config.case_sensitive), ("text",), each) for each in config.regex),
        ]
        asks = bool(config.any or config.regex)
        self.says = (
            "and",
            *(("not", (has, ("text",), word)) for word in self._none),
            ("or", *hits) if asks else True,
        )

    def _folded(self, text: str) -> str:
        return text if self.config.case_sensitive else text.lower()

    def __call__(self, seen: EdgeInput) -> bool:
        text = seen.text
        folded = self._folded(text)
        if any(word in folded for word in self._none):
            return False
        if any(word in folded for word in self._any) or any(
            pattern.search(text) for pattern in self._patterns
        ):
            return True
        return not (self.config.any or self.config.regex)


def _matches(case_sensitive: bool) -> str:
    return "matches" if case_sensitive else "matches folded"


class Regex:
    """``regex``: the pattern is found in the text."""

    examples = ({"pattern": "score: [0-9]+"},)

    Config = PatternConfig

    def __init__(self, config: PatternConfig) -> None:
        self.config = config
        self._pattern = config.compiled()
        self.says = ("matches", ("text",), repr(config))

    def __call__(self, seen: EdgeInput) -> bool:
        return self._pattern.search(seen.text) is not None


class Stated:
    """``expression``: an expression over ``text``, ``message`` and ``state`` holds; its language
    is in ``axil_control.expression``.
    """

    examples = (
        {"expression": 'message.score >= 7 and "draft" not in text'},
        {"expression": "len(text) > 3"},
    )

    class Config(BaseModel, extra="forbid", frozen=True):
        """The expression that must hold."""

        expression: ExpressionText = Field(
            description='For example: message.score >= 7 and "draft" not in text'
        )

    def __init__(self, config: Config) -> None:
        self.config = config
        self._expression = Expression(config.expression)
        self.reads = self._expression.reads
        self.says = self._expression.says

    def __call__(self, seen: EdgeInput) -> bool:
        return self._expression.holds(seen)


class Function:
    """``function``: a condition by its registered name, without settings."""

    examples = ({"name": "true"},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The condition to use."""

        name: str = Field(
            min_length=1,
            description="A name that some distribution registers under axil.conditions.",
            json_schema_extra=refers_to("conditions"),
        )

    def __init__(self, config: Config) -> None:
        self.config = config
        # resolved now: an unknown name has to be found before the run
        self._condition = as_condition(component("conditions", config.name))
        self.says = getattr(self._condition, "says", ("?", config.name))

    def __call__(self, seen: EdgeInput) -> bool:
        return self._condition(seen)

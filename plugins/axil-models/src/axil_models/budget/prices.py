"""The expected tokens of a model call, and its cost: the figures are the user's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, cast

from axil import Problem, SpecError
from axil.plugin import RunError, did_you_mean, format_names
from axil_models.budget.listed import Listed, listed

_MILLION = 1_000_000
_PRICES = (
    *("input", "output", "cached", "cache_write"),
    *("audio_input", "audio_output", "audio_cached", "audio_hour"),
)
_AUDIO_TOKENS: Final = 10
"""The tokens of a second of audio that is heard, where it is counted in tokens."""
_LATER: Mapping[str, object] = {"later": True}
"""Of fields that digests of recorded runs have only where they are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Money for a million tokens, in whatever unit the budget is in."""

    input: float
    output: float
    cached: float | None = None
    """Input that was read from a cache; None: as other input."""
    cache_write: float | None = field(default=None, metadata=_LATER)
    """Input that was written to a cache; None: as other input."""
    audio_input: float | None = field(default=None, metadata=_LATER)
    """Input of audio; None: as other input."""
    audio_output: float | None = field(default=None, metadata=_LATER)
    """Output of audio; None: as other output."""
    audio_cached: float | None = field(default=None, metadata=_LATER)
    """Input of audio that was read from a cache; None: as other input from it."""
    audio_hour: float | None = field(default=None, metadata=_LATER)
    """An hour of audio that is heard, where a model is paid by time."""

    def __post_init__(self) -> None:
        for name in _PRICES:
            value: Any = getattr(self, name)
            is_number = isinstance(value, (int, float)) and type(value) is not bool
            if not (
                (is_number and 0 <= value < math.inf)
                or (value is None and name not in ("input", "output"))
            ):
                message = f"expected a number ≥ 0, found {value!r}."
                hint = "Write money for a million tokens."
                raise SpecError(Problem("AX128", f"price.{name}", message, hint))

    def of(
        self,
        input_tokens: int,
        output_tokens: int,
        cached_tokens: int = 0,
        written_tokens: int = 0,
        audio_tokens: tuple[int, int, int] = (0, 0, 0),
        audio_seconds: float = 0.0,
    ) -> float:
        """Return the cost of a call; ``cached_tokens`` and ``written_tokens``, those read from a
        cache and written to it, are among ``input_tokens``; so are ``audio_tokens`` (input, output,
        cached) among those. ``audio_seconds``: of audio that is heard.

        >>> Price(input=2, output=8, cached=0.5).of(1_000_000, 500_000, 400_000)
        5.4
        >>> Price(input=4, output=16, audio_input=32).of(1_000_000, 0, 0, 0, (500_000, 0, 0))
        18.0
        >>> Price(input=0, output=0, audio_hour=0.36).of(0, 0, audio_seconds=600)
        0.06
        """
        cached = min(cached_tokens, input_tokens)
        written = min(written_tokens, input_tokens - cached)
        heard, spoken, known = audio_tokens
        of_cache = self.input if self.cached is None else self.cached
        total = (
            (input_tokens - cached - written) * self.input
            + cached * of_cache
            + written * (self.input if self.cache_write is None else self.cache_write)
            + output_tokens * self.output
        )
        if self.audio_input is not None:
            total += (heard - known) * (self.audio_input - self.input)
        if self.audio_output is not None:
            total += spoken * (self.audio_output - self.output)
        if self.audio_cached is not None:
            total += known * (self.audio_cached - of_cache)
        return total / _MILLION + audio_seconds / 3600 * (self.audio_hour or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """The prices of models, by the names under which they are called."""

    models: Mapping[str, Price] = field(default_factory=dict[str, Price])
    unknown: Literal["refuse", "ignore"] | Price = "refuse"
    """A model without a price is not asked, or costs what its adapter reports, or this."""
    table: Literal["", "genai_prices"] = field(default="", metadata=_LATER)
    """The table in which models are looked up that ``models`` does not have; empty: none."""

    def __post_init__(self) -> None:
        if cast("Any", self.table) not in ("", "genai_prices"):
            message = f"expected genai_prices, found {self.table!r}."
            raise SpecError(Problem("AX128", "pricing.table", message, "Leave it out for none."))

    @staticmethod
    def read(data: Mapping[str, Any]) -> Pricing:
        """From plain data: ``{models: {name: {input, output, cached, cache_write, audio_input,
        audio_output, audio_cached, audio_hour}}, unknown: …, table: …}``.

        Raises: SpecError (AX128).
        """
        models = cast("Mapping[str, Mapping[str, Any]]", data.get("models") or {})
        unknown: Any = data.get("unknown") or "refuse"
        if isinstance(unknown, Mapping):
            unknown = Price(**cast("Mapping[str, Any]", unknown))
        prices = {name: Price(**price) for name, price in models.items()}
        return Pricing(models=prices, unknown=unknown, table=data.get("table") or "")

    def plain(self) -> dict[str, object]:
        """Return the data that ``read`` reads."""
        unknown = _plain(self.unknown) if isinstance(self.unknown, Price) else self.unknown
        models = {name: _plain(price) for name, price in self.models.items()}
        table = {"table": self.table} if self.table else {}
        return {"models": models, "unknown": unknown, **table}

    def price(self, names: Sequence[str]) -> Price | Listed | None:
        """Return the price of the first of ``names`` that has one, else of unknown models.

        Raises: ConfigError (AX301): the table is not installed.
        """
        found: Price | Listed | None = next(
            (self.models[name] for name in names if name in self.models), None
        )
        if found is None and self.table:
            found = next((each for name in names if (each := listed(name)) is not None), None)
        return self.unknown if found is None and isinstance(self.unknown, Price) else found

    def needed(self, names: Sequence[str]) -> Price | Listed | None:
        """``price``, to keep within a budget of money; None: it is to be ignored.

        Raises: UnknownPrice (AX418).
        """
        found = self.price(names)
        if found is not None or self.unknown == "ignore":
            return found
        name = next((name for name in names if name), "")
        known = f"Prices are given for: {format_names(list(self.models)) or 'none'}. "
        known += "Give it one in pricing.models, or say unknown: ignore."
        who = f'the model "{name}"' if name else "a model that has no name"
        message = f"{who} has no price, so what it costs cannot be kept within a budget."
        raise UnknownPrice(message, hint=did_you_mean(name, self.models) or known)


def _plain(price: Price) -> dict[str, float]:
    given: dict[str, float | None] = {name: getattr(price, name) for name in _PRICES}
    return {name: value for name, value in given.items() if value is not None}


class UnknownPrice(RunError, ValueError):
    """A model is to be asked within a budget of money, and nothing says what it costs."""

    id = "AX418"
    transient = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """The rule by which the tokens of a call are estimated before it is made."""

    characters_per_token: float = 4.0
    output_tokens: int = 1000
    """Taken for the reply where the call sets no ``max_tokens``."""

    def __post_init__(self) -> None:
        for name, least in (("characters_per_token", 0.01), ("output_tokens", 0)):
            value: Any = getattr(self, name)
            if type(value) not in (int, float) or not least <= value < math.inf:
                message = f"expected a number ≥ {least}, found {value!r}."
                raise SpecError(Problem("AX128", f"estimate.{name}", message))

    @staticmethod
    def read(data: Mapping[str, Any]) -> Estimator:
        """From plain data: ``{characters_per_token: …, output_tokens: …}``.

        Raises: SpecError (AX128).
        """
        return Estimator(**data)

    def plain(self) -> dict[str, object]:
        """Return the data that ``read`` reads."""
        return asdict(self)

    def tokens(self, characters: int) -> int:
        """Return tokens in a text of so many characters.

        >>> Estimator().tokens(9)
        3
        """
        return math.ceil(characters / self.characters_per_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The usage that a body is about to cause."""

    models: tuple[str, ...] = ()
    """Names of the model; several: it may be any of them, and the dearest counts."""
    input_tokens: int | None = None
    """None: as the run's estimator makes of ``characters``."""
    output_tokens: int | None = None
    """The most of the reply; None: as the estimator assumes, if there are ``characters``."""
    characters: int | Callable[[], int] | None = None
    """Of the input; a function that counts them is called only where something is limited."""
    audio_seconds: float = 0.0
    """Of audio that is heard, beside the rest of the input."""

    @property
    def audio_tokens(self) -> int:
        """The tokens of the audio."""
        return math.ceil(self.audio_seconds * _AUDIO_TOKENS)

    def tokens(self, estimator: Estimator) -> tuple[int, int]:
        """Return input and output tokens."""
        assumed = 0 if self.characters is None else estimator.output_tokens
        characters = self.characters() if callable(self.characters) else self.characters or 0
        given = self.input_tokens if self.input_tokens is not None else estimator.tokens(characters)
        given += self.audio_tokens
        return given, assumed if self.output_tokens is None else self.output_tokens

"""The expected tokens of a model call, and its cost: the figures are the user's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from axil import Problem, SpecError
from axil.plugin import RunError, did_you_mean, format_names

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Money for a million tokens, in whatever unit the budget is in."""

    input: float
    output: float
    cached: float | None = None
    """Input that was read from a cache; None: as other input."""

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value: Any = getattr(self, name)
            is_number = isinstance(value, (int, float)) and type(value) is not bool
            if not ((is_number and 0 <= value < math.inf) or (value is None and name == "cached")):
                message = f"expected a number ≥ 0, found {value!r}."
                hint = "Write money for a million tokens."
                raise SpecError(Problem("AX128", f"price.{name}", message, hint))

    def of(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost of a call; ``cached_tokens`` are among ``input_tokens``.

        >>> Price(input=2, output=8, cached=0.5).of(1_000_000, 500_000, 400_000)
        5.4
        """
        cached = min(cached_tokens, input_tokens)
        return (
            (input_tokens - cached) * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + output_tokens * self.output
        ) / _MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """The prices of models, by the names under which they are called."""

    models: Mapping[str, Price] = field(default_factory=dict[str, Price])
    unknown: Literal["refuse", "ignore"] | Price = "refuse"
    """A model without a price is not asked, or costs what its adapter reports, or this."""

    @staticmethod
    def read(data: Mapping[str, Any]) -> Pricing:
        """From plain data: ``{models: {name: {input, output, cached}}, unknown: …}``.

        Raises: SpecError (AX128).
        """
        models = cast("Mapping[str, Mapping[str, Any]]", data.get("models") or {})
        unknown: Any = data.get("unknown") or "refuse"
        if isinstance(unknown, Mapping):
            unknown = Price(**cast("Mapping[str, Any]", unknown))
        prices = {name: Price(**price) for name, price in models.items()}
        return Pricing(models=prices, unknown=unknown)

    def plain(self) -> dict[str, Any]:
        """Return the data that ``read`` reads."""
        unknown = _plain(self.unknown) if isinstance(self.unknown, Price) else self.unknown
        models = {name: _plain(price) for name, price in self.models.items()}
        return {"models": models, "unknown": unknown}

    def price(self, names: Sequence[str]) -> Price | None:
        """Return the price of the first of ``names`` that has one, else of unknown models."""
        found = next((self.models[name] for name in names if name in self.models), None)
        return self.unknown if found is None and isinstance(self.unknown, Price) else found

    def needed(self, names: Sequence[str]) -> Price | None:
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
    given = {"input": price.input, "output": price.output, "cached": price.cached}
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
            if type(value) not in (int, float) or value < least:
                message = f"expected a number ≥ {least}, found {value!r}."
                raise SpecError(Problem("AX128", f"estimate.{name}", message))

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

    def tokens(self, estimator: Estimator) -> tuple[int, int]:
        """Return input and output tokens."""
        assumed = 0 if self.characters is None else estimator.output_tokens
        characters = self.characters() if callable(self.characters) else self.characters or 0
        given = self.input_tokens if self.input_tokens is not None else estimator.tokens(characters)
        return given, assumed if self.output_tokens is None else self.output_tokens

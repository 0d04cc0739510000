"""Guards of texts: their length, what may be in them, and orders that are hidden in them."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, ClassVar, Final

from pydantic import Field, model_validator

from axil.plugin import Pattern, PatternText, compile_pattern
from axil_wrappers.guards.finding import Finding, Span
from axil_wrappers.inside import Settings


class LengthConfig(Settings):
    """Characters that a text has."""

    least: int = Field(0, ge=0, description="The least number of characters.")
    most: int | None = Field(None, ge=0, description="The greatest number; None: any.")

    @model_validator(mode="after")
    def _some(self) -> LengthConfig:
        if not self.least and self.most is None:
            raise ValueError("expected least, most, or both")
        return self


class Length:
    """``length``: a text is neither too short nor too long; masked, it is cut."""

    Config = LengthConfig
    examples: ClassVar[Any] = ({"most": 2000},)

    def __init__(self, config: LengthConfig) -> None:
        self.config = config

    def check(self, value: str, ctx: Any, /) -> Finding | None:
        """Return whether it is too long or too short."""
        size, most = len(value), self.config.most
        if size < self.config.least:
            return Finding(reason=f"it has {size} characters, fewer than {self.config.least}")
        if most is not None and size > most:
            reason = f"it has {size} characters, more than {most}"
            return Finding(reason=reason, spans=(Span(most, size, "cut"),))
        return None


class AllowListConfig(Settings):
    """Patterns that a text may, or must not, match."""

    allow: tuple[PatternText, ...] = Field(
        (), description="Regular expressions; the whole text matches one of them. Empty: any text."
    )
    deny: tuple[PatternText, ...] = Field(
        (), description="Regular expressions that match no part of the text."
    )

    @model_validator(mode="after")
    def _some(self) -> AllowListConfig:
        if not self.allow and not self.deny:
            raise ValueError("expected allow, deny, or both")
        return self


class AllowList:
    """``allow_list``: a text is one of those that are allowed, and has nothing that is denied."""

    Config = AllowListConfig
    examples: ClassVar[Any] = ({"allow": ["yes|no"]}, {"deny": ["(?i)confidential"]})

    def __init__(self, config: AllowListConfig) -> None:
        self._allow: list[Pattern] = [compile_pattern(rf"\A(?:{each})\Z") for each in config.allow]
        self._deny: list[Pattern] = [compile_pattern(each) for each in config.deny]

    def check(self, value: str, ctx: Any, /) -> Finding | None:
        """Return what is denied in it, or that it is not allowed."""
        spans = [
            Span(match.start(), match.end(), "denied")
            for pattern in self._deny
            for match in pattern.matches(value)
            if match.end() > match.start()
        ]
        if spans:
            return Finding(reason="it has what is denied", spans=tuple(spans))
        if self._allow and all(pattern.search(value) is None for pattern in self._allow):
            return Finding(reason="it is none of the texts that are allowed")
        return None


_ORDERS: Final = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "orders to forget what was said",
            r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}"
            r"\b(?:previous|prior|above|earlier|all|your|system)\b[^.\n]{0,40}"
            r"\b(?:instructions?|prompts?|rules?|messages?|context)\b",
        ),
        (
            "a request for the instructions",
            r"\b(?:reveal|show|print|repeat|output|tell me)\b[^.\n]{0,40}\b(?:system|hidden|"
            r"initial|original)\b[^.\n]{0,20}\b(?:prompt|instructions?|message)\b",
        ),
        (
            "another role",
            r"\b(?:you are now|from now on,? you(?: are|'re| will)|pretend (?:to be|you are)|"
            r"act as)\b"
            r"[^.\n]{0,60}\b(?:unrestricted|jailbroken|no (?:rules|limits|restrictions)|without "
            r"(?:rules|limits|restrictions)|developer mode|DAN)\b",
        ),
        (
            "marks of a conversation's structure",
            r"<\|(?:im_start|im_end|system|endoftext)\|>|\[/?INST\]|<</?SYS>>|"
            r"^\s*#{2,}\s*(?:system|instruction)s?\s*:?\s*$",
        ),
        (
            "an address that takes data away",
            r"!\[[^\]]{0,80}\]\(https?://[^)\s]{1,200}[?&][^)\s=]{1,40}=[^)\s]{0,200}\)",
        ),
    )
)
_UNSEEN: Final = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
_MOST_UNSEEN: Final = 8


class InjectionConfig(Settings):
    """Signs of orders to a model in a text that is data."""

    longest: int = Field(
        200_000, ge=1, description="Characters that are looked at; a longer text does not pass."
    )


class Injection:
    """``injection``: a text has signs of orders to the model that will read it.

    The signs are patterns of words, invisible characters, and marks of the structure of
    conversations. They find what is usual, in English; they are no protection by themselves.
    """

    Config = InjectionConfig
    examples: ClassVar[Any] = ({},)

    def __init__(self, config: InjectionConfig | None = None) -> None:
        self.config = config or InjectionConfig.model_validate({})

    def check(self, value: str, ctx: Any, /) -> Finding | None:
        """Return the first sign that is found."""
        if len(value) > self.config.longest:
            return Finding(reason=f"it has more than {self.config.longest} characters")
        if len(_UNSEEN.findall(value)) > _MOST_UNSEEN:
            return Finding(reason="it has invisible characters")
        plain = unicodedata.normalize("NFKC", _UNSEEN.sub("", value))
        for name, pattern in _ORDERS:
            if pattern.search(plain):
                return Finding(reason=f"it has {name}")
        return None

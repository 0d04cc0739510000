"""Regular expressions as settings, checked when the config is read."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, Field, field_validator, model_validator

from axil.plugin import Match, Pattern, PatternText, compile_pattern


class PatternConfig(BaseModel, extra="forbid", frozen=True):
    """The text that a pattern matches."""

    pattern: PatternText = Field(
        min_length=1, description="A regular expression, searched anywhere in the text."
    )
    case_sensitive: bool = Field(default=True, description="Tell upper case from lower case.")
    multiline: bool = Field(default=False, description="^ and $ match at every line.")
    dotall: bool = Field(default=False, description="A dot matches line breaks too.")

    def compiled(self) -> Pattern:
        """Return the pattern, ready to search with, within bounds of size and time."""
        return compile_pattern(
            self.pattern,
            case_sensitive=self.case_sensitive,
            multiline=self.multiline,
            dotall=self.dotall,
        )


class GroupConfig(PatternConfig, frozen=True):
    """A pattern, and the group that is taken."""

    group: int | str | None = Field(
        default=None,
        description="Number or name of the group that is taken; empty: the whole match.",
    )

    @field_validator("group", mode="before")
    @classmethod
    def _digits_are_a_number(cls, value: object) -> object:
        if isinstance(value, str):
            return int(value) if value.isdecimal() else value or None
        return value

    @model_validator(mode="after")
    def _group_is_there(self) -> Self:
        pattern, group = self.compiled(), self.group
        there = (
            group in pattern.group_names
            if isinstance(group, str)
            else 0 <= (group or 0) <= pattern.groups
        )
        if not there:
            names = ", ".join(pattern.group_names) or "none"
            raise ValueError(
                f"AX601 the pattern has no group {group!r}; "
                f"it has {pattern.groups}, with the names: {names}."
            )
        return self

    def taken(self, match: Match) -> str | None:
        """Return the text that the group matched; None: it took no part."""
        return match.group(self.group or 0)

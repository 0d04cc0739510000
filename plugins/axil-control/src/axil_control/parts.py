"""The items of a map or a tree: each message, the matches of a pattern, or the values at a JSON
path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, cast

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from axil import MISSING
from axil.plugin import Message, format_names, render, text_of
from axil_control.errors import InputError
from axil_control.expression import Key, follow
from axil_control.patterns import GroupConfig

_SECONDS = 10.0
"""The processor's time for finding the items in one text, which may be long."""


class Nothing(BaseModel, extra="forbid", frozen=True):
    """No settings."""


class ByMessage(BaseModel, extra="forbid", frozen=True):
    """Each message is one item."""

    type: Literal["message"] = Field(default="message", description="Each message is one item.")
    config: Nothing | None = Field(default=None, description="No settings.")

    def items(self, m: Message) -> list[Message]:
        """Return the items in one message."""
        return [m]


class PatternItems(GroupConfig, frozen=True):
    """The items in a text, by pattern."""

    on_no_match: Literal["pass", "empty"] = Field(
        default="pass",
        description="Where nothing matches: the message is the one item, or an empty text is.",
    )


class ByPattern(BaseModel, extra="forbid", frozen=True):
    """Each match of a pattern is one item."""

    type: Literal["regex"] = Field(description="Each match of a pattern is one item.")
    config: PatternItems = Field(description="The pattern.")

    def items(self, m: Message) -> list[Message]:
        """Return the items in one message."""
        found = [
            self.config.taken(match) or ""
            for match in self.config.compiled().matches(text_of(m), seconds=_SECONDS)
        ]
        if found:
            return [_part(m, text) for text in found]
        return [m] if self.config.on_no_match == "pass" else [_part(m, "")]


class Path(BaseModel, extra="forbid", frozen=True):
    """The place of the items in JSON."""

    json_path: str = Field(
        description="For example items, data.results or results[0].rows; empty: the whole document."
    )

    @field_validator("json_path")
    @classmethod
    def _path_can_be_read(cls, path: str) -> str:
        keys_of(path)
        return path


class ByPath(BaseModel, extra="forbid", frozen=True):
    """Each element of a list in a JSON text is one item."""

    type: Literal["json_path"] = Field(
        description="Each element of a list in a JSON text is one item."
    )
    config: Path = Field(description="Where the list is.")

    def items(self, m: Message) -> list[Message]:
        """Return the items in one message; a text that is not JSON, or has nothing at the path, is
        one item.

        Raises: InputError (AX630).
        """
        try:
            data = json.loads(text_of(m))
        except (ValueError, RecursionError):
            return [m]
        found = found_at(data, self.config.json_path)
        return [m] if found is None else [_part(m, render(item)) for item in found]


def _part(m: Message, text: str) -> Message:
    """Return a part of a message: what an edge said of the whole is not said of it."""
    return {k: v for k, v in m.items() if k not in ("keep", "preserve_role")} | {"content": text}


def _named(value: str | Mapping[str, object] | None) -> object:
    return {"type": value or "message"} if value is None or isinstance(value, str) else value


Split = Annotated[
    ByMessage | ByPattern | ByPath, Field(discriminator="type"), BeforeValidator(_named)
]
"""A split as files write it: ``{type, config}``, or the type alone."""

_STEP = re.compile(r'\.?([^.\[\]"*]+)|\[(\d+)\]|(\[\*\])|\["([^"]*)"\]')
EVERY = "*"


def keys_of(path: str) -> tuple[Key, ...]:
    """Return a JSON path as keys and positions; ``*`` is every element. Raises: ValueError.

    >>> keys_of("$.data.rows[*].name"), keys_of("a.0"), keys_of("")
    (('data', 'rows', '*', 'name'), ('a', 0), ())
    """
    rest = path.strip().removeprefix("$")
    keys: list[Key] = []
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise ValueError(
                f"AX604 {path!r} is no path: expected a name, [0] or [*], found {rest[at:]!r}."
            )
        name, index, every, quoted = step.groups()
        if every:
            keys.append(EVERY)
        elif quoted is not None:
            keys.append(quoted)
        else:
            keys.append(int(index or name) if index or name.isdecimal() else name)
        at = step.end()
    return tuple(keys)


def found_at(data: object, path: str) -> list[object] | None:
    """Return the items that a path leads to: a list's elements, or the one value; None: nothing is
    there.

    Raises: InputError (AX630): the path asks for every element of something that has none.
    """
    values, spread = [data], False
    for key in keys_of(path):
        if key == EVERY:
            values, spread = [item for value in values for item in _elements(value, path)], True
            continue
        values = [found for value in values if (found := follow(value, (key,))) is not MISSING]
    if not values and not spread:
        return None
    if spread or not isinstance(values[0], list):
        return values
    return cast("list[object]", values[0])


def _elements(value: object, path: str) -> Sequence[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    raise InputError(
        "AX630",
        f"the path {path} asks for every element of {_described(value)}.",
        "Correct the split's json_path.",
    )


def _described(value: object) -> str:
    if isinstance(value, Mapping):
        names = format_names([str(key) for key in cast("Mapping[object, object]", value)])
        return f"a mapping with {names or 'no keys'}"
    return f"{value!r:.60}"

"""Processors for edges: what is carried instead. None drops it, and the edge is dead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, Literal

from pydantic import BaseModel, Field, field_validator

from axil import MISSING
from axil.plugin import EdgeInput, bounded_text, refers_to, render, text_of
from axil_control.errors import InputError
from axil_control.expression import ROOTS, Key, follow, path_of, root_of
from axil_control.named import as_processor, component
from axil_control.patterns import GroupConfig

_MARK: Final = "{match}"


class RegexExtract:
    """``regex_extract``: the first match of a pattern, or all of them joined by line breaks."""

    examples = ({"pattern": "answer: (.*)", "group": 1},)

    class Config(GroupConfig, frozen=True):
        """The text to extract, and what happens where there is none."""

        multiple: bool = Field(
            default=False, description="Take all matches, one a line; false: the first."
        )
        template: str = Field(
            default=_MARK,
            description="What becomes of a match; "
            "{match} stands for it, empty is the match itself.",
        )
        on_no_match: Literal["pass", "default", "drop"] = Field(
            default="pass",
            description="Where nothing matches: carry what came, "
            "carry default_value, or carry nothing.",
        )
        default_value: str | None = Field(
            default=None, description="Carried where nothing matches and on_no_match is default."
        )

    def __init__(self, config: Config) -> None:
        self.config = config
        self._pattern = config.compiled()

    def __call__(self, seen: EdgeInput) -> object:
        config = self.config
        matches = (config.taken(match) for match in self._pattern.matches(seen.text))
        texts = (text for text in matches if text is not None)
        parts = (config.template or _MARK).split(_MARK)
        found = islice(texts, None if config.multiple else 1)
        if (first := next(found, None)) is not None:
            return bounded_text(_lines(parts, chain([first], found)))
        if config.on_no_match == "drop":
            return None
        return (config.default_value or "") if config.on_no_match == "default" else seen.payload


def _lines(parts: Sequence[str], texts: Iterable[str]) -> Iterator[str]:
    """Yield the pieces of a template for each text, a line each; between its parts is the text."""
    for number, text in enumerate(texts):
        yield "\n" * bool(number) + parts[0]
        for part in parts[1:]:
            yield text
            yield part


_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Template:
    """``template``: a text with places in braces: ``{text}`` is what came, ``{name}`` a field,
    ``{state.a.b}`` a field of the state; ``{{`` and ``}}`` are braces.

    A text is put in as it is and never read again, other values as JSON.
    """

    examples = ({"template": "Review this: {text}"},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The text, and what happens where a field is missing."""

        template: str = Field(description="For example: Review this for {state.audience}: {text}")
        on_missing: Literal["error", "empty"] = Field(
            default="error", description="Where a field is missing: fail, or put in nothing."
        )

        @field_validator("template")
        @classmethod
        def _places_are_paths(cls, template: str) -> str:
            _parts(template)
            return template

    def __init__(self, config: Config) -> None:
        self.config = config
        self._parts = _parts(config.template)

    def __call__(self, seen: EdgeInput) -> str:
        return bounded_text(
            part if isinstance(part, str) else self._value(seen, part) for part in self._parts
        )

    def _value(self, seen: EdgeInput, keys: tuple[Key, ...]) -> str:
        value = follow(root_of(seen, str(keys[0])), keys[1:])
        if value is not MISSING:
            return text_of(value) if keys[1:] == ("content",) else render(value)
        if self.config.on_missing == "empty":
            return ""
        path = ".".join(map(str, keys))
        raise InputError(
            "AX632",
            f"the template asks for {path}, which is not there.",
            "Write the field, or set on_missing: empty.",
        )


def _parts(template: str) -> list[str | tuple[Key, ...]]:
    """Return the text between places, and the places' paths. Raises: ValueError."""
    parts: list[str | tuple[Key, ...]] = []
    end = 0
    for place in _PLACE.finditer(template):
        parts.append(template[end : place.start()])
        end = place.end()
        if place[0] in ("{{", "}}"):
            parts.append(place[0][0])
        elif place[1] is None:
            raise ValueError(
                f"AX602 a single {place[0]!r} at character {place.start() + 1}; write "
                f"{place[0] * 2!r} for a brace."
            )
        else:
            parts.append(_keys(place[1].strip()))
    parts.append(template[end:])
    return [part for part in parts if part != ""]


def _keys(path: str) -> tuple[Key, ...]:
    try:
        keys = path_of("text" if path == "match" else path)
    except ValueError as error:
        raise ValueError(f"AX602 {{{path}}} is not the path of a field: {error}.") from error
    return keys if keys[0] in ROOTS else ("message", *keys)


class Function:
    """``function``: a processor by its registered name, without settings."""

    examples = ({"name": "uppercase_payload"},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The processor to use."""

        name: str = Field(
            min_length=1,
            description="A name that some distribution registers under axil.processors.",
            json_schema_extra=refers_to("processors"),
        )

    def __init__(self, config: Config) -> None:
        self.config = config
        # resolved now: an unknown name has to be found before the run
        self._process = as_processor(component("processors", config.name))

    def __call__(self, seen: EdgeInput) -> object:
        return self._process(seen)


class Uppercase:
    """``uppercase_payload``: the text in capitals."""

    class Config(BaseModel, extra="forbid", frozen=True):
        """``uppercase_payload`` has no settings."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    def __call__(self, seen: EdgeInput) -> str:
        return seen.text.upper()

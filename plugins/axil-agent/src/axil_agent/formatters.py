"""From what a user gives as formatters to two: one that writes prompts, one that reads replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from axil.plugin import with_article
from axil_agent.errors import WiringError
from axil_models import Formatter, component_of, content_text

if TYPE_CHECKING:
    from axil.plugin import CompileOptions

DEFAULT = ("paragraph", "json")
"""The formatters of prompts, and of replies with several fields or with types."""
_FENCE = re.compile(r"\A```[a-zA-Z]*\n(?P<body>.*)\n```\Z", re.DOTALL)


def pair_of(
    given: object, where: str = "", setting: CompileOptions | None = None
) -> tuple[Formatter, Formatter]:
    """``None``: the usual two; one: for both; ``[in, out]``.

    Raises: WiringError (AX664); and as ``resolve``.
    """
    if given is None:
        given = list(DEFAULT)
    several = list(cast("Sequence[object]", given)) if isinstance(given, (list, tuple)) else [given]
    if len(several) not in (1, 2):
        message = f"formatters has {len(several)} entries; expected one, or [in, out]."
        raise WiringError("AX664", message, where=where)
    return formatter_of(several[0], where, setting), formatter_of(several[-1], where, setting)


def formatter_of(given: Any, where: str = "", setting: CompileOptions | None = None) -> Formatter:
    """Make a formatter of an object, a name, ``{type: …}``, or one of MASFactory's kind."""
    if isinstance(given, (str, Mapping)):
        made = component_of("formatters", given, where, getattr(setting, "registry", None))
        return formatter_of(made, where)
    if isinstance(given, type):
        given = given()
    if hasattr(given, "dump") and hasattr(given, "parse"):
        return given
    if hasattr(given, "dump") or hasattr(given, "format"):
        return _Foreign(given)
    hint = "A formatter has introduction, dump(fields) and parse(text, fields)."
    message = f"{with_article(type(given).__name__)} is not a formatter."
    raise WiringError("AX664", message, hint, where)


class Prose:
    """Replies that are texts: the value of the one field that is wanted, ``message`` if none is.

    A reply that is a JSON object with this field, and nothing else, is read as that object.
    """

    introduction = ""

    def __init__(self, described: Mapping[str, str] | None = None) -> None:
        """``described``: the field that is wanted, with its description."""
        self._described = described or {}

    @property
    def request(self) -> str:
        """The words about the field for the model; empty: nothing has to be said."""
        for name, text in self._described.items():
            if text:
                return f"Answer only with the text of the field {name}: {text}"
            if name != "message":
                return f"Answer only with the text of the field {name}."
        return ""

    def dump(self, fields: Mapping[str, object], /) -> str:
        """Return the values, one below the other."""
        return "\n".join(content_text(value) for value in fields.values())

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, object]:
        """Return the text as the value of its field. Raises: ValueError: the text is empty."""
        text, inner = _bare(text)
        name = fields[0] if fields else "message"
        if inner.startswith("{") and inner.endswith("}"):
            with suppress(ValueError, RecursionError):
                found: Any = json.loads(inner, strict=False)
                if name in found:
                    return found
        if fields and not text:
            raise ValueError("it is empty.")
        return {name: text}


class OneField:
    """Replies in JSON of one field that has a type: what is no JSON object is the field's value."""

    def __init__(self, inner: Formatter) -> None:
        self._inner = inner
        self.introduction = inner.introduction
        self.dump = inner.dump

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, object]:
        """Return the object, or the whole reply as the value of its field.

        Raises: FormatError: it is meant to be a JSON object, and is none.
        """
        bare, inner = _bare(text)
        if fields and inner.startswith("["):  # objects in a list are not the object
            with suppress(ValueError, RecursionError):
                return {fields[0]: json.loads(inner)}
        try:
            return self._inner.parse(text, fields)
        except ValueError:
            if not fields or not bare or inner.startswith("{"):
                raise
        try:
            return {fields[0]: json.loads(inner)}
        except (ValueError, RecursionError):
            return {fields[0]: bare}


def _bare(text: str) -> tuple[str, str]:
    """Return a reply without thoughts, and what is in the code fence that it consists of."""
    from axil_models import without_thoughts  # formatters are loaded when they are used

    text = without_thoughts(text)
    match = _FENCE.match(text)
    return text, (match["body"] if match else text).strip()


class _Foreign:
    """A formatter with ``dump(dict) -> str``, ``format(str) -> dict``, ``agent_introducer`` and
    perhaps ``set_field_keys``.
    """

    def __init__(self, formatter: Any) -> None:
        self.formatter = formatter

    @property
    def introduction(self) -> str:
        return str(getattr(self.formatter, "agent_introducer", "") or "")

    def dump(self, fields: Mapping[str, object], /) -> str:
        return str(self.formatter.dump(dict(fields)))

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, object]:
        if hasattr(self.formatter, "set_field_keys") and fields:
            self.formatter.set_field_keys(list(fields))
        return dict(self.formatter.format(text))

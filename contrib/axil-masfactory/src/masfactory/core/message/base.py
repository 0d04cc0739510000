"""The bases of formatters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

__all__ = ["MessageFormatter", "StatefulFormatter", "StatelessFormatter"]


class MessageFormatter:
    """The base of formatters of your own: ``format(text) -> dict`` and ``dump(dict) -> text``."""

    _agent_introducer: str | None = None
    _is_input_formatter = False
    _is_output_formatter = False

    def format(self, message: str) -> dict[str, Any]:
        """Read a text as fields."""
        raise NotImplementedError

    def dump(self, message: Mapping[str, Any]) -> str:
        """Write fields as a text."""
        raise NotImplementedError

    def render_value(self, value: Any) -> str:
        """Write one value: a text as it is, anything else as JSON."""
        if isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True, default=str)

    @property
    def agent_introducer(self) -> str:
        """The instructions about the form of a model's reply."""
        return self._agent_introducer or ""

    @property
    def is_input_formatter(self) -> bool:
        """True if it writes prompts."""
        return self._is_input_formatter

    @property
    def is_output_formatter(self) -> bool:
        """True if it reads replies."""
        return self._is_output_formatter

    # -- for axil

    @property
    def introduction(self) -> str:
        """The introducer, by axil's name."""
        return self.agent_introducer

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        """Read a reply, by axil's name."""
        del fields
        return dict(self.format(text))


class StatelessFormatter(MessageFormatter):
    """The base of formatters that know nothing of the fields."""

    __node_template_scope__ = "shared"


class StatefulFormatter(MessageFormatter):
    """The base of formatters that know which fields are asked for."""

    def __init__(self) -> None:
        self._field_keys: dict[str, str] = {}

    def set_field_keys(self, field_keys: Mapping[str, str] | None) -> None:
        """Say which fields are asked for."""
        self._field_keys = dict(field_keys or {})

    @property
    def field_keys(self) -> dict[str, str]:
        """The fields that are asked for, with descriptions."""
        return self._field_keys

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        if fields:
            self.set_field_keys({name: self._field_keys.get(name, "") for name in fields})
        return dict(self.format(text))


class _Core(Protocol):
    """A formatter of axil."""

    @property
    def introduction(self) -> str: ...
    def dump(self, fields: Mapping[str, Any], /) -> str: ...
    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]: ...


class Mapped(StatefulFormatter):
    """A formatter of axil by MASFactory's name."""

    __node_template_scope__ = "shared"
    core: ClassVar[Any]

    def __init__(self) -> None:
        super().__init__()
        self._core: _Core = self.core()
        self._is_input_formatter = self._is_output_formatter = True

    @property
    def agent_introducer(self) -> str:
        return self._core.introduction

    def dump(self, message: Mapping[str, Any]) -> str:
        return self._core.dump(message)

    def format(self, message: str) -> dict[str, Any]:
        return self._core.parse(message, list(self._field_keys))

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        return self._core.parse(text, fields)

"""Schemas of states, and the strategies by which fields are updated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, create_model

import axil
from axil import MISSING
from axil.plugin import APPEND_MESSAGES

_BUILT_IN = ("overwrite", "append_messages")


class StateUpdater:
    """The strategies that schemas name: one registry for the process, which is axil's."""

    _strategies: dict[str, Callable[[Any, Any], Any]] = {}  # noqa: RUF012  # one for all

    @classmethod
    def register(
        cls, name: str
    ) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
        """Register ``function(old, new) -> updated`` under a name.

        It is called where there is something new, never with ``MISSING``. Raises: KeyError: the
        name is taken.
        """
        if cls.registered(name):
            raise KeyError(f"Strategy {name!r} already registered. Choose another name.")

        def made(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
            axil.register_strategy(name)(function)
            cls._strategies[name] = function
            return function

        return made

    @classmethod
    def get(cls, name: str) -> Callable[[Any, Any], Any]:
        """Give a strategy. Raises: KeyError: there is none of that name."""
        if name in cls._strategies:
            return cls._strategies[name]
        if name == "overwrite":
            return lambda old, new: old if new is MISSING else new
        if name == "append_messages":
            return APPEND_MESSAGES.reduce
        raise KeyError(f"Unknown strategy {name!r}. Available: {cls.list_strategies()}")

    @classmethod
    def list_strategies(cls) -> list[str]:
        """Give the names."""
        return [*_BUILT_IN, *cls._strategies]

    @classmethod
    def registered(cls, name: str) -> bool:
        """Say whether a name is taken."""
        return name in cls.list_strategies()


class _Generated(BaseModel, protected_namespaces=()):
    """The base of generated states: fields are attributes, and keys, too."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def generate_state_schema(variables: Iterable[Sequence[Any]] | None = None) -> Any:
    """Make a schema of ``(name, type, strategy)`` triples; ``messages`` is always among them.

    Nodes see its fields as attributes: ``state.n``.
    """
    made = axil.generate_state_schema(list(variables or ()))
    fields: dict[str, Any] = dict.fromkeys(made.fields, (Any, None))
    model = create_model(made.name, __base__=_Generated, **fields)
    return replace(made, view=axil.schema_of(model).view)

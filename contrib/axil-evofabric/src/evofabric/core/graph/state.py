"""Schemas of states, and the strategies by which fields are updated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Optional, Union, get_origin

from pydantic import BaseModel, create_model

from axil import MISSING
from axil.plugin import APPEND_MESSAGES, as_reducer, default_registry
from evofabric.core.typing import StateMessage

_BUILT_IN = ("overwrite", "append_messages")
_AXIL = ("append", "sum", "union", "merge", "maximum", "minimum")
_NAMED: dict[str, Any] = {
    **{each.__name__: each for each in (str, int, float, bool, bytes, list, dict, set, tuple)},
    **{"Any": Any, "Optional": Optional, "Union": Union},
    **{"List": list, "Dict": dict, "Set": set, "Tuple": tuple},
}


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
            strategy = replace(as_reducer(function, name), meet=function)
            default_registry().register("reducers", name, strategy)
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


def generate_state_schema(variables: Iterable[Sequence[Any]] | None = None) -> type[BaseModel]:
    """Make a schema of ``(name, type, strategy)`` triples; ``messages`` is always among them.

    Raises: ValueError: a name comes twice, a strategy is not known, a type is none.
    """
    fields: dict[str, Any] = {
        "messages": (Annotated[list[StateMessage], "append_messages"], ...),
    }
    for name, kind, strategy in variables or ():
        if name in fields:
            raise ValueError(f"Got a repeat name: {name}. Remove one, or rename it.")
        if not StateUpdater.registered(strategy) and strategy not in _AXIL:
            raise ValueError(
                f"Got an unregistered update strategy: {strategy}. Register it with StateUpdater."
            )
        fields[name] = (Annotated[_type_of(kind), strategy], ...)
    return create_model("State", __base__=_Generated, **fields)


class _Generated(BaseModel, protected_namespaces=(), arbitrary_types_allowed=True):
    """The base of generated states."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def _type_of(given: Any) -> Any:
    if not isinstance(given, str):
        if not isinstance(given, type) and get_origin(given) is None and given is not Any:
            raise ValueError(f"Cannot convert {given!r} to a type. Give a type, or its name.")
        return given
    try:
        return _read(ast.parse(given, mode="eval").body)
    except (SyntaxError, KeyError, TypeError) as error:
        raise ValueError(
            f"Cannot convert {given!r} to a type. Names of types are {', '.join(_NAMED)}."
        ) from error


def _read(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return _NAMED[node.id]
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _read(node.left) | _read(node.right)
    if isinstance(node, ast.Subscript):
        return _read(node.value)[_read(node.slice)]
    if isinstance(node, ast.Tuple):
        return tuple(_read(each) for each in node.elts)
    raise TypeError(type(node).__name__)

"""Sets of tools: which of them are wanted, and what a model is shown them as."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, Field

from axil import ConfigError, Problem
from axil.plugin import Effects, did_you_mean, format_names

Method = TypeVar("Method", bound=Callable[..., Any])


class ToolsConfig(BaseModel, extra="forbid", frozen=True):
    """The settings that every set of tools accepts."""

    only: tuple[str, ...] = Field(default=(), description="The tools to provide; empty: all.")
    names: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Other names under which models see the tools.",
    )
    effects: dict[str, Effects] = Field(
        default_factory=dict[str, "Effects"],
        description="What a repeated call of a tool does: none, idempotent, external.",
    )


class Tools:
    """Several tools with a shared config: public methods, described by signature and docstring.

    A method's parameter ``ctx`` is the context of the firing and is not shown to the model.
    """

    Config: ClassVar[type[ToolsConfig]] = ToolsConfig
    provides: ClassVar[tuple[str, ...]] = ()
    """The names of the methods that are tools."""

    def __init__(self, config: ToolsConfig | None = None) -> None:
        """Raises: ConfigError (AX887): a name in the config is no tool of the set."""
        self.config: Any = config or self.Config()
        for key in ("only", "names", "effects"):
            for name in getattr(self.config, key):
                if name not in self.provides:
                    known = f"Available: {format_names(self.provides, 20)}."
                    message = f'there is no tool "{name}" here.'
                    hint = did_you_mean(name, self.provides) or known
                    raise ConfigError(Problem("AX887", key, message, hint))

    async def tools(self) -> Sequence[Callable[..., Any]]:
        """Return the tools that are wanted."""
        wanted, names, effects = (
            self.config.only or self.provides,
            self.config.names,
            self.config.effects,
        )
        return [
            shown_as(getattr(self, name), names.get(name, name), effects.get(name))
            for name in wanted
        ]


def again(effects: Effects | Callable[[Mapping[str, Any]], Effects]) -> Callable[[Method], Method]:
    """Mark what calling a method again may do, after a run broke off in a call; the default is
    ``idempotent``.
    """

    def marked(method: Method) -> Method:
        # where the maker of a tool looks
        method.effects = effects  # pyright: ignore[reportFunctionMemberAccess]
        return method

    return marked


def shown_as(
    function: Callable[..., Any], name: str, effects: Effects | None = None
) -> Callable[..., Any]:
    """Return the same function under another name, and with other effects if they are said."""
    if getattr(function, "__name__", "") == name and effects is None:
        return function

    def renamed(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    async def awaited(*args: Any, **named: Any) -> Any:
        return await function(*args, **named)

    made: Any = functools.wraps(function)(
        awaited if inspect.iscoroutinefunction(function) else renamed
    )
    made.__name__ = name
    if effects is not None:
        made.effects = effects
    return made


def one_of(kind: type[Tools], name: str) -> type[Tools]:
    """Return the set that has one tool of ``kind``: a component of its own, with the same
    config.
    """
    doc = inspect.getdoc(getattr(kind, name))
    return type(name, (kind,), {"provides": (name,), "__doc__": doc, "__module__": kind.__module__})

"""Sets of tools: which of them are wanted, and what a model is shown them as."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from axil.errors import ConfigError, Problem, did_you_mean, listed


class ToolsConfig(BaseModel, extra="forbid", frozen=True):
    """What every set of tools can be told."""

    only: tuple[str, ...] = Field(default=(), description="The tools that are wanted; empty: all.")
    names: dict[str, str] = Field(default_factory=dict[str, str], description="Other names for tools, as a model is shown them.")


class Tools:
    """Several tools that share a config: public methods, each described by its signature and its docstring.

    A method's parameter ``ctx`` is the context of the firing and is not shown to the model.
    """

    Config: ClassVar[type[ToolsConfig]] = ToolsConfig
    provides: ClassVar[tuple[str, ...]] = ()
    """The names of the methods that are tools."""

    def __init__(self, config: ToolsConfig | None = None) -> None:
        """Raises: ConfigError (AX887): a name in the config is no tool of the set."""
        self.config: Any = config or self.Config()
        for key in ("only", "names"):
            for name in getattr(self.config, key):
                if name not in self.provides:
                    hint = did_you_mean(name, self.provides) or f"There are {listed(self.provides, 20)}."
                    raise ConfigError(Problem("AX887", key, f'there is no tool "{name}" here.', hint))

    async def tools(self) -> Sequence[Callable[..., Any]]:
        """The tools that are wanted."""
        wanted = self.config.only or self.provides
        return [shown_as(getattr(self, name), self.config.names.get(name, name)) for name in wanted]


def shown_as(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same function under another name."""
    if getattr(function, "__name__", "") == name:
        return function

    def renamed(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    async def awaited(*args: Any, **named: Any) -> Any:
        return await function(*args, **named)

    made: Any = functools.wraps(function)(awaited if inspect.iscoroutinefunction(function) else renamed)
    made.__name__ = name
    return made


def one_of(kind: type[Tools], name: str) -> type[Tools]:
    """The set that has one tool of ``kind``: a component of its own, with the same config."""
    doc = inspect.getdoc(getattr(kind, name))
    return type(name, (kind,), {"provides": (name,), "__doc__": doc, "__module__": kind.__module__})

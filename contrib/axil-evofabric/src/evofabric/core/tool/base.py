"""``BaseTool``: a function as a tool, and the base of managers of tools."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field, PrivateAttr

from axil.plugin import signature_of
from axil_models import tool_of
from evofabric.absent import Unsupported
from evofabric.core.factory import BaseComponent
from evofabric.core.graph import get_stream_writer
from evofabric.core.typing import TOOL_EXCLUDE_PRESERVED_PARAMS, ToolCall, ToolInnerState


def parse_callable_schema(
    function: Callable[..., Any],
    name: str | None = None,
    description: str | None = None,
    exclude_params: Sequence[str] | None = None,
    **more: Any,
) -> tuple[dict[str, Any], list[str]]:
    """Give a function for a model, as OpenAI's API has it, and which parameters were left out.

    Args:
        more: ``include_long_description``, ``include_var_positional`` and ``include_var_keyword``,
            which have no effect: all of the description is shown, and no ``*args``.
    """
    del more
    excluded = set(exclude_params or ())
    signature = signature_of(function)
    shown = [each for each in signature.parameters.values() if each.name not in excluded]
    told = tool_of(_narrowed(function, signature.replace(parameters=shown)))
    schema = {
        "type": "function",
        "function": {
            "name": name or told.name,
            "description": description or told.description,
            "parameters": dict(told.parameters),
        },
    }
    return schema, [each for each in signature.parameters if each in excluded]


def _narrowed(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """Give a function that is called as another, and shows some of its parameters only."""

    def shown(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    inner = function
    while hasattr(inner, "func"):
        inner = inner.func  # pyright: ignore[reportFunctionMemberAccess]
    shown.__name__ = getattr(inner, "__name__", type(inner).__name__)
    shown.__doc__ = inner.__doc__
    shown.__module__ = inner.__module__
    shown.__annotations__ = {
        each.name: each.annotation
        for each in signature.parameters.values()
        if each.annotation is not inspect.Parameter.empty
    }
    shown.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return shown


class BaseTool(BaseComponent):
    """A function as a tool.

    It is given its ``inner_state`` and the ``stream_writer``, if it has such parameters; a model is
    shown none of these.
    """

    func: Callable[..., Any]
    exclude_params: list[str] = Field(default_factory=list[str])
    inner_state: ToolInnerState | None = None
    name: str | None = None
    description: str | None = None
    include_long_description: bool = True
    include_var_positional: bool = True
    include_var_keyword: bool = True

    _schema: dict[str, Any] = PrivateAttr(default_factory=dict[str, Any])
    _left_out: list[str] = PrivateAttr(default_factory=list[str])

    def model_post_init(self, context: Any, /) -> None:
        del context
        left_out = [*self.exclude_params, *TOOL_EXCLUDE_PRESERVED_PARAMS]
        self._schema, self._left_out = parse_callable_schema(
            self.func, self.name, self.description, left_out
        )
        self.name = self._schema["function"]["name"]
        self.description = self._schema["function"]["description"]

    @classmethod
    def from_callable(
        cls,
        func: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        inner_state: ToolInnerState | None = None,
        exclude_params: list[str] | None = None,
    ) -> BaseTool:
        """Give a function as a tool; a tool as it is."""
        if isinstance(func, BaseTool):
            return func
        return cls(
            func=func,
            name=name,
            description=description,
            inner_state=inner_state,
            exclude_params=exclude_params or [],
        )

    async def __call__(self, **kwargs: Any) -> Any:
        """Call it."""
        if "inner_state" in self._left_out:
            kwargs["inner_state"] = self.inner_state
        if "stream_writer" in self._left_out:
            kwargs["stream_writer"] = get_stream_writer()
        positional = [
            kwargs.pop(each.name)
            for each in signature_of(self.func).parameters.values()
            if each.kind is inspect.Parameter.POSITIONAL_ONLY and each.name in kwargs
        ]
        result = self.func(*positional, **kwargs)
        return await result if inspect.isawaitable(result) else result

    def get_tool_schema(self) -> dict[str, Any]:
        """Give the tool for a model, as OpenAI's API has it."""
        return self._schema

    async def dump_state(self) -> ToolInnerState | None:
        """Give what it keeps."""
        return self.inner_state

    async def load_state(self, input_state: ToolInnerState) -> None:
        """Set what it keeps."""
        self.inner_state = input_state


class ToolManagerBase(BaseComponent, ABC):
    """The base of managers of tools."""

    async def list_tools(self, **kwargs: Any) -> Any:
        """Give the tools for a model; subclasses say how."""
        raise NotImplementedError

    async def call_tools(self, tasks: list[ToolCall]) -> Any:
        """Call tools; subclasses say how."""
        raise NotImplementedError

    def set_tool_controller(self, controller: Any) -> None:
        """Set what says which tools are active."""
        self.tool_controller = controller

    def get_tool_controller(self) -> Any:
        """Give what says which tools are active."""
        return self.tool_controller

    tool_controller: Any = None

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""

    async def reset(self) -> None:
        """Do nothing."""

    async def save_state(self, save_path: str) -> None:
        """Raise ``Unsupported``: there is no state; subclasses may have one."""
        raise Unsupported(f"{type(self).__name__}.save_state: it keeps nothing to save.")

    async def load_state(self, load_path: str) -> None:
        """Raise ``Unsupported``, as ``save_state``."""
        raise Unsupported(f"{type(self).__name__}.load_state: it keeps nothing to load.")

"""``ToolManager``: functions as tools."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

from axil_models import Tool, tool_of
from evofabric.core.typing import ToolCall, ToolCallResult


class ToolManager:
    """Functions, their descriptions for a model, and their calls."""

    def __init__(
        self, tools: Sequence[Callable[..., Any]] | None = None, timeout: float | None = None
    ) -> None:
        """``timeout``: seconds for each call; a thread is not stopped, its result is not waited
        for.
        """
        self.timeout = timeout
        self._functions: dict[str, tuple[Tool, Callable[..., Any]]] = {}
        self.add_callable_tools(tools or ())

    def add_callable_tools(self, tools: Sequence[Callable[..., Any]]) -> None:
        """Add functions. Raises: ValueError: a name is taken."""
        for function in tools:
            tool = tool_of(function)
            if tool.name in self._functions:
                raise ValueError(f"Tool {tool.name!r} already exists. Rename the function.")
            self._functions[tool.name] = (tool, function)

    def delete_tools(self, tool_names: Sequence[str]) -> None:
        """Take tools out; a name that is not there is passed over."""
        for name in tool_names:
            self._functions.pop(name, None)

    def find_tools(self, tool_names: Sequence[str]) -> list[Tool]:
        """Give the tools of these names."""
        return [self._functions[name][0] for name in tool_names if name in self._functions]

    async def list_tools(self) -> list[dict[str, Any]]:
        """Give the tools for a model, as OpenAI's API has it."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool, _ in self._functions.values()
        ]

    async def call_tools(self, tasks: Sequence[ToolCall]) -> list[ToolCallResult]:
        """Call tools side by side: a result for each, in order; a failure is a result, too."""
        return list(await asyncio.gather(*(self._called(task) for task in tasks)))

    async def _called(self, task: ToolCall) -> ToolCallResult:
        known = self._functions.get(task.function.name)
        try:
            if known is None:
                raise LookupError("Tool not found")
            given = json.loads(task.function.arguments or "{}")
            function = known[1]
            if inspect.iscoroutinefunction(function):
                call = function(**given)
            else:
                call = asyncio.to_thread(function, **given)
            content = await asyncio.wait_for(call, self.timeout)
        except Exception as error:  # noqa: BLE001  # a tool is anybody's code: the model is told
            reported = str(error) or type(error).__name__
            return ToolCallResult(tool_call_id=task.id, success=False, content=reported)
        return ToolCallResult(tool_call_id=task.id, success=True, content=content)

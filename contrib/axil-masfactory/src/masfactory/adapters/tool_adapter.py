"""``ToolAdapter``: functions as tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axil_models import Tool, tool_of


class ToolAdapter:
    """Functions and their descriptions for a model."""

    def __init__(self, tools: Sequence[Callable[..., Any]]) -> None:
        self.tools = list(tools)
        self._made: list[Tool] = [tool_of(tool) for tool in tools]

    @property
    def details(self) -> list[dict[str, Any]]:
        """The tools' descriptions for a model: names, descriptions, parameters."""
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            }
            for tool in self._made
        ]

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool. Raises: KeyError: there is none of that name."""
        called = {tool.name: given for tool, given in zip(self._made, self.tools, strict=True)}
        if name not in called:
            raise KeyError(f'there is no tool "{name}"; there are {", ".join(called) or "none"}.')
        return called[name](**arguments)

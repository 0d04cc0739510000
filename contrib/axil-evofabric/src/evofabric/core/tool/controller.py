"""``ToolController``: which tools are active."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any, Literal

from pydantic import Field

from evofabric.core.factory import BaseComponent
from evofabric.core.typing import ActiveToolPattern, DeactivateToolPattern, ToolControlPattern


class ToolController(BaseComponent):
    """Rules by the names of tools: the first that fits says whether a tool is active."""

    default_mode: Literal["activate", "deactivate"] = "activate"
    rules: list[ToolControlPattern] = Field(default_factory=list[ToolControlPattern])

    def check_tool_status(self, tool_name: str) -> bool:
        """Say whether a tool is active."""
        modes = [rule.mode for rule in self.rules if fnmatch(tool_name, rule.pattern)]
        return (modes[0] if modes else self.default_mode) == "activate"

    def filter_tool_list(self, tool_list: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give those tools of a list for a model that are active."""
        return [
            tool
            for tool in tool_list
            if self.check_tool_status(tool.get("function", tool).get("name", ""))
        ]

    def activate_tool(self, tool_name: str) -> None:
        """Make a tool active, whatever other rules say."""
        self._put(ActiveToolPattern(pattern=tool_name))

    def deactivate_tool(self, tool_name: str) -> None:
        """Make a tool inactive, whatever other rules say."""
        self._put(DeactivateToolPattern(pattern=tool_name))

    def _put(self, rule: ActiveToolPattern | DeactivateToolPattern) -> None:
        self.rules = [rule, *(each for each in self.rules if each.pattern != rule.pattern)]

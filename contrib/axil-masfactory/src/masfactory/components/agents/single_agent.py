"""``SingleAgent``: an agent without a graph."""

from __future__ import annotations

from typing import Any

from masfactory.components.agents.agent import Agent
from masfactory.errors import Unsupported


class SingleAgent(Agent):
    """An agent that is asked directly: ``invoke(fields) -> fields``."""

    root_only = True

    def __init__(self, name: str, model: Any, instructions: str | list[str] = "", **settings: Any):
        super().__init__(name, instructions, model=model, **settings)

    def invoke(self, input: dict[str, Any]) -> dict[str, Any]:  # MASFactory's name
        """Do one turn: the fields of the reply."""
        return self.step(input)

    def execute(self) -> None:
        """Raise ``Unsupported``."""
        raise Unsupported("SingleAgent.execute", "Call invoke, or put an Agent into a graph.")

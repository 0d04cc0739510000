"""``SingleAgent``: an agent without a graph."""

from __future__ import annotations

from typing import Any

from masfactory.components.agents.agent import Agent, by_position
from masfactory.errors import Unsupported

_ORDER = (
    *("prompt_template", "max_retries", "retry_delay", "retry_backoff", "tools", "memories"),
    *("retrievers", "model_settings", "role_name", "formatters", "skills", "attributes"),
    *("hide_unused_fields", "reuse_attachment_tags"),
)


class SingleAgent(Agent):
    """An agent that is asked directly: ``invoke(fields) -> fields``."""

    root_only = True

    def __init__(
        self,
        name: str,
        model: Any,
        instructions: str | list[str] = "",
        *more: Any,
        **settings: Any,
    ) -> None:
        """``more``: settings in MASFactory's order."""
        settings = by_position(_ORDER, more, settings)
        super().__init__(name, instructions, model=model, **settings)

    def invoke(self, input: dict[str, Any]) -> dict[str, Any]:  # MASFactory's name
        """Do one turn: the fields of the reply."""
        return self.step(input)

    def execute(self, outer_env: dict[str, Any] | None = None) -> None:
        """Raise ``Unsupported``."""
        raise Unsupported("SingleAgent.execute", "Call invoke, or put an Agent into a graph.")

"""``DynamicAgent``: an agent whose instructions come with the message."""

from __future__ import annotations

from typing import Any, ClassVar

from masfactory.components.agents.agent import Agent, by_position
from masfactory.components.agents.prompts import ObservingDynamicAgent

_ORDER = (
    *("tools", "formatters", "max_retries", "retry_delay", "retry_backoff", "pull_keys"),
    *("push_keys", "instruction_key", "role_name", "prompt_template", "model_settings"),
    *("memories", "retrievers", "skills", "attributes"),
)


class DynamicAgent(Agent):
    """An agent whose instructions are in the field ``instruction_key`` of its input."""

    core_class: ClassVar[Any] = ObservingDynamicAgent

    def __init__(
        self,
        name: str,
        model: Any,
        default_instructions: str = "",
        *more: Any,
        instruction_key: str = "instructions",
        **settings: Any,
    ) -> None:
        """``default_instructions``: those where the input has none. ``more``: settings in
        MASFactory's order.
        """
        settings = by_position(_ORDER, more, settings)
        instruction_key = settings.pop("instruction_key", instruction_key)
        super().__init__(name, default_instructions, model=model, **settings)
        self.instruction_key = instruction_key

    def observe(self, input_dict: dict[str, Any]) -> tuple[str, str, list[dict[str, Any]]]:
        rest = dict(input_dict)
        given = rest.pop(self.instruction_key, None)
        if given is None:
            return super().observe(rest)
        before, self._instructions = self._instructions, str(given)
        try:
            return super().observe(rest)
        finally:
            self._instructions = before

    def step(self, input_dict: dict[str, Any]) -> dict[str, Any]:
        return self._stepped(input_dict)

    def _more_settings(self) -> dict[str, Any]:
        return {"instruction_key": self.instruction_key}

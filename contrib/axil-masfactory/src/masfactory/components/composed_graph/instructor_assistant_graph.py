"""``InstructorAssistantGraph``: two agents in turn, each with its own history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from masfactory.adapters.memory import HistoryMemory
from masfactory.components.agents.agent import Agent
from masfactory.components.composed_graph.ping_pong_graph import PingPongGraph
from masfactory.core.node import Keys


class InstructorAssistantGraph(PingPongGraph):
    """An instructor and an assistant in turn, each with its own history.

    Both see the attributes that the graph pulls and the ``phase_instructions``, and write those
    that it pushes.
    """

    def __init__(
        self,
        name: str,
        instructor_role_name: str,
        instructor_instructions: str | list[str],
        assistant_role_name: str,
        assistant_instructions: str | list[str],
        phase_instructions: str | list[str],
        model: Any,
        max_turns: int,
        instructor_prompt_template: Any = None,
        assistant_prompt_template: Any = None,
        assistant_in_keys: Keys | None = None,
        assistant_out_keys: Keys | None = None,
        instructor_in_keys: Keys | None = None,
        instructor_out_keys: Keys | None = None,
        instructor_first: bool = True,
        instructor_memories: Sequence[Any] | Any | None = None,
        assistant_memories: Sequence[Any] | Any | None = None,
        instructor_tools: Sequence[Callable[..., Any]] | None = None,
        assistant_tools: Sequence[Callable[..., Any]] | None = None,
        terminate_condition_prompt: str | None = None,
        terminate_condition_function: Callable[..., Any] | None = None,
        formatters: Any = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        agent_model_settings: Mapping[str, Any] | None = None,
    ) -> None:
        phase = (
            phase_instructions
            if isinstance(phase_instructions, str)
            else "\n".join(phase_instructions)
        )
        seen = {**dict(pull_keys or {}), **({"phase_instructions": ""} if phase else {})}
        common: dict[str, Any] = {
            "cls": Agent,
            "model": model,
            "formatters": formatters,
            "model_settings": agent_model_settings,
            "pull_keys": seen,
            "push_keys": dict(push_keys or {}),
        }
        self._histories = (HistoryMemory(), HistoryMemory())
        super().__init__(
            name,
            {
                **common,
                "name": f"{name}_instructor",
                "role_name": instructor_role_name,
                "instructions": instructor_instructions,
                "prompt_template": instructor_prompt_template,
                "memories": [*_listed(instructor_memories), self._histories[0]],
                "tools": instructor_tools,
            },
            {
                **common,
                "name": f"{name}_assistant",
                "role_name": assistant_role_name,
                "instructions": assistant_instructions,
                "prompt_template": assistant_prompt_template,
                "memories": [*_listed(assistant_memories), self._histories[1]],
                "tools": assistant_tools,
            },
            instructor_in_keys,
            instructor_out_keys,
            assistant_in_keys,
            assistant_out_keys,
            instructor_first,
            max_turns,
            terminate_condition_function,
            terminate_condition_prompt,
            pull_keys,
            push_keys,
            {**dict(attributes or {}), **({"phase_instructions": phase} if phase else {})},
            model,
        )

    @property
    def instructor_chat_history(self) -> HistoryMemory:
        """The conversation of the instructor."""
        return self._histories[0]

    @property
    def assistant_chat_history(self) -> HistoryMemory:
        """The conversation of the assistant."""
        return self._histories[1]


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(cast("Sequence[Any]", given)) if isinstance(given, (list, tuple)) else [given]

"""``SingleAgent``: an agent without a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from axil.sync import run_sync
from axil_agent.agent import Agent
from axil_agent.alone import Alone
from axil_agent.prompt import Wiring
from axil_agent.sharing import shared_values
from axil_agent.values import plain


class SingleAgent(Agent):
    """An agent that is asked directly: ``invoke(fields) -> fields``. It cannot be inside a graph; there, use ``Agent``.

    Invocations share nothing, and any number may be under way; those that name a ``thread`` go on with its conversation.
    """

    root_only = True

    def __init__(
        self,
        *args: Any,
        name: str = "agent",
        output_keys: Mapping[str, str] | Sequence[str] | None = None,
        workspace: str | Path | None = None,
        **settings: Any,
    ) -> None:
        """``output_keys``: fields that a reply has to have, with descriptions. ``workspace``: where the paths of images and files begin."""
        super().__init__(*args, name=name, **settings)
        self._workspace = None if workspace is None else Path(workspace)
        keys = dict(output_keys) if isinstance(output_keys, Mapping) else dict.fromkeys(output_keys or (), "")
        self._wiring = Wiring(node=name, needed=keys)
        self._threads: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}

    def invoke(self, inputs: Mapping[str, Any], attributes: Mapping[str, Any] | None = None, *, thread: str = "") -> dict[str, Any]:
        """The sync door: the fields of the reply. Raises: as ``run``; RuntimeError: an event loop is running."""

        async def once() -> dict[str, Any]:
            try:
                return await self.run(inputs, attributes, thread=thread)
            finally:
                await self._model.close()  # its connections cannot outlive this loop

        return cast("dict[str, Any]", run_sync(once()))

    async def run(
        self,
        inputs: Mapping[str, Any],
        attributes: Mapping[str, Any] | None = None,
        *,
        thread: str = "",
        on_chunk: Callable[[Any], None] | None = None,
    ) -> dict[str, Any]:
        """One turn. Connections of its model are kept until ``close``.

        Args:
            thread: the conversation that this turn belongs to; kept in this object. Empty: none.
            on_chunk: is called with what is streamed: texts, tool calls, results.
        Raises: ReplyError, TurnLimit, ContextError, PromptError, WiringError; and what the model raises.
        """
        self.check(self._wiring)
        local, state = self._threads.get(thread, ({}, {}))
        stage = Alone(plain(local), on_chunk, dict(state))
        stage.workspace, stage.thread = self._workspace, thread
        fields = await self.step(inputs, attributes or {}, stage, self._wiring)
        shared = shared_values(stage)
        if thread:
            self._threads[thread] = (stage.local, {**state, **shared})
        return fields

    def forget(self, thread: str) -> None:
        """End a conversation."""
        self._threads.pop(thread, None)

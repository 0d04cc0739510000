"""The model of an agent with hooks: it calls them with replies and results of tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import axil_models
from masfactory.adapters.model.base import answer_of, reply_of

__all__ = ["ObservedModel"]


class ObservedModel:
    """A model around another one; calls ``THINK_COMPLETED`` and ``ACT_COMPLETED``."""

    def __init__(self, agent: Any, model: Any) -> None:
        self.agent, self.model = agent, model

    async def reply(self, request: axil_models.Request, emit: Any, /) -> axil_models.Reply:
        """Answer, and call the hooks: results of tools come with the request after them."""
        hooks, hook = self.agent.hooks, self.agent.Hook
        results: list[Mapping[str, Any]] = []
        for message in reversed(request.messages):
            if message.get("role") != "tool":
                break
            results.insert(0, message)
        if results:
            calls: Any = request.messages[-len(results) - 1].get("tool_calls") or []
            hooks.dispatch(hook.ACT_COMPLETED, self.agent, calls, results)
        reply = await self._asked(request, emit)
        messages = [dict(message) for message in request.messages]
        hooks.dispatch(hook.THINK_COMPLETED, self.agent, answer_of(reply), messages)
        return reply

    async def _asked(self, request: axil_models.Request, emit: Any) -> axil_models.Reply:
        if callable(getattr(self.model, "reply", None)):
            return await self.model.reply(request, emit)
        details = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            }
            for tool in request.tools
        ]
        messages = [dict(message) for message in request.messages]
        settings = dict(request.settings) or None
        answer = await asyncio.to_thread(
            self.model.invoke, messages, details or None, settings=settings
        )
        return reply_of(answer)

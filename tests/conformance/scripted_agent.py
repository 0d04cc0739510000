"""A node type ``agent`` whose model follows a script: enough of an agent to turn DevAll's recorded cycles.

It does what the recordings show of messages and of prompt mode, and nothing else: no tools, memories, thinking or skills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from axil import Context
from axil.inputs import text_of

Messages = Sequence[dict[str, Any]]


class ModelFailed(Exception):
    """The scripted model answered with an error."""


@dataclass
class Script:
    """Rules of a recording: the first that matches answers, its replies in order, the last again and again."""

    rules: list[dict[str, Any]]
    default: Any = "OK"
    calls: int = 0
    used: dict[int, int] = field(default_factory=dict[int, int])

    def reply(self, model: str, system: str, said: list[str]) -> Any:
        self.calls += 1
        for number, rule in enumerate(self.rules):
            match = rule.get("match", {})
            users = "\n".join(said)
            fits = match.get("system_contains", "") in system and match.get("user_contains", "") in users
            if fits and match.get("model", model) == model:
                turn = self.used.get(number, 0)
                self.used[number] = turn + 1
                return rule["replies"][min(turn, len(rule["replies"]) - 1)]
        return self.default


class ScriptedAgent:
    """One call of the scripted model, which is what the run's ``deps`` hold."""

    class Config(BaseModel, extra="allow", frozen=True):
        """What of an agent's config matters here."""

        name: str = ""
        role: str = ""
        input_mode: str = "messages"

    def __init__(self, config: Config) -> None:
        self.config = config

    async def run(self, messages: list[dict[str, Any]], ctx: Context) -> str:
        config = self.config
        if config.input_mode == "prompt":
            said = ["\n\n".join(f"=== INPUT FROM {m.get('source') or 'TASK'} ({m['role']}) ===\n\n{text_of(m)}" for m in messages)]
        else:
            said = [text_of(m) for m in messages if m["role"] == "user"]
        reply = ctx.deps.reply(config.name, config.role, said)
        if isinstance(reply, str):
            return reply
        if "status" in reply:
            raise ModelFailed(f"Error code: {reply['status']} - scripted failure")
        if reply.get("echo_user"):
            return "(" + "+".join(said) + ")"
        await ctx.sleep(reply.get("delay", 0))
        return reply["text"]

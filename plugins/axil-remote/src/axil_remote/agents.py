"""``a2a_agent``: an agent elsewhere that speaks A2A, as a tool and as a node.

What it asks while it works is asked of a person, as a question of the run. Each message is a step:
a resumed run does not send it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack, cast

from axil import ConfigError, Context, Problem
from axil.plugin import Message, Secret, decode_config, message
from axil_models import (
    Part,
    Request,
    Tool,
    ToolError,
    content_text,
    parts_of,
    text_part,
    with_files,
)
from axil_remote.config import A2AConfig, A2AToolConfig
from axil_remote.exchange import said_by

if TYPE_CHECKING:
    from axil_remote.keywords import A2ANodeKeywords, A2AToolKeywords

_PARAMETERS: Final = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What it is to do, in full."}},
    "required": ["message"],
}
_QUESTIONS: Final = 20
"""The most questions of one task."""


class _Remote:
    """An agent elsewhere."""

    def __init__(self, config: A2AConfig) -> None:
        self.config: Any = config

    def _headers(self) -> dict[str, str]:
        config, where = self.config, f"the agent at {self.config.url}"
        given: Mapping[str, Secret] = config.headers
        headers = {
            name: secret.resolve(None, f"{where}, {name}").get_secret_value()
            for name, secret in given.items()
        }
        if config.token is not None:
            token = config.token.resolve(None, f"{where}, token").get_secret_value()
            headers["Authorization"] = f"Bearer {token}"
        return headers

    async def answer(
        self, content: Any, ctx: Any, before: Mapping[str, str]
    ) -> tuple[list[Part], str]:
        """Return the parts of the answer, and the context of the conversation.

        Raises: ToolError (AX984): it failed, refused, or wants a login.
        """
        said: dict[str, Any] = dict(before)
        asked = Request(messages=[{"role": "user", "content": content}])
        for _ in range(_QUESTIONS):
            ready = await with_files(asked, getattr(ctx, "workspace", None))
            parts = parts_of(ready.messages[0]["content"])
            said = await self._step(parts, said, ctx)
            if said["state"] != "input_required":
                break
            reply = await ctx.ask(_text(said["parts"]) or "?")
            asked = Request(messages=[{"role": "user", "content": content_text(reply)}])
        if said["state"] != "completed":
            why = f": {text}" if (text := _text(said["parts"])) else ""
            state = said["state"].replace("_", " ")
            raise ToolError("AX984", f"the task of the agent at {self.config.url} {state}{why}")
        return said["parts"], said["context"]

    async def _step(self, parts: list[Part], said: Mapping[str, str], ctx: Any) -> dict[str, Any]:
        before = {key: said.get(key) or "" for key in ("task", "context")}
        before["task"] = before["task"] if said.get("state") == "input_required" else ""

        # kept, so that a message that is sent again after a kill can be known as the same
        id: Any = await ctx.step("a2a:id", _new_id)

        async def call() -> dict[str, Any]:
            return await said_by(self.config, self._headers(), parts, str(id), before)

        result: Any = await ctx.step(
            "a2a",
            call,
            request={"url": self.config.url, "parts": parts, **before},
            effects=self.config.effects,
        )
        if isinstance(result, Mapping) and "state" in result:
            return cast("dict[str, Any]", result)
        # a person has said what came of a message that broke off
        return {"state": "completed", "parts": [text_part(content_text(result))], "context": ""}


async def _new_id() -> str:
    import uuid

    return str(uuid.uuid4())


def _text(parts: Sequence[Part]) -> str:
    return content_text(list(parts)) if parts else ""


class A2ATool(_Remote):
    """``a2a_agent`` among tools: an agent elsewhere, which is sent one message."""

    examples = ({"url": "https://agents.example.org/clerk", "name": "clerk", "description": "…"},)
    kit_excuse = "it asks a server; the tests of axil-remote give it one"

    Config = A2AToolConfig

    def __init__(
        self, config: A2AToolConfig | None = None, **settings: Unpack[A2AToolKeywords]
    ) -> None:
        """``settings``: those of ``A2AToolConfig``. Raises: ConfigError."""
        super().__init__(config or decode_config(A2AToolConfig, settings, "A2ATool"))

    async def tools(self) -> Sequence[Tool]:
        """Return the tool."""

        async def ask(ctx: Any, **given: Any) -> Any:
            said = str(given.get("message") or "")
            parts, _ = await self.answer(said, ctx, {})
            return _content(parts)

        return [
            Tool(
                name=self.config.name,
                description=self.config.description,
                parameters=_PARAMETERS,
                call=ask,
                wants_ctx=True,
                recorded=False,  # its steps are recorded
            )
        ]


class A2ANode(_Remote):
    """``a2a_agent`` among nodes: an agent elsewhere. Its firings of one run, and of the turns of
    one thread, are one conversation.
    """

    examples = ({"url": "https://agents.example.org/clerk"},)
    kit_excuse = "it asks a server; the tests of axil-remote give it one"

    Config = A2AConfig

    def __init__(
        self, config: A2AConfig | str | None = None, **settings: Unpack[A2ANodeKeywords]
    ) -> None:
        """``settings``: those of ``A2AConfig``; a text is the ``url``. Raises: ConfigError."""
        if isinstance(config, str):
            settings["url"] = config
        made = config if isinstance(config, A2AConfig) else None
        super().__init__(made or decode_config(A2AConfig, settings, "A2ANode"))

    async def run(self, messages: list[Message], ctx: Context) -> list[Message]:
        """Return its answer to all that came. Raises: ToolError (AX984): it failed."""
        content: list[Part] = []
        for each in messages:
            content += parts_of(each.get("content"))
        if not content:
            where, hint = f'node "{ctx.activation.path}"', "Let an edge carry a message."
            raise ConfigError(Problem("AX984", where, "there is nothing to send.", hint))
        kept = ctx.kept
        parts, context = await self.answer(content, ctx, {"context": kept.get("context") or ""})
        kept["context"] = context
        return [message(_content(parts), role="assistant")]


def _content(parts: list[Part]) -> Any:
    """Return parts as a content: a text if they are nothing else."""
    if all(part["type"] == "text" for part in parts):
        return re.sub(r"\n{3,}", "\n\n", _text(parts))
    return parts

"""``devall.agent``: an agent as DevAll's files write it.

Its role is the system message, inputs are the others, and the reply is an assistant's message. What
memories know is put before the last message of the user. A failing model fails the node.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from axil import AxilError, ConfigError, Out, Problem
from axil.plugin import (
    Body,
    BodyRules,
    Message,
    Task,
    as_body,
    default_registry,
    message,
    text_of,
)
from axil_agent import Agent, Verbatim, Wiring, converse_with_thinking
from axil_devall.config import AgentConfig
from axil_devall.memory import Memories, memories_of
from axil_devall.reflection import Reflection
from axil_devall.skills import SkillSet, found_skills
from axil_devall.stores import Surroundings, project_of
from axil_devall.tooling import Toolbox
from axil_files import is_version_0
from axil_models import ContextQuery, checked_settings

TURNS = 50
"""The number of rounds with tools that a model has, without ``params.tool_loop_limit``."""


class AgentNode:
    """``devall.agent``: a model with a role, tools, memories, thinking and skills."""

    examples = ({"provider": "openai", "name": "a-model", "role": "Be brief."},)
    kit_excuse = "its model is an outside service; the tests of axil-devall use another model"

    Config = AgentConfig

    def __init__(self, config: AgentConfig) -> None:
        self.config = config
        self._setting: Any = None
        self._parts: _Parts | None = None

    def bind(self, out_edges: Sequence[Any], setting: Any = None) -> None:
        """Called when the plan is made."""
        self._setting = setting

    def adapted(self, rules: BodyRules) -> Body:
        """Return the body. Raises: ConfigError: all that the agent names and that cannot be had."""
        parts = self._parts = self._made(rules.node)
        return as_body(_Firing(parts, rules.node, self.config).run, rules)

    def _made(self, node: str) -> _Parts:
        config, extras = self.config, dict(getattr(self._setting, "extras", None) or {})
        known = getattr(self._setting, "registry", None) or default_registry()
        folders = [str(extras.get(key) or "") for key in ("folder", "root")]
        around = Surroundings(known, folders[1] or folders[0], is_version_0(extras.get("version")))
        problems: list[Problem] = []

        def attempt(make: Callable[[], Any]) -> Any:
            try:
                return make()
            except AxilError as error:
                found = getattr(error, "problems", None) or (getattr(error, "problem", None),)
                problems.extend(_inside(problem) for problem in found if problem is not None)
            return None

        skills = None
        if config.skills is not None and config.skills.enabled:
            names = [skill.name for skill in config.skills.allow]
            places = [*folders, project_of(os.path.realpath(folders[1] or folders[0] or ".")), "."]
            skills = attempt(lambda: found_skills(names, places, known, "skills"))
        tools = attempt(lambda: Toolbox(config.tooling, known, skills))
        memories = attempt(lambda: memories_of(config.memories, extras.get("memory") or (), around))
        settings, turns = cast(
            "tuple[dict[str, Any], int]", attempt(lambda: _settings(config.params)) or ({}, TURNS)
        )
        given: dict[str, Any] = {
            "model": _model(config),
            "model_settings": settings,
            "max_turns": turns,
            "name": node,
        }
        agent = Agent(
            instructions=Verbatim(config.role or ""),
            tools=[] if not tools or tools.is_empty else [tools],
            **given,
        )
        agent.bind([], self._setting)
        attempt(lambda: agent.check(Wiring(node=node)))
        if problems:
            raise ConfigError(problems)
        return _Parts(agent, tools, memories, skills)

    async def close(self) -> None:
        """Close what was opened for the model and for tools."""
        if self._parts is not None:
            try:
                await self._parts.tools.close()
            finally:
                await self._parts.agent.close()


def _inside(problem: Problem) -> Problem:
    """Move the problem's key into its message; the reader of the file adds the node's place."""
    text = f"{problem.where}: {problem.message}" if problem.where else problem.message
    return replace(problem, where="", message=text)


@dataclass(frozen=True, slots=True)
class _Parts:
    agent: Agent
    tools: Toolbox
    memories: Memories
    skills: SkillSet | None


def _model(config: AgentConfig) -> dict[str, Any]:
    """Return the model, as an agent takes it."""
    given = {"name": config.name, "base_url": config.base_url or None, "api_key": config.api_key}
    kind = config.provider
    if kind == "openai" and config.params.get("protocol") == "responses":
        kind = "openai_responses"
    settings = {key: value for key, value in given.items() if value is not None}
    return {"type": kind, "config": settings}


def _settings(params: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the model's settings among ``params``, and the limit of turns with tools.

    Raises: ConfigError (AX655).
    """
    rest = {name: value for name, value in params.items() if name != "protocol"}
    turns = rest.pop("tool_loop_limit", None)
    if "max_output_tokens" in rest:
        rest.setdefault("max_tokens", rest.pop("max_output_tokens"))
    turns = turns if isinstance(turns, int) and turns > 0 else TURNS
    return checked_settings(rest, "params"), turns


class _Firing:
    """The agent at its place in a graph."""

    def __init__(self, parts: _Parts, node: str, config: AgentConfig) -> None:
        self.parts, self.node, self.config = parts, node, config

    async def run(self, messages: list[Message], ctx: Any, task: Task) -> Out:
        agent, memories = self.parts.agent, self.parts.memories
        given = [_unmarked(m) for m in messages] or [message("")]
        if self.config.input_mode == "prompt":
            given = [message(_blocks(messages))]
        asked = "\n".join(words(m) for m in messages if m.get("role") == "user")
        query = ContextQuery(
            asked, {"message": asked}, {}, self.node, ctx.activation.path, messages=given
        )
        given = self._with_memories(given, await memories.read("gen", asked, task.state, ctx))
        options = await agent.chat_options(Wiring(node=self.node), query, ctx, formatter=_Text())
        thinking: list[Reflection] = []
        if self.config.thinking is not None:
            known = await memories.read("post_gen_thinking", asked, task.state, ctx)
            thinking = [Reflection(self.config.thinking.config.reflection_prompt, known)]
        answer = await converse_with_thinking([*self._system(), *given], options, ctx, thinking)
        note = {"text": answer.text, "about": asked, "by": self.node}
        return Out([message(answer.text, "assistant")], await memories.add(note, ctx))

    def _system(self) -> list[Message]:
        """Return the role and the introduction of skills."""
        skills = self.parts.skills
        parts = [self.config.role or "", skills.introduction if skills is not None else ""]
        text = "\n\n".join(part for part in parts if part)
        return [message(text, "system")] if text else []

    def _with_memories(self, given: list[Message], known: str) -> list[Message]:
        """Return the messages, with what is remembered before the last of the user's."""
        if not known:
            return given
        if self.config.input_mode == "prompt":
            content: Any = given[0]["content"]
            if isinstance(content, list):
                return [message([{"type": "text", "text": known}, *content])]
            return [message(f"{known}\n\n{content}")]
        users = [at for at, m in enumerate(given) if m.get("role") == "user"]
        last = users[-1] if users else len(given)
        return [*given[:last], message(known), *given[last:]]


def _unmarked(given: Message) -> Message:
    """Return a message without axil's own marks."""
    return {
        name: given[name]
        for name in ("role", "content", "name", "tool_call_id", "tool_calls", "extra")
        if name in given
    }


def words(given: Message) -> str:
    """Return the text of a message; an image or a file in it is named.

    >>> words({"content": [{"type": "text", "text": "Look:"}, {"type": "image", "url": "…"}]})
    'Look:\\n[image]'
    """
    content: Any = given.get("content")
    if not _has_parts(content):
        return text_of(given)
    parts = cast("list[dict[str, Any]]", content)
    return "\n".join(
        str(part.get("text") or "") if part.get("type") == "text" else f"[{part.get('type')}]"
        for part in parts
    )


def _has_parts(content: Any) -> bool:
    return isinstance(content, list) and all(
        isinstance(part, dict) and "type" in part for part in cast("list[Any]", content)
    )


def _blocks(messages: Sequence[Message]) -> Any:
    """Return all messages as one text; images and files in them come behind it."""
    text = "\n\n".join(
        f"=== INPUT FROM {m.get('source') or 'TASK'} ({m.get('role', 'user')}) ===\n\n{words(m)}"
        for m in messages
    )
    parts = [
        part
        for m in messages
        if _has_parts(m.get("content"))
        for part in m["content"]
        if part["type"] != "text"
    ]
    return [{"type": "text", "text": text}, *parts] if parts else text


class _Text:
    """A formatter that takes a reply's text as it is."""

    introduction = ""

    def dump(self, fields: Any, /) -> str:
        return "\n".join(text_of(value) for value in fields.values())

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        return {"message": text}

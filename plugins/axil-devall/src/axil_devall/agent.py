"""``devall.agent``: an agent as DevAll's files write it.

Its role is the system's message, what came in are the others, and the reply is an assistant's
message. What memories know is put before the last of the user's messages. A model that fails fails
the node.
"""

from __future__ import annotations

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
from axil_devall.reflection import LookingBack
from axil_devall.skills import SkillSet, found_skills
from axil_devall.stores import Surroundings
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

        wanted = config.skills if config.skills is not None and config.skills.enabled else None
        skills = (
            attempt(
                lambda: found_skills(
                    [s.name for s in wanted.allow], [*folders, "."], known, "skills"
                )
            )
            if wanted
            else None
        )
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
    """Put the problem's key into its message; the reader of the file adds the node's place."""
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
    kind = (
        "openai_responses"
        if config.provider == "openai" and config.params.get("protocol") == "responses"
        else config.provider
    )
    return {
        "type": kind,
        "config": {key: value for key, value in given.items() if value is not None},
    }


def _settings(params: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the model's settings among ``params``, and the limit of turns with tools.

    Raises: ConfigError (AX655).
    """
    rest = {
        name: value for name, value in params.items() if name not in ("tool_loop_limit", "protocol")
    }
    if "max_output_tokens" in rest:
        rest.setdefault("max_tokens", rest.pop("max_output_tokens"))
    turns = params.get("tool_loop_limit")
    return checked_settings(rest, "params"), turns if isinstance(
        turns, int
    ) and turns > 0 else TURNS


class _Firing:
    """The agent at its place in a graph."""

    def __init__(self, parts: _Parts, node: str, config: AgentConfig) -> None:
        self.parts, self.node, self.config = parts, node, config

    async def run(self, messages: list[Message], ctx: Any, task: Task) -> Out:
        agent, memories = self.parts.agent, self.parts.memories
        heard = (
            [_unmarked(m) for m in messages]
            if self.config.input_mode == "messages"
            else [message(_blocks(messages))]
        )
        asked = "\n".join(words(m) for m in messages if m.get("role") == "user")
        query = ContextQuery(
            asked, {"message": asked}, {}, self.node, ctx.activation.path, messages=heard
        )
        report = self._reminded(heard, await memories.read("gen", asked, task.state, ctx))
        options = await agent.chat_options(Wiring(node=self.node), query, ctx, formatter=_Text())
        thinking = (
            [] if self.config.thinking is None else [await self._looking_back(asked, ctx, task)]
        )
        answer = await converse_with_thinking([*self._system(), *report], options, ctx, thinking)
        note = {"text": answer.text, "about": asked, "by": self.node}
        return Out([message(answer.text, "assistant")], await memories.tell(note, ctx))

    def _system(self) -> list[Message]:
        """Return the role, and what is said of skills."""
        skills = self.parts.skills
        parts = [self.config.role or "", skills.introduction if skills is not None else ""]
        text = "\n\n".join(part for part in parts if part)
        return [message(text, "system")] if text else []

    async def _looking_back(self, asked: str, ctx: Any, task: Task) -> LookingBack:
        assert self.config.thinking is not None
        known = await self.parts.memories.read("post_gen_thinking", asked, task.state, ctx)
        return LookingBack(self.config.thinking.config.reflection_prompt, known)

    def _reminded(self, heard: list[Message], known: str) -> list[Message]:
        """Return the messages, with what is remembered before the last of the user's; in one
        message, where all is one.
        """
        if not known:
            return heard
        if self.config.input_mode == "prompt":
            content: Any = heard[0]["content"]
            before: Any = (
                [{"type": "text", "text": known}, *content]
                if isinstance(content, list)
                else f"{known}\n\n{content}"
            )
            return [message(before)]
        last = max(
            (at for at, m in enumerate(heard) if m.get("role") == "user"), default=len(heard)
        )
        return [*heard[:last], message(known), *heard[last:]]


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
    """The reply is what it says."""

    introduction = ""

    def dump(self, fields: Any, /) -> str:
        return "\n".join(text_of(value) for value in fields.values())

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        return {"message": text}

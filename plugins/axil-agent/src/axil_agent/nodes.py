"""Agents in workflow files: ``agent``, ``dynamic_agent``, ``agent_switch`` and ``human_form``.

An ``agent`` of a file works on messages: its instructions are the system's message, and the reply
is an assistant's. With a ``prompt_template`` or ``output`` fields it works on fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from axil import Context, Out
from axil.plugin import (
    Body,
    BodyRules,
    Message,
    Secret,
    Task,
    as_body,
    format_names,
    make_component,
    message,
    refers_to,
)
from axil_agent.agent import Agent, DynamicAgent
from axil_agent.citations import CITATIONS, noting_sources
from axil_agent.commands import with_command
from axil_agent.context import ContextPolicy, passive_context
from axil_agent.delegate import NodeTool
from axil_agent.errors import PromptError
from axil_agent.formatters import DEFAULT, Prose
from axil_agent.history import HistoryMemory
from axil_agent.human import HumanNode
from axil_agent.outputs import Output, OutputField, described, output_type
from axil_agent.prompt import Wiring
from axil_agent.sharing import shared_delta
from axil_agent.speakers import from_speaker, not_yet_sent, since, unmarked, visible_to
from axil_agent.switch import AgentSwitch
from axil_agent.template import Verbatim, places
from axil_agent.thinking import Reflection
from axil_agent.uses import Parts
from axil_files import parse_duration
from axil_models import (
    Approval,
    ContextQuery,
    ModelLike,
    PartNumbers,
    checked_settings,
    content_text,
    is_content,
    is_part,
    is_toolset,
    name_and_config,
    text_part,
    tool_of,
    tools_by_name,
    with_approval,
)

if TYPE_CHECKING:
    from axil.plugin import CompileOptions

NamedComponent = str | dict[str, Any]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Modelled(_Settings):
    model: NamedComponent | None = Field(
        None,
        description="The model: the name of an adapter, or {type: …} with its settings.",
        json_schema_extra=refers_to("models"),
    )
    provider: str | None = Field(
        None,
        description="The same as DevAll files write it: the adapter's name …",
        json_schema_extra=refers_to("models", default=["openai"], beside="name"),
    )
    name: str | None = Field(None, description="… the model's name …")
    base_url: str | None = Field(None, description="… where it is …")
    api_key: Secret | None = Field(
        None,
        description="… and its key: {env: NAME} or ${NAME}.",
        json_schema_extra={"x-axil-usual": True},
    )

    def chosen(self) -> ModelLike | None:
        """Return the model, as ``model_of`` takes it; None: none was named."""
        if self.model is not None:
            return self.model
        if self.provider is None and self.name is None:
            return None
        given = {"name": self.name, "base_url": self.base_url or None, "api_key": self.api_key}
        return {
            "type": self.provider or "openai",
            "config": {key: value for key, value in given.items() if value is not None},
        }


class AgentConfig(_Modelled):
    """The settings of an agent in a file."""

    instructions: str | list[str] = Field("", description="The system prompt.")
    role: str | None = Field(
        None, description="The same, as DevAll files write it: braces in it are text."
    )
    prompt_template: str | list[str] | dict[str, str] | None = Field(
        None, description="The message, with places for fields: {topic}."
    )
    output: Output = Field(
        default_factory=dict[str, "str | OutputField"],
        description="Fields that a reply has to have: descriptions, or {type, description, enum, "
        "…}; or the import path of a type or a function.",
    )
    formatters: NamedComponent | list[NamedComponent] | None = Field(
        None,
        description="One, or [in, out]; usual: paragraph in; out prose for one field, else json.",
        json_schema_extra=refers_to("formatters", default=DEFAULT),
    )
    tools: list[NamedComponent] = Field(
        default_factory=list[NamedComponent],
        description="Names of installed tools, or {type: …} with their settings.",
        json_schema_extra=refers_to("tools"),
    )
    approve: list[str] = Field(
        default_factory=list[str],
        description="Tools whose calls a person has to allow first; '*': all.",
    )
    approve_within: float | str | None = Field(
        None,
        description="The time for an answer: "
        'seconds, or "15m", "2h 30m", "3 days"; without it for ever.',
    )
    approve_late: Literal["allow", "deny", "fail"] = Field(
        "deny",
        description="The answer if there is none within that time; fail: the node fails.",
    )
    memories: list[NamedComponent] = Field(
        default_factory=list[NamedComponent],
        description="Context providers that receive each step: history, …",
        json_schema_extra=refers_to("context"),
    )
    retrievers: list[NamedComponent] = Field(
        default_factory=list[NamedComponent],
        description="Context providers.",
        json_schema_extra=refers_to("context"),
    )
    model_settings: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Passed to the model: temperature, max_tokens, …; "
        "those with known ranges are checked.",
    )
    params: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="The same, as DevAll files write it."
    )
    cite: bool = Field(
        False,
        description="Number what memories and retrievers find, and give what the reply cites as "
        "the field citations.",
    )
    role_name: str = Field("", description="The agent's role; without it, its node's name.")
    hide_unused_fields: bool = Field(
        False, description="Leave fields without a place in the template out of the prompt."
    )
    reflection: Reflection.Config | None = Field(
        None, description="What it asks itself around its reply: {before, after}."
    )
    titles: dict[str, str | None] = Field(
        default_factory=dict[str, "str | None"],
        description="Other titles for message, format, fields, context; "
        "empty: no title, null: not that part.",
    )
    max_turns: int = Field(10, ge=1, description="How often the model may ask for tools.")
    max_repairs: int = Field(
        2, ge=0, description="How often a reply that cannot be read is asked for again."
    )
    input_mode: Literal["messages", "prompt"] = Field(
        "messages", description="prompt: all that comes in as one user message, in blocks."
    )

    @field_validator("model_settings", "params")
    @classmethod
    def _in_range(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return checked_settings(settings)

    @field_validator("approve_within")
    @classmethod
    def _is_a_duration(cls, within: float | str | None) -> float | None:
        return None if within is None else parse_duration(within)

    @property
    def asking(self) -> Approval | None:
        """The time limit for approval, if there is one."""
        if self.approve_within is None:
            return None
        return Approval(within_seconds=float(self.approve_within), late=self.approve_late)

    def settings(self, parts: Parts) -> dict[str, Any]:
        """Return the arguments of an ``Agent``; what it names is made, as far as it can be."""
        formatters: Any = self.formatters
        if isinstance(formatters, list):
            formatters = [
                parts.made("formatters", use, "formatters", i)
                for i, use in enumerate(self.formatters or ())
            ]
        else:
            formatters = parts.made("formatters", formatters, "formatters")
        return {
            "model": self.chosen(),
            "instructions": self.instructions or Verbatim(self.role or ""),
            "prompt_template": self.prompt_template,
            "formatters": formatters,
            "tools": _present(_tool(parts, use, "tools", i) for i, use in enumerate(self.tools)),
            "approve": self.approve,
            "approval": self.asking,
            "memories": _providers(parts, self.memories, "memories"),
            "retrievers": _providers(parts, self.retrievers, "retrievers"),
            "model_settings": {**self.params, **self.model_settings},
            "context": ContextPolicy(cite=self.cite),
            "role_name": self.role_name,
            "hide_unused_fields": self.hide_unused_fields,
            "titles": self.titles,
            "thinking": Reflection(self.reflection) if self.reflection else None,
            "max_turns": self.max_turns,
            "max_repairs": self.max_repairs,
        }

    @property
    def works_on_fields(self) -> bool:
        """True if the node works on fields rather than on messages."""
        return bool(self.output or self.formatters) or self.prompt_template is not None


class AgentNode:
    """``agent``: a model with instructions, tools and context."""

    examples = (
        {
            "instructions": "Be brief.",
            "model": {"type": "scripted", "config": {"rules": [{"replies": ["Hello."]}]}},
        },
    )

    Config = AgentConfig
    reply_name = "its reply"
    pulls_named = True

    def __init__(self, config: AgentConfig) -> None:
        self.config: Any = config
        self._output: dict[str, str] = {}
        self._edges: Sequence[object] = ()
        self._setting: CompileOptions | None = None
        self.agent: Agent | None = None

    def bind(self, out_edges: Sequence[object], setting: CompileOptions | None = None) -> None:
        """Keep the out-edges; called by the planner."""
        self._edges, self._setting = out_edges, setting

    def adapted(self, rules: BodyRules) -> Body:
        """Return the body.

        Raises: SpecError, ConfigError: everything that is wrong with what it names and says, each
        at its place.
        """
        parts = Parts(self._setting)
        settings = self.config.settings(parts)
        model = parts.attempt(
            lambda: output_type(self.config.output, self._setting, parts.where("output"))
        )
        settings["output_type"] = model
        self._output = described(self.config.output, model)
        agent = parts.attempt(lambda: self._made(settings))
        if agent is None:
            raise parts.error()
        self.agent = agent
        agent.owned += [*settings["tools"], *agent.providers]
        agent.name = rules.node
        agent.bind([*self._edges, _DeclaredFields(self._output)], self._setting)
        is_whole = self.config.model is not None
        agent.set_model_place(parts.place("model") if is_whole else parts.where("provider"))
        parts.attempt(lambda: agent.check(Wiring(node=rules.node)), "model")
        if not parts.problems:
            _check_approve(agent, parts)
        in_fields = self.config.works_on_fields or rules.payload != "messages"
        if not in_fields:
            parts.attempt(lambda: _check_places(agent.style.instructions), "instructions")
        if parts.problems:
            raise parts.error()
        if in_fields:
            return agent.adapted(replace(rules, pull=rules.pull or {}, push=rules.push or {}))
        return as_body(_Chat(agent, rules, self.config.input_mode).run, rules)

    @property
    def gives(self) -> dict[str, Mapping[str, object]] | None:
        """The fields of its output with their JSON Schemas, where they are declared."""
        if not self._output:
            return None
        known = (self.agent.gives if self.agent is not None else None) or {}
        names = {*self._output, *Wiring.carried(self._edges)}
        return {name: known.get(name, {}) for name in names}

    @property
    def needs(self) -> frozenset[str]:
        """The fields that its prompts have places for."""
        return frozenset() if self.agent is None else self.agent.needs

    @property
    def writes(self) -> frozenset[str] | None:
        """All fields of the state that it may write, but for those that its node pushes; None:
        unknown.
        """
        return None if self.agent is None else self.agent.writes

    @property
    def gives_one(self) -> bool:
        """True if it gives one message at a time: the calls of tools are further ones."""
        return self.writes is not None

    always = gives_one
    """True if each firing sends: a tool may lead elsewhere."""

    @property
    def model_calls(self) -> int | None:
        """The most times that it may ask its model in one firing; None: unknown."""
        return None if self.agent is None else self.agent.model_calls

    @property
    def fires_others(self) -> bool:
        """True if its model may call agents and other nodes: each call is a firing."""
        return self.agent is not None and self.agent.fires_others

    @property
    def output_tokens(self) -> int | None:
        """The most tokens that one reply may have; None: no limit is set."""
        return None if self.agent is None else self.agent.output_tokens

    def _made(self, settings: Mapping[str, Any]) -> Agent:
        return Agent(**settings)

    async def close(self) -> None:
        """Close what was opened for the model."""
        if self.agent is not None:
            await self.agent.close()


class DynamicAgentConfig(AgentConfig):
    """The settings of an agent whose instructions come with the message."""

    instruction_key: str = Field(
        "instructions", description="The field that holds the instructions."
    )

    @property
    def works_on_fields(self) -> bool:
        return True


class DynamicAgentNode(AgentNode):
    """``dynamic_agent``: an agent whose instructions come with the message."""

    examples = (
        {
            "instructions": "Be brief.",
            "model": {
                "type": "scripted",
                "config": {"rules": [{"replies": ['{"message": "Hello."}']}]},
            },
            "output": {"message": "What to say."},
        },
    )

    Config = DynamicAgentConfig

    def _made(self, settings: Mapping[str, Any]) -> Agent:
        given = dict(settings)
        default = given.pop("instructions")
        return DynamicAgent(
            instruction_key=self.config.instruction_key, default_instructions=default, **given
        )


class _DeclaredFields:
    """An edge that only says which fields are asked for."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self.sender, self.receiver, self.keys = "", "", keys


def conversation_body(agent: Agent, rules: BodyRules) -> Any:
    """Return the body of an agent that takes part in the conversation of a typed state."""
    return _Chat(agent, rules, "messages").run


class _Chat:
    """An agent that works on messages."""

    def __init__(self, agent: Agent, rules: BodyRules, mode: str) -> None:
        self.agent, self.rules, self.mode = agent, rules, mode
        self.node, self.chat = rules.node, rules.chat
        agent.chat = self.chat

    async def run(self, messages: list[Message], ctx: Context, task: Task) -> Out:
        agent, wiring = self.agent, Wiring(node=self.node)
        if self.mode != "messages":
            received = [message(_blocks(messages))]
        elif self.chat:
            received = visible_to(self.node, messages)
        else:
            received = [unmarked(m) for m in messages]
        history, report, new = agent.recalled(ctx), list(received), list(received)
        if self.chat:  # the state holds it, and no memory has to repeat it
            history, new = not_yet_sent(history, received), since(self.node, messages)
        texts = [content_text(m.get("content")) for m in received if m.get("role") == "user"]
        text = "\n".join(texts)
        query = ContextQuery(
            text,
            {"message": text},
            agent.shared(ctx),
            self.node,
            ctx.activation.path,
            run_id=ctx.run_id,
            session_id=ctx.thread or None,
            messages=received,
        )
        numbering = PartNumbers()
        with noting_sources() as sources:
            found = await passive_context(
                agent.providers, query, agent.policy, ctx, f'node "{self.node}"', numbering
            )
            if found:  # behind what the next turn begins with, too: prompt caches know that
                content = [text_part(found), *numbering.parts] if numbering.parts else found
                report.append(message(content))
            known: dict[str, object] = {}
            if self.chat:
                known = {n: task.state[n] for n in task.state if not n.startswith("@")}
            fields: dict[str, object] = {**known, "role_name": agent.role_name or self.node}
            system = agent.system(fields, wiring)
            first: list[Message] = [{"role": "system", "content": system}] if system else []
            options = await agent.chat_options(wiring, query, ctx, formatter=Prose())
            answer = await agent.think([*first, *history, *report], options, ctx)
        reply: Message = {"role": "assistant", "content": answer.text}
        if agent.policy.cite:
            reply[CITATIONS] = agent.cited(answer.text, sources, ctx)
        await agent.update_memories([*new, reply], answer, query, options, ctx)
        if answer.parts:
            reply = {**reply, "content": list(answer.parts)}
        delta = shared_delta(ctx, task)
        if self.chat and self.chat not in delta:
            delta[self.chat] = from_speaker(answer.messages(), self.node)
        return with_command(Out([reply], delta), self.rules, ctx, task)


def _blocks(messages: Sequence[Message]) -> object:
    """Return all messages as one content: a text, with the parts behind it if there are any."""
    text = "\n\n".join(
        f"=== INPUT FROM {m.get('source') or 'TASK'} ({m.get('role', 'user')}) ===\n\n"
        f"{content_text(m.get('content'))}"
        for m in messages
    )
    lists = [m["content"] for m in messages if is_content(m.get("content"))]
    parts = [part for content in lists for part in content if is_part(part)]
    return [text_part(text), *parts] if parts else text


def _providers(parts: Parts, uses: Sequence[NamedComponent], key: str) -> list[object]:
    return _present(_provider(parts, use, key, i) for i, use in enumerate(uses))


def _provider(parts: Parts, use: NamedComponent, *keys: str | int) -> object:
    """Return a context provider by its name; None: it cannot be had."""
    name, config = name_and_config(use)
    if name == "history":
        return parts.attempt(
            lambda: make_component(HistoryMemory, config, parts.where(*keys)), *keys
        )
    return parts.made("context", use, *keys)


def _tool(parts: Parts, use: NamedComponent, *keys: str | int) -> object:
    """Return a tool by its name, that knows where it is written; None: it cannot be had."""
    made = parts.made("tools", use, *keys)
    if isinstance(made, NodeTool) and not isinstance(parts.place(), str):
        made.place = parts.place(*keys, "config")
    return made


def _present(made: Iterable[object]) -> list[object]:
    return [each for each in made if each is not None]


def _check_approve(agent: Agent, parts: Parts) -> None:
    """Report tools to be approved that are not there, where all tools are known before a run."""
    tools = agent.known_tools()
    is_active = any(getattr(provider, "active", False) for provider in agent.providers)
    if is_active or any(is_toolset(each) for each in (*tools, *agent.providers)):
        return
    known = tools_by_name([tool_of(each) for each in tools])
    for i, name in enumerate(agent.approve):
        parts.attempt(lambda name=name: with_approval(known, [name]), "approve", i)


def _check_places(instructions: str) -> None:
    """Raises: PromptError (AX650): instructions ask for a field other than the role, and there are
    only messages.
    """
    asked = set[str]() if isinstance(instructions, Verbatim) else places(instructions)
    if missing := sorted(name for name in asked - {"role_name"} if not name.isdigit()):
        hint = (
            "Give it a prompt_template or output fields, and it works on fields; for braces "
            "themselves write two of each."
        )
        names = format_names(missing)
        text = f"the instructions ask for {names}; an agent on messages has role_name alone."
        raise PromptError("AX650", text, hint)


class AgentSwitchConfig(_Modelled):
    """The settings of a switch that asks a model."""

    routes: dict[str, str] = Field(
        min_length=1, description="A condition in words for each target."
    )
    in_one_call: bool = Field(False, description="Judge all conditions in one call.")


class AgentSwitchNode(AgentSwitch):
    """``agent_switch``: sends its input to each target whose condition, in words, holds."""

    examples = (
        {
            "routes": {"yes": "The text is polite."},
            "model": {"type": "scripted", "config": {"rules": [{"replies": ["yes"]}]}},
        },
    )
    example_targets = ("yes",)

    Config = AgentSwitchConfig

    def __init__(self, config: AgentSwitchConfig) -> None:
        super().__init__(config.chosen(), config.routes, in_one_call=config.in_one_call)
        self.config = config


class HumanFormConfig(_Settings):
    """The settings of a question to a person."""

    prompt: str | list[str] = Field(
        "", description="The text for the person, with places for fields; empty: the whole input."
    )
    fields: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="What to ask for, with descriptions; without it, what the edges carry.",
    )
    as_form: bool = Field(
        True, description="One question for all fields; false: one question a field."
    )
    within: float | str | None = Field(
        None,
        description='The time to answer each question: seconds, or "15m", "2h 30m", "3 days"; '
        "without it for ever.",
    )
    defaults: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="The answers, by field, if there is none within that time.",
    )

    @field_validator("within")
    @classmethod
    def _is_a_duration(cls, within: float | str | None) -> float | None:
        return None if within is None else parse_duration(within)


class HumanFormNode(HumanNode):
    """``human_form``: asks a person for fields."""

    Config = HumanFormConfig

    def __init__(self, config: HumanFormConfig) -> None:
        super().__init__(**dict(config))
        self.config = config

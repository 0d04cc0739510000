"""``Agent``: a node that makes a prompt of its fields, asks a model, runs the tools that it asks
for, and sends the fields of the reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from axil import MISSING, ConfigError, Context, Out, Problem, run_sync
from axil.plugin import (
    Attributes,
    Body,
    BodyRules,
    Message,
    Task,
    as_body,
    did_you_mean,
    naming_unknown,
    pushed_fields,
    with_article,
)
from axil_agent.citations import CITATIONS, citations_of, noting_sources
from axil_agent.commands import with_command
from axil_agent.context import (
    ContextPolicy,
    active_tools,
    is_provider,
    passive_context,
    query_text,
)
from axil_agent.converse import Answer, ChatOptions, OnReply, max_output_tokens, think
from axil_agent.errors import PromptError, WiringError
from axil_agent.formatters import OneField, Prose, pair_of
from axil_agent.history import is_chat_memory
from axil_agent.models import Chosen
from axil_agent.output_types import OutputType, field_of
from axil_agent.prompt import (
    Observed,
    Style,
    Wiring,
    conversation,
    described_fields,
    description,
    titled,
    user_prompt,
)
from axil_agent.sharing import held, is_shared, keep, kept, shared_delta, shared_now
from axil_agent.speakers import from_speaker, not_yet_sent, visible_to
from axil_agent.standalone import StandaloneContext
from axil_agent.template import joined, rendered
from axil_agent.thinking import Reflection, converse_with_thinking
from axil_agent.uses import listed_or_one
from axil_agent.voice import talk, who_speaks_first
from axil_models import (
    Approval,
    ContextError,
    ContextLike,
    ContextQuery,
    Formatter,
    FormatterLike,
    Model,
    ModelLike,
    Request,
    Tool,
    ToolLike,
    Turn,
    Use,
    call_async,
    checked_settings,
    component_of,
    held_tools,
    in_thread,
    is_toolset,
    plain_data,
    text_part,
    tool_of,
    tools_by_name,
    tools_of,
    with_approval,
    with_labels,
)

if TYPE_CHECKING:
    from axil import Graph
    from axil.plugin import CompileOptions, Place
    from axil_agent.arguments import (
        AgentNodeOptions,
        DynamicNodeOptions,
        DynamicOptions,
        First,
    )
    from axil_agent.citations import Source
    from axil_agent.stage import Stage
    from axil_agent.thinking import After, Before


class Agent:
    """A node whose output is what a model says.

    In prompts ``{name}`` is the place of a field: of the inputs, of a pulled attribute, or
    ``role_name``.
    """

    strict = True
    reply_name = "its reply"
    pull_default: Mapping[str, str] = {}
    push_default: Mapping[str, str] = {}

    @naming_unknown
    def __init__(
        self,
        model: ModelLike | None = None,
        instructions: str | Sequence[str] = "",
        prompt_template: str | Sequence[str] | Mapping[str, object] | None = None,
        *,
        formatters: FormatterLike | Sequence[FormatterLike] | None = None,
        tools: Sequence[ToolLike] | None = None,
        memories: ContextLike | Sequence[ContextLike] | None = None,
        retrievers: ContextLike | Sequence[ContextLike] | None = None,
        model_settings: Mapping[str, object] | None = None,
        role_name: str = "",
        hide_unused_fields: bool = False,
        output_type: object = None,
        titles: Mapping[str, str | None] | None = None,
        context: ContextPolicy | None = None,
        approve: Sequence[str] = (),
        approval: Approval | None = None,
        thinking: Before | After | Use | Sequence[Before | After | Use] | None = None,
        max_turns: int = 10,
        max_repairs: int = 2,
        on_reply: OnReply | None = None,
        name: str = "",
    ) -> None:
        """Describe the agent; no connection is made.

        Args:
            model: a ``Model``, an object with MASFactory's ``invoke``, the name of an installed
                adapter, or ``{type: …, …}``.
            instructions: the system prompt, or its lines.
            prompt_template: the message; a mapping makes a titled part of each entry.
            formatters: one, or ``[in, out]``: objects or names. Usual: paragraphs in; out prose
                where one field is wanted, JSON where several are, or one with a type.
            tools: functions, ``Tool``s, toolsets, agents, names of installed tools.
            memories, retrievers: context providers, or names of installed ones.
            model_settings: handed to the model; those with well-known ranges are checked.
            role_name: who the agent is; empty: its node's name.
            output_type: the type of the output: a model, a dataclass, a TypedDict, any other type
                (``list[str]``, ``Literal``, a union, ``str``), or a function that is called with
                what it asks for and gives the output; a ValueError of it is shown to the model,
                which is asked again.
            titles: other titles for the parts ``message``, ``format``, ``fields``, ``context``;
                ``""``: no title, None: not that part.
            approve: names of tools whose calls a person has to allow first; ``*``: all.
            approval: the time for it, and the answer without one; None: as each tool says.
            thinking: a ``Reflection``, another ``Thinking``, or several.
            max_turns: how often the model may ask for tools.
            max_repairs: how often a reply that cannot be read is asked for again.
            on_reply: called with each reply of the model and the messages that it answers; a reply
                that it returns takes its place.
        """
        if not isinstance(cast("object", instructions), (str, Sequence, NoneType)):
            hint = "The model comes first: Agent(model, instructions)."
            raise _unfit("instructions", "text, or a list of texts", instructions, hint)
        self.name = name
        self.role_name = role_name
        self.style = Style(
            instructions=joined(instructions),
            template=prompt_template,
            role_name=role_name,
            hide_unused_fields=hide_unused_fields,
            titles=titled(titles, name),
        )
        self.model_settings = checked_settings(model_settings)
        self.output_type, self.policy = output_type, context or ContextPolicy()
        self._outputs: dict[str, OutputType] = {}
        if output_type is not None:
            self.output(Wiring())
        self.max_turns, self.max_repairs, self.on_reply = max_turns, max_repairs, on_reply
        self.approve, self.approval = tuple(approve), approval
        self.thinking: list[Any] = listed_or_one(thinking)
        self._model = Chosen(model)
        self._tools: list[object] = [
            tool for each in listed_or_one(tools) for tool in held_tools(each)
        ]
        self._memories: list[Any] = listed_or_one(memories)
        self._retrievers: list[object] = listed_or_one(retrievers)
        plain = [t for t in self._tools if callable(t) and not isinstance(t, type)]
        tools_by_name([tool_of(tool) for tool in plain if not is_toolset(tool)])
        self._formatters: object = formatters
        self._pair: tuple[Formatter, Formatter] | None = None
        self._wiring = Wiring(node=name)
        self._setting: CompileOptions | None = None
        self._in_messages = False
        self._cited: dict[str, Mapping[str, object]] = {}
        """Fields of its output that edges carry and the model does not give: citations."""
        self.chat = ""
        """The field of the state that holds the conversation, if there is one."""
        self.owned: list[object] = []
        """Components that were made for this agent from names, and are closed with it."""

    if TYPE_CHECKING:

        @classmethod
        def create_in(
            cls,
            graph: Graph,
            /,
            *args: First,
            **options: Unpack[AgentNodeOptions],
        ) -> Self: ...

    def build(self) -> Agent:
        """Make model, formatters and what is given by name, now. Raises: as ``adapted``."""
        self.check(self._wiring)
        _ = self.pair
        return self

    @property
    def tools(self) -> list[object]:
        """The tools as they were given, or as ``build`` made them from names."""
        return self._tools

    @property
    def gives(self) -> dict[str, Mapping[str, object]] | None:
        """The fields of its output with their JSON Schemas, where they are declared."""
        output = self.output(self._wiring)
        return None if output is None else {**output.types, **self._cited}

    @property
    def needs(self) -> frozenset[str]:
        """The fields that its prompts have places for."""
        usual = type(self).observe, type(self)._inputs_and_style
        if usual != (Agent.observe, Agent._inputs_and_style):
            return frozenset()
        named = self.style.named() - {"role_name"}
        return frozenset(name for name in named if not name.isdigit())

    @property
    def uses(self) -> frozenset[str] | None:
        """All fields that its prompts show; None: whatever comes."""
        is_plain = not (self._memories or self._retrievers or self.thinking)
        usual = type(self).observe, type(self)._inputs_and_style
        is_plain &= usual == (Agent.observe, Agent._inputs_and_style)
        return self.needs if is_plain and self.style.hide_unused_fields else None

    @property
    def writes(self) -> frozenset[str] | None:
        """All fields of the state that it may write, but for those that its node pushes; None:
        unknown.
        """
        is_plain = not (self._tools or self._memories or self._retrievers or self.chat)
        return frozenset() if is_plain and type(self).turn is Agent.turn else None

    @property
    def gives_one(self) -> bool:
        """True if it gives one message at a time: the calls of tools are further ones."""
        return self.writes is not None

    always = gives_one
    """True if each firing sends: a tool may lead elsewhere."""

    @property
    def model_calls(self) -> int | None:
        """The most times that it may ask its model in one firing; None: unknown."""
        tools = [*self._tools, *self._retrievers, *self._memories]
        if self.fires_others:
            return None
        if self._model.can_talk or any(getattr(each, "model", None) is not None for each in tools):
            return None
        answers = 1 + self.max_repairs
        calls = answers + (self.max_turns if tools else 0)
        for each in self.thinking:
            if type(each) is not Reflection:
                return None
            calls += bool(each.first) + (answers if each.then else 0)
        return calls

    @property
    def fires_others(self) -> bool:
        """True if its model may call agents and other nodes: each call is a firing."""
        from axil_agent.delegate import AgentTool, NodeTool

        return any(isinstance(each, (Agent, AgentTool, NodeTool)) for each in self._tools)

    @property
    def output_tokens(self) -> int | None:
        """The most tokens that one reply may have; None: no limit is set."""
        return max_output_tokens(Request(messages=(), settings=self.model_settings))

    def output(self, wiring: Wiring) -> OutputType | None:
        """Return the type of the output at this place; None: none was given."""
        if self.output_type is None:
            return None
        field = field_of(wiring)
        if field not in self._outputs:
            self._outputs[field] = OutputType(self.output_type, field)
        return self._outputs[field]

    def add_memory(self, memory: ContextLike | None) -> None:
        """Add a memory; before the graph is built."""
        self._memories.append(memory)

    def add_tool(self, tool: ToolLike) -> None:
        """Add a tool; before the graph is built."""
        self._tools += held_tools(tool)

    def add_retriever(self, retriever: ContextLike) -> None:
        """Add a retriever; before the graph is built."""
        self._retrievers.append(retriever)

    def bind(self, out_edges: Sequence[object], setting: CompileOptions | None = None) -> None:
        """Take what the out-edges carry as what a reply has to have; called by the planner."""
        self._setting, carried = setting, Wiring.carried(out_edges)
        self._wiring = Wiring(node=self.name, needed=self.wanted(carried))
        self._cited = {name: {} for name in carried.keys() - self._wiring.needed.keys()}

    def wanted(self, needed: Mapping[str, str]) -> dict[str, str]:
        """Return the fields that a reply has to have, of those that are carried: citations are the
        agent's.
        """
        own = {CITATIONS} if self.policy.cite else set[str]()
        return {name: text for name, text in needed.items() if name not in own}

    def adapted(self, rules: BodyRules) -> Body:
        """Return the body.

        Raises: as making the model and the formatters does; WiringError (AX668): the output type
        lacks a field.
        """
        self._wiring = Wiring(
            node=rules.node,
            needed={} if rules.payload == "state" else self._wiring.needed,
            is_typed=rules.payload == "state",
            pushed={name: description(text) for name, text in (rules.push or {}).items()},
            pulled={name: description(text) for name, text in (rules.pull or {}).items()},
        )
        self.check(self._wiring)
        _ = self.pair
        self.chat, self._in_messages = rules.chat, rules.payload == "messages"
        if self.is_conversational:
            from axil_agent.nodes import conversation_body  # it makes agents of files

            return as_body(conversation_body(self, rules), replace(rules, payload="messages"))
        return as_body(_Firing(self, self._wiring, rules).run, rules)

    def set_model_place(self, where: str | Place) -> None:
        """Set where its model is written, for errors: a text or a ``Place``."""
        self._model.where = where

    def check(self, wiring: Wiring) -> None:
        """Make the model now rather than at the first turn. Raises: as ``adapted``."""
        if wiring.node and self._model.where == "model":
            self._model.where = f'node "{wiring.node}", model'
        self._model.check(self._setting)
        for tool in self.known_tools():
            if hasattr(tool, "bind"):
                tool.bind(self._setting)
        _ = self.providers
        output = self.output(wiring)
        if output is not None:
            missing = [name for name in wiring.needed if name not in output.fields]
            if missing:
                where = f'node "{wiring.node}"'
                message = f"{output.name} has no {', '.join(missing)}, which an edge carries."
                hint = did_you_mean(missing[0], output.fields)
                hint = hint or "Add it, or change the edge's keys."
                raise WiringError("AX668", message, hint, where)

    @property
    def pair(self) -> tuple[Formatter, Formatter]:
        """The formatter of prompts, and that of replies with several fields."""
        if self._pair is None:
            self._pair = pair_of(self._formatters, f'node "{self.name}"', self._setting)
        return self._pair

    def outgoing(self, wiring: Wiring) -> Formatter:
        """Return the formatter of replies: the one that was given, else prose for one field."""
        asked, output = wiring.asked, self.output(wiring)
        if self._formatters is not None:
            return self.pair[1]
        if output is not None:
            if output.is_text:
                return Prose({output.field: asked.get(output.field, "")})
            return OneField(self.pair[1]) if output.is_one_value else self.pair[1]
        if len(asked) > 1:
            return self.pair[1]
        return OneField(self.pair[1]) if asked and wiring.is_typed else Prose(asked)

    def observe(
        self,
        inputs: Mapping[str, object] | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> Observed:
        """``(system_prompt, user_prompt, messages)`` for ``inputs``, without a model or a graph;
        of history what a memory begins with.

        A subclass may override it: it is called in each firing, in a thread. Images, files and
        recordings are named in the prompt and sent as parts of the user's message.

        Raises: PromptError (AX650): a prompt asks for a field that is not there; RuntimeError: an
        event loop is running (``observed``).
        """
        history, wiring = _observing.get() or (None, None)
        if history is None:
            chats = filter(is_chat_memory, self._memories)
            history = [message for memory in chats for message in memory.recall(())]
        observed = self.observed(inputs or {}, attributes, history=history, wiring=wiring)
        return run_sync(observed)

    async def observed(
        self,
        inputs: Mapping[str, object],
        attributes: Mapping[str, object] | None = None,
        *,
        history: Sequence[Message] = (),
        ctx: Any = None,
        wiring: Wiring | None = None,
    ) -> Observed:
        """``observe``, awaited; ``history`` comes before the message."""
        wiring = wiring or self._wiring
        where = f'node "{wiring.node}"' if wiring.node else ""
        inputs, style = self._inputs_and_style(inputs, wiring)
        fields, numbering = style.shown(style.fields(inputs, attributes or {}, wiring))
        system = rendered(style.instructions, fields, where)
        message = style.message(fields, where)
        query = self._query(
            with_labels(inputs), with_labels(attributes or {}), message, wiring.node, ctx
        )
        found = await passive_context(
            self.providers, query, self.policy, ctx or StandaloneContext(), where, numbering
        )
        outgoing = self.outgoing(wiring)
        if isinstance(outgoing, Prose):
            asked = outgoing.request
        else:
            output = self.output(wiring)
            schema = None if output is None else output.schema
            asked = described_fields(wiring.asked, schema)
        about = {name: text for name, text in wiring.pulled.items() if text and name in fields}
        user = user_prompt(style, fields, message, (self.pair[0], outgoing), asked, found, about)
        parts = numbering.parts
        return Observed(
            system=system,
            user=user,
            messages=conversation(system, history, [text_part(user), *parts] if parts else user),
        )

    def _inputs_and_style(
        self, inputs: Mapping[str, object], wiring: Wiring
    ) -> tuple[Mapping[str, object], Style]:
        return inputs, self.style

    async def turn(
        self,
        inputs: Mapping[str, object],
        attributes: Mapping[str, object],
        ctx: Context | StandaloneContext,
        wiring: Wiring,
    ) -> tuple[dict[str, object], Answer]:
        """Observe, think and act; return the fields, and the answer that they are of.

        What memories keep is put into ``ctx.local``.
        """
        labelled = with_labels(self._inputs_and_style(inputs, wiring)[0])
        chat = self.chat_messages(ctx)
        history = [*not_yet_sent(self.recalled(ctx), chat), *chat]
        with noting_sources() as sources:
            seen = await self._seen(inputs, attributes, history, ctx, wiring)
            query = self._query(
                labelled, with_labels(attributes), seen.user, wiring.node, ctx, seen.messages
            )
            options = await self.chat_options(wiring, query, ctx)
            answer = await self.think(seen.messages, options, ctx)
            fields = await self.act(answer, ctx)
        if self.policy.cite and not wiring.is_typed:
            fields = {**fields, CITATIONS: self.cited(fields, sources, ctx)}
        new: list[Message] = [seen.messages[-1], {"role": "assistant", "content": answer.text}]
        await self.update_memories(new, answer, query, options, ctx)
        return fields, answer

    def cited(
        self, given: object, sources: Sequence[Mapping[str, object]], ctx: Stage
    ) -> list[Source]:
        """Return the sources that an answer names, and show them."""
        found = citations_of(given, [dict(source) for source in sources])
        for each in found:
            ctx.emit({"kind": "part", "part": each})
        return found

    async def think(self, messages: Sequence[Message], options: ChatOptions, ctx: Stage) -> Answer:
        """Ask the model, with tools and repairs, until there is an answer.

        A subclass may change the messages, or the answer (``dataclasses.replace``).
        """
        if first := await who_speaks_first(options, ctx):
            return await talk(messages, options, first, ctx)
        return await converse_with_thinking(messages, options, ctx, self.thinking)

    async def act(self, answer: Answer, ctx: Stage) -> dict[str, object]:
        """Return the fields that the node gives, of the model's answer."""
        return answer.fields

    async def _seen(
        self,
        inputs: Mapping[str, object],
        attributes: Mapping[str, object],
        history: Sequence[Message],
        ctx: Context | StandaloneContext,
        wiring: Wiring,
    ) -> Observed:
        # a subclass's own ``observe`` is called in a thread
        if type(self).observe is Agent.observe:
            return await self.observed(inputs, attributes, history=history, ctx=ctx, wiring=wiring)
        token = _observing.set((history, wiring))
        try:
            system, user, messages = await in_thread(lambda: self.observe(inputs, attributes))
        finally:
            _observing.reset(token)
        return Observed(system=system, user=user, messages=messages)

    def _query(
        self,
        inputs: Mapping[str, object],
        attributes: Mapping[str, object],
        message: str,
        node: str,
        ctx: Any,
        messages: Sequence[Message] = (),
    ) -> ContextQuery:
        path = ctx.activation.path if hasattr(ctx, "activation") else node
        return ContextQuery(
            query_text(inputs, message),
            dict(inputs),
            {**attributes, **self.shared(ctx)},
            node,
            path,
            run_id=getattr(ctx, "run_id", None),
            session_id=getattr(ctx, "thread", "") or None,
            messages=list(messages),
        )

    def shared(self, ctx: Any) -> dict[str, object]:
        """Return what the state holds for memories that agents share, whatever the node pulls."""
        names = [memory.share for memory in self.providers if is_shared(memory)]
        if not names or not hasattr(ctx, "state"):
            return {}
        return {name: list(held(ctx.state, name)) for name in names}

    @property
    def providers(self) -> list[Any]:
        """Memories and retrievers, in the order in which they are asked; those given by name are
        made once.

        Raises: ContextError (AX942): something else was given; as ``resolve`` and
        ``make_component``.
        """
        for several in filter(None, (self._memories, self._retrievers)):
            self._make_named("context", several)
            for given in several:
                if not is_provider(given):
                    kind = with_article(type(given).__name__)
                    message = f"{kind} is no context provider: it has no get_blocks."
                    hint = "Give a provider, or the name of an installed one."
                    raise ContextError("AX942", message, hint, f'node "{self.name}"')
        return [*self._memories, *self._retrievers]

    def _make_named(self, kind: str, several: list[object]) -> None:
        """Replace names and ``{type: …}`` by the components that they name."""
        for number, given in enumerate(several):
            if isinstance(given, (str, Mapping)):
                registry = getattr(self._setting, "registry", None)
                several[number] = made = component_of(kind, given, kind, registry)
                self.owned.append(made)

    def system(self, fields: Mapping[str, object], wiring: Wiring) -> str:
        """Return the system's message."""
        return rendered(self.style.instructions, fields, f'node "{wiring.node}"')

    def inputs_from_state(self, state: Mapping[str, object]) -> dict[str, object]:
        """Return the inputs that it takes from a typed state, whatever it pulls."""
        return {}

    @property
    def is_conversational(self) -> bool:
        """True if it only takes part in a conversation: of a typed state, or of edges."""
        style = self.style
        return bool(
            (self.chat or self._in_messages)
            and style.template is None
            and self._formatters is None
            and self.output_type is None
            and not self._wiring.asked
        )

    def chat_messages(self, ctx: Context | StandaloneContext) -> list[Message]:
        """Return the conversation that a typed state holds."""
        if not self.chat or not hasattr(ctx, "state"):
            return []
        return visible_to(self._wiring.node, plain_data(list(held(ctx.state, self.chat))))

    def recalled(self, ctx: Context | StandaloneContext) -> list[Message]:
        """Return the history that is sent."""
        return [
            m
            for memory in self._memories
            if is_chat_memory(memory)
            and not (self._is_the_chat(memory) and self.chat_messages(ctx))
            for m in memory.recall(kept(memory, ctx))
        ]

    def _is_the_chat(self, memory: Any) -> bool:
        # the node sends and writes it itself
        return bool(self.chat) and memory.share == self.chat

    async def chat_options(
        self,
        wiring: Wiring,
        query: ContextQuery,
        ctx: Context | StandaloneContext,
        formatter: Formatter | None = None,
    ) -> ChatOptions:
        """Return the settings of a turn's conversation.

        Raises: as making the tools does; ToolError (AX656): two have one name.
        """
        tools = [
            *await self._all_tools(ctx),
            *await tools_of(self.providers, ctx),
            *active_tools(self.providers, query, ctx, cite=self.policy.cite),
        ]
        output = self.output(wiring)
        return ChatOptions(
            model=await self._model.ready(),
            formatter=formatter or self.outgoing(wiring),
            required=tuple(wiring.needed),
            asked=tuple(wiring.asked) if output is None else output.asked,
            settings=self.model_settings,
            output=output,
            tools=with_approval(tools_by_name(tools), self.approve, self.approval),
            max_turns=self.max_turns,
            max_repairs=self.max_repairs,
            where=f'node "{wiring.node}"' if wiring.node else "",
            on_reply=self.on_reply,
        )

    async def _all_tools(self, ctx: object) -> list[Tool]:
        tools: list[Tool] = []
        for known in self.known_tools():
            tools += await tools_of([known], ctx) if is_toolset(known) else [tool_of(known)]
        return tools

    def known_tools(self) -> list[Any]:
        """Return tools and toolsets, those given by name made once.

        Raises: as ``resolve`` and ``make_component``.
        """
        from axil_agent.delegate import AgentTool  # it holds agents

        for number, given in enumerate(self._tools):
            if isinstance(given, Agent):
                self._tools[number] = delegated = AgentTool(given)
                self.owned.append(delegated)
        self._make_named("tools", self._tools)
        return self._tools

    async def update_memories(
        self,
        new: list[Message],
        answer: Answer,
        query: ContextQuery,
        options: ChatOptions,
        ctx: Context | StandaloneContext,
    ) -> None:
        """Give chat memories the ``new`` messages of a turn, other memories its query and reply."""
        if not self._memories:
            return
        ctx.kept["turn"] = count = int(ctx.kept.get("turn") or 0) + 1
        query = replace(query, inputs=plain_data(query.inputs))
        turn = Turn(
            query=query, reply=answer.text, role_name=self.role_name or self.name, number=count
        )
        for number, memory in enumerate(self._memories):
            ask = partial(think, options.model, ctx=ctx, name=f"memory:{number}")
            if is_chat_memory(memory):
                if self._is_the_chat(memory):
                    continue
                said = plain_data(new)
                keep(memory, ctx, await memory.remember(kept(memory, ctx), said, ask), said)
            elif is_shared(memory):
                notes = plain_data(memory.notes(turn))
                before = shared_now(memory.share, ctx)
                keep(memory, ctx, memory.keep([*before, *notes]), notes)
            elif hasattr(memory, "learn"):
                await ctx.step(f"learn:{number}", partial(_learnt, memory, replace(turn, ask=ask)))
            elif hasattr(memory, "insert"):
                await ctx.step(f"insert:{number}", partial(_inserted, memory, turn))

    def models(self) -> list[Model]:
        """Return the model that it asks."""
        return [self._model.now()]

    async def close(self) -> None:
        """Close what was given by name: tools, providers, the model; all, even if one fails."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._model.close)
            for each in reversed(self.owned):
                close = getattr(each, "close", None)
                if close is not None:
                    stack.push_async_callback(call_async, close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


_observing: ContextVar[tuple[Sequence[Message], Wiring] | None] = ContextVar(
    "axil_agent_observing", default=None
)
"""The history and the wiring of the firing in which an overridden ``observe`` is called."""


class _Firing:
    """An agent at its place in a graph."""

    def __init__(self, agent: Agent, wiring: Wiring, rules: BodyRules) -> None:
        self.agent, self.wiring, self.rules = agent, wiring, rules

    async def run(
        self, inputs: dict[str, object], attributes: Attributes, ctx: Context, task: Task
    ) -> Out:
        if self.rules.view is not None:
            for name, value in self.agent.inputs_from_state(task.state).items():
                inputs.setdefault(name, value)
                dict[str, Any].pop(attributes, name, None)  # for the prompt; the state keeps it
        try:
            fields, answer = await self.agent.turn(inputs, attributes, ctx, self.wiring)
        except PromptError as error:
            raise _with_edges(error, task) from None
        shared = shared_delta(ctx, task)
        if self.rules.payload == "state":
            names = self.rules.push if self.rules.push is not None else fields
            chat = self.rules.chat
            if chat and chat not in shared:
                shared[chat] = from_speaker(answer.messages(), self.rules.node)
            delta = {name: fields[name] for name in names if name in fields}
            return with_command(Out({}, {**delta, **shared}), self.rules, ctx, task)
        delta = pushed_fields(self.rules, fields, task.state, attributes)
        return with_command(Out(fields, {**delta, **shared}), self.rules, ctx, task)


def _with_edges(error: PromptError, task: Task) -> PromptError:
    """Return the error, with the edges that the fields came on."""
    edges = task.owner.plan.graph.edges if task.owner is not None else ()
    names = [edges[token.edge].name for token in task.tokens if 0 <= token.edge < len(edges)]
    if not names:
        return error
    came = f" What came, came on {', '.join(names)}."
    hint = f"{error.hint} An edge that only adds data, and starts nothing, has trigger=False."
    return PromptError(error.id, error.message + came, hint, error.problem.where)


async def _inserted(memory: Any, turn: Turn) -> None:
    await call_async(memory.insert, turn.key, turn.reply)


async def _learnt(memory: Any, turn: Turn) -> Any:
    return plain_data(await call_async(memory.learn, turn))


def _unfit(name: str, expected: str, found: object, hint: str) -> ConfigError:
    return ConfigError(Problem("AX131", name, f"expected {expected}, found {found!r:.80}.", hint))


class DynamicAgent(Agent):
    """An agent whose instructions come with the message: in the field ``instruction_key``, which is
    then no input any more. In a typed graph it is a field of the state.
    """

    def __init__(
        self,
        *args: Any,  # in the order of Agent, or a name first
        instruction_key: str = "instructions",
        default_instructions: str | Sequence[str] = "",
        **settings: Unpack[DynamicOptions],
    ) -> None:
        """Take ``default_instructions`` for where the field is missing; else that is an error."""
        if "instructions" in settings and not default_instructions:
            default_instructions = settings.pop("instructions")
        super().__init__(*args, **cast("Any", settings))
        self.instruction_key = instruction_key
        self.default_instructions = joined(default_instructions)

    if TYPE_CHECKING:

        @classmethod
        def create_in(  # type: ignore[override]  # its settings are its own
            cls,
            graph: Graph,
            /,
            *args: First,
            **options: Unpack[DynamicNodeOptions],
        ) -> Self: ...

    def system(self, fields: Mapping[str, object], wiring: Wiring) -> str:
        """Return the system's message. Raises: PromptError (AX650, AX651)."""
        key = self.instruction_key
        given = {name: value for name, value in fields.items() if name != key or value != ""}
        rest, style = self._inputs_and_style(given, wiring)
        return rendered(style.instructions, rest, f'node "{wiring.node}"')

    def inputs_from_state(self, state: Mapping[str, object]) -> dict[str, object]:
        key = self.instruction_key
        return {key: state[key]} if state.get(key) not in (None, "", MISSING) else {}

    def _inputs_and_style(
        self, inputs: Mapping[str, object], wiring: Wiring
    ) -> tuple[Mapping[str, object], Style]:
        rest = dict(inputs)
        given = rest.pop(self.instruction_key, None)
        if given is None and not self.default_instructions:
            message = f'there is no field "{self.instruction_key}", which holds the instructions.'
            hint = "Let an edge or a typed state carry it, or give default_instructions."
            where = f'node "{wiring.node}"' if wiring.node else ""
            raise PromptError("AX651", message, hint, where)
        if given is None:
            text = self.default_instructions
        else:
            text = joined(given) if isinstance(given, (str, list, tuple)) else str(given)
        return rest, replace(self.style, instructions=text)

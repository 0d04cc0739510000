"""``Agent``: a node that observes, thinks and acts."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

import axil
import axil_models
from axil import CustomNode
from masfactory.adapters.context.provider import ContextProvider
from masfactory.adapters.model.base import ModelResponseType, answer_of, unheard
from masfactory.adapters.model.chosen import askable
from masfactory.adapters.tool_adapter import ToolAdapter
from masfactory.components.agents.observed import ObservedModel
from masfactory.components.agents.prompts import (
    TITLES,
    ObservingAgent,
    ObservingSingleAgent,
    PromptFormatter,
    Prompting,
)
from masfactory.core.message import JsonMessageFormatter, ParagraphMessageFormatter
from masfactory.core.multimodal import descriptions
from masfactory.core.node import Keys, Node
from masfactory.errors import missing
from masfactory.skills.skill import Skill, instructions_of
from masfactory.utils.apart import apart

UNSET: Any = object()
__getattr__: Callable[[str], Any] = missing(
    __name__,
    dict.fromkeys(
        ("format_content_and_get_fields", "get_format_fields", "str_format"),
        "Agent._prompt_template_format fills a template.",
    ),
)


class Agent(Prompting):
    """A node whose output is what a model says.

    In a graph ``axil_agent.Agent`` works in its place, unless a subclass has ``observe``,
    ``think``, ``act``, ``step`` or ``_forward`` of its own; then those are called.
    """

    class Hook(Node.Hook):
        """Stages of a node, and what an agent tells of: ``(agent, response, messages)`` and
        ``(agent, calls, results)``.
        """

        THINK_COMPLETED = "agent_think_completed"
        ACT_COMPLETED = "agent_act_completed"

    keeps_attributes = False
    core_class: ClassVar[Any] = ObservingAgent
    _own: ClassVar = ("observe", "think", "act", "step", "_forward")

    def __init__(
        self,
        name: str,
        instructions: str | list[str] = "",
        *,
        model: Any,
        formatters: Any = None,
        max_retries: int | None = 3,
        retry_delay: float | None = 1,
        retry_backoff: float | None = 2,
        prompt_template: Any = None,
        tools: Sequence[Callable[..., Any]] | None = None,
        memories: Sequence[Any] | Any | None = None,
        retrievers: Sequence[Any] | None = None,
        skills: Sequence[Skill] | None = None,
        pull_keys: Keys | None = UNSET,
        push_keys: Keys | None = UNSET,
        model_settings: Mapping[str, Any] | None = None,
        role_name: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        hide_unused_fields: bool = False,
        reuse_attachment_tags: bool = True,
    ) -> None:
        """Take the agent; making one connects to nothing.

        ``max_retries``: how often in all a reply is asked for that cannot be read. The waits
        between, ``retry_delay`` and ``retry_backoff``, are those of the model's adapter; axil
        shows the model its fault at once.
        """
        super().__init__(
            name,
            {} if pull_keys is UNSET else pull_keys,
            {} if push_keys is UNSET else push_keys,
            attributes,
        )
        del retry_delay, retry_backoff, reuse_attachment_tags
        if model is None:
            raise ValueError(f'agent "{name}": it has no model. Give model=OpenAIModel(…).')
        self._instructions, self._model = instructions, model
        self._prompt_template, self._hide_unused_fields = prompt_template, hide_unused_fields
        self._role_name = name if role_name is None else role_name
        self._in_formatter, self._out_formatter = _two(formatters, name)
        self._user_tools = list(tools or ())
        self._memories = _listed(memories)
        self._retrievers = _listed(retrievers)
        self.skills = list(skills or ())
        self._model_settings = dict(model_settings or {})
        self._max_retries = max(3 if max_retries is None else int(max_retries), 1)
        self._last = "", ""

    # -- what it is

    @property
    def model(self) -> Any:
        """Its model."""
        return self._model

    @property
    def instructions(self) -> str:
        """Its instructions, with those of its skills."""
        return instructions_of(self._instructions, self.skills)

    @property
    def role_name(self) -> str:
        """Its role; without one, its name."""
        return self._role_name

    @property
    def memories(self) -> list[Any]:
        """Its memories."""
        return self._memories

    @property
    def retrievers(self) -> list[Any]:
        """Its retrievers."""
        return self._retrievers

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """Its tools: its own, and two that ask active memories and retrievers."""
        return [*self._user_tools, *_context_tools([*self._memories, *self._retrievers])]

    @property
    def _tool_adapter(self) -> ToolAdapter | None:
        return ToolAdapter(self.tools) if self.tools else None

    @property
    def history_messages(self) -> list[dict[str, Any]]:
        """The history that is sent."""
        held = [each for each in self._memories if hasattr(each, "get_messages")]
        return [message for memory in held for message in memory.get_messages()]

    def add_memory(self, memory: Any) -> None:
        """Add a memory."""
        self._memories.append(memory)
        self.changed()

    def add_retriever(self, retriever: Any) -> None:
        """Add a retriever."""
        self._retrievers.append(retriever)
        self.changed()

    def reset_memories(self) -> None:
        """Let its memories forget everything."""
        for memory in self._memories:
            if hasattr(memory, "reset"):
                memory.reset()

    def reset(self) -> None:
        """Go back to the first attributes, with empty memories."""
        super().reset()
        self.reset_memories()

    # -- what it does, one by one

    def observe(self, input_dict: dict[str, Any]) -> tuple[str, str, list[dict[str, Any]]]:
        """Give the system's prompt, the user's, and all messages with the history."""
        core = self._alone()
        attributes = self._seen()

        async def once() -> Any:
            history = self.history_messages
            return await core.observed(input_dict, attributes, history=history)

        seen = apart(lambda: axil.run_sync(once()))
        return seen.system, seen.user, [dict(message) for message in seen.messages]

    def think(
        self, messages: list[dict[str, Any]], *, settings: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Ask the model once: ``{"type": ModelResponseType, "content": …}``.

        ``settings`` are all that the model is given; ``step`` gives the agent's.
        """
        reported = dict(settings or {})
        details = ToolAdapter(self.tools).details
        model = askable(self._model)
        if callable(getattr(model, "reply", None)):
            specs = tuple(axil_models.ToolSpec(**detail) for detail in details)
            request = axil_models.Request(messages=messages, tools=specs, settings=reported)

            async def once() -> axil_models.Reply:
                return await model.reply(request, unheard)

            return answer_of(
                cast("axil_models.Reply", apart(lambda: axil.run_sync(_closing(model, once()))))
            )
        return dict(model.invoke(messages, details or None, settings=reported or None))

    def act(self, tool_calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run tools: a message for each result, or for what went wrong."""
        adapter = ToolAdapter(self.tools)
        results: list[dict[str, Any]] = []
        for call in tool_calls:
            arguments: Any = call.get("arguments") or {}
            try:
                given: dict[str, Any] = (
                    json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
                )
                said = self._shown(adapter.call(str(call["name"]), given))
            except Exception as error:  # noqa: BLE001 (a tool is any code: the model reads why)
                said = f"{type(error).__name__}: {error}"
            results.append(
                {
                    "role": "tool",
                    "name": call.get("name"),
                    "tool_call_id": call.get("id"),
                    "content": said,
                }
            )
        return results

    def step(self, input_dict: dict[str, Any]) -> dict[str, Any]:
        """Do one turn outside a graph: the fields of the reply."""
        if self._is_own(("observe", "think", "act")):
            return self._stepped(input_dict)
        core = self._alone()
        attributes = self._seen()
        return dict(apart(lambda: core.invoke(input_dict, attributes)))

    def _seen(self) -> dict[str, Any]:
        """Return its attributes outside a run; one that it pulls and that is absent is its
        description.
        """
        return {**(self.pulled or {}), **self.attributes}

    def _stepped(self, input_dict: dict[str, Any]) -> dict[str, Any]:
        """Return a turn by the methods of a subclass; one that fails is tried again."""
        for number in range(1, self._max_retries + 1):
            _, user, messages = self.observe(input_dict)
            try:
                fields, text = self._answered(list(messages))
            except (ValueError, KeyError):
                if number == self._max_retries:
                    raise
            else:
                self._tell(input_dict, user, text)
                return fields
        raise AssertionError  # the last try returns or raises

    def _answered(self, messages: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
        """Return the fields of a reply, and its text."""
        settings = dict(self._model_settings)
        for _ in range(11):
            response = self.think(messages, settings=dict(settings) or None)
            self._hooks.dispatch(self.Hook.THINK_COMPLETED, self, response, messages)
            kind = response.get("type")
            if str(getattr(kind, "value", kind)) == ModelResponseType.CONTENT.value:
                text = str(response.get("content") or "")
                asked = {**(self.push_keys or {}), **self.output_keys}
                fields = dict(self._alone().pair[1].parse(text, list(asked)))
                missing = [name for name in self.output_keys if name not in fields]
                if missing:
                    raise ValueError(
                        f'agent "{self.name}": the reply lacks {", ".join(missing)}. Ask for it.'
                    )
                return fields, text
            calls = cast("list[dict[str, Any]]", response.get("content") or [])
            said = response.get("assistant_message") or {
                "role": "assistant",
                "content": "",
                "tool_calls": calls,
            }
            results = self.act(calls)
            self._hooks.dispatch(self.Hook.ACT_COMPLETED, self, calls, results)
            messages += [said, *results]
            if settings.get("tool_choice") == "required":
                settings["tool_choice"] = "auto"
        raise ValueError(
            f'agent "{self.name}": the model asked for tools 11 times, expected at most 10. '
            "Tell it in the instructions when to stop."
        )

    def _tell(self, input_dict: dict[str, Any], user: str, text: str) -> None:
        for memory in self._memories:
            if hasattr(memory, "get_messages"):
                memory.insert("user", user)
                memory.insert("assistant", text)
            elif hasattr(memory, "insert"):
                reported = {"input": input_dict, "role_name": self.role_name}
                memory.insert(json.dumps(reported, ensure_ascii=False, default=str), text)

    def _forward(self, input: dict[str, Any]) -> Any:  # MASFactory's name
        return self.step(input)

    # -- for axil

    def _is_own(self, names: Sequence[str]) -> bool:
        """Return whether a subclass has methods of its own of these names."""
        mine = next(c for c in type(self).__mro__ if c.__module__.startswith("masfactory."))
        return any(getattr(type(self), name) is not getattr(mine, name) for name in names)

    def core_settings(self) -> dict[str, Any]:
        """Give the settings of axil's agent."""
        return {
            "prompt_template": self._prompt_template,
            "formatters": [PromptFormatter(self), self._out_formatter],
            "model_settings": self._model_settings,
            "role_name": self._role_name,
            "hide_unused_fields": self._hide_unused_fields,
            "max_repairs": self._max_retries - 1,
            "titles": TITLES,
            "instructions": self.instructions,
            "tools": self._user_tools,
            "memories": self._memories,
            "retrievers": self._retrievers,
        }

    def _more_settings(self) -> dict[str, Any]:
        """Give what a kind of agent has beyond that, in a graph."""
        return {}

    def _alone(self) -> Any:
        """Give an agent without a graph, which asks for what this one would.

        A reply has to have what edges carry; without edges, what is pushed.
        """
        keys = descriptions(self.output_keys) or self.pushed
        return self._prompted(
            ObservingSingleAgent(
                askable(self._model), name=self.name, output_keys=keys, **self.core_settings()
            )
        )

    def _prompted(self, core: Any) -> Any:
        core.prompting = self
        return core

    def component(self) -> Any:
        if self._is_own(self._own):
            return CustomNode(forward=self.body(self._forward))
        hooks, model = self._hooks, askable(self._model)
        if hooks.has_any(self.Hook.THINK_COMPLETED, self.Hook.ACT_COMPLETED):
            model = ObservedModel(self, model)
        return self._prompted(
            self.core_class(model, **self.core_settings(), **self._more_settings())
        )


def by_position(
    order: Sequence[str], given: Sequence[Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Give settings, those by position included. Raises: TypeError: too many, or one twice."""
    names = order[: len(given)]
    twice = sorted(settings.keys() & set(names))
    if len(given) > len(order) or twice:
        raise TypeError(f"{len(given)} settings by position, {', '.join(twice) or 'too many'}.")
    return {**dict(zip(names, given, strict=True)), **settings}


async def _closing(model: Any, answer: Any) -> Any:
    if not hasattr(model, "__aenter__"):
        return await answer
    async with model:
        return await answer


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(cast("Sequence[Any]", given)) if isinstance(given, (list, tuple)) else [given]


def _two(given: Any, name: str) -> tuple[Any, Any]:
    """Return the formatters of prompts and of replies. Raises: ValueError: there are others."""
    several = [given] if not isinstance(given, list) else cast("list[Any]", given)
    if given is None:
        several = [ParagraphMessageFormatter(), JsonMessageFormatter()]
    if not 1 <= len(several) <= 2 or any(not hasattr(each, "dump") for each in several):
        raise ValueError(
            f'agent "{name}": found formatters {given!r:.80}, expected one or a list of two: of '
            "prompts, and of replies. Give objects."
        )
    return several[0], several[-1]


def _context_tools(providers: Sequence[Any]) -> list[Callable[..., Any]]:
    """Return the two functions that ask active providers; none where there is no such provider."""
    sources: dict[str, ContextProvider] = {}
    for provider in providers:
        active = getattr(provider, "active", False) and getattr(provider, "supports_active", True)
        if active and hasattr(provider, "get_blocks"):
            label = str(getattr(provider, "context_label", "") or type(provider).__name__)
            same = sum(name.partition("#")[0] == label for name in sources)
            sources[f"{label}#{same + 1}" if same else label] = provider
    if not sources:
        return []

    def list_context_sources() -> dict[str, Any]:
        """List the sources of context that can be searched."""
        return {"sources": [{"name": name} for name in sources]}

    def retrieve_context(source: str, query: str, top_k: int = 8) -> dict[str, Any]:
        """Search one source of context.

        Args:
            source: the name of the source.
            query: what to look for.
            top_k: how many blocks.
        """
        if source not in sources:
            raise ValueError(
                f'there is no context source "{source}"; there are {", ".join(sources)}.'
            )
        blocks = sources[source].get_blocks(axil_models.ContextQuery(query), top_k=top_k)
        if inspect.isawaitable(blocks):
            raise TypeError(f'the source "{source}" is async; let a run of the graph ask it.')
        return {"provider": source, "query": query, "blocks": [b.text for b in blocks]}

    return [list_context_sources, retrieve_context]

"""``SingleAgent``: an agent without a graph."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, cast, overload

from axil import run_sync
from axil.plugin import Message, did_you_mean
from axil_agent.agent import Agent
from axil_agent.converse import think
from axil_agent.models import Chosen
from axil_agent.prompt import Style, Wiring
from axil_agent.sharing import shared_values
from axil_agent.standalone import StandaloneContext
from axil_models import (
    ModelLike,
    Part,
    Reply,
    Request,
    Structure,
    checked_settings,
    plain_data,
    text_part,
)

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from axil_agent.arguments import First, SingleOptions
    from axil_agent.stage import Stage


_Turn = Future["_Turn | None"]
"""Done when a turn has ended; with the one that is to be waited for instead, where it had none."""


class _Conversation:
    """The conversation that a thread continues."""

    def __init__(self) -> None:
        self.local: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self._last: _Turn | None = None
        self._lock = threading.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Let turns through one by one, in order, from any thread or event loop; those that a turn
        asks for itself run inside it.
        """
        if self in _inside.get():
            yield
            return
        mine: _Turn = Future()
        with self._lock:
            before, self._last = self._last, mine
        try:
            while before is not None:
                before = await asyncio.shield(asyncio.wrap_future(before))
            token = _inside.set(_inside.get() | {self})
            try:
                yield
            finally:
                _inside.reset(token)
        finally:
            # a caller that gave up waiting lets no other through before the one at work
            mine.set_result(before)


_inside: ContextVar[frozenset[_Conversation]] = ContextVar(
    "axil_agent_conversations", default=frozenset()
)
"""Conversations of which a turn is under way here."""


async def ask(
    model: ModelLike,
    prompt: str | Sequence[Message],
    *,
    ctx: Stage | None = None,
    settings: Mapping[str, object] | None = None,
    output: Structure | None = None,
    name: str = "ask",
) -> Reply:
    """Return what a model replies, asked outside an agent; ``models_through`` holds.

    Args:
        model: as of ``Agent``.
        prompt: the user's message, or a conversation.
        ctx: the context of a firing: the call is then a step ``name`` of its run, recorded and
            counted. Names of calls of one firing differ.
        output: the form that the reply has to have.
    Raises: ModelContract (AX654, AX666); and what the model raises.
    """
    chosen = Chosen(model, "ask")
    messages: Sequence[Message] = (
        [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    )
    request = Request(messages=messages, settings=checked_settings(settings), output=output)
    try:
        return await think(
            await chosen.ready(), request, ctx or StandaloneContext(), f"{name}:model"
        )
    finally:
        await chosen.close()


T = TypeVar("T")


Said = str | Sequence[str | Part]
"""A message: a text, or texts, images and files."""


class _Said(dict[str, object]):
    """A message to an agent, as its field ``message``: sent as it is where there is no template."""


class SingleAgent(Agent, Generic[T]):
    """An agent that is asked directly: ``invoke(text) -> fields``, ``invoke(fields) -> fields``, or
    an object of the type that ``output_type`` names.

    It cannot be inside a graph. Invocations share nothing, and any number may be under way; those
    that name a ``thread`` continue its conversation.
    """

    root_only = True

    @overload
    def __init__(
        self,
        *args: First,
        output_type: type[T],
        **settings: Unpack[SingleOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        *args: First,
        output_type: Callable[..., Coroutine[object, object, T]],
        **settings: Unpack[SingleOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        *args: First,
        output_type: Callable[..., T],
        **settings: Unpack[SingleOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: SingleAgent[dict[str, Any]],
        *args: First,
        output_type: None = None,
        **settings: Unpack[SingleOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        *args: First,
        output_type: TypeForm[T],  # a Literal, a union
        **settings: Unpack[SingleOptions],
    ) -> None: ...

    def __init__(
        self,
        *args: Any,
        name: str = "agent",
        output_keys: Mapping[str, str] | Sequence[str] | None = None,
        workspace: str | Path | None = None,
        **settings: Any,  # those of Agent, which the overloads name
    ) -> None:
        """``args``: as of ``Agent``, or a name, a model and what follows.

        ``output_keys``: fields that a reply has to have, with descriptions; usual: ``message``, in
        prose.

        ``workspace``: where the paths of images and files begin.
        """
        if len(args) > 1 and isinstance(args[0], str) and not isinstance(args[1], (str, list)):
            name, *args = args  # type: ignore[assignment]  # MASFactory's order
        super().__init__(*args, name=name, **settings)
        self._workspace = None if workspace is None else Path(workspace)
        keys = (
            dict(output_keys)
            if isinstance(output_keys, Mapping)
            else dict.fromkeys(output_keys or (), "")
        )
        if self._formatters is None and self.output_type is None:
            keys = keys or {"message": ""}
        self._wiring = Wiring(node=name, needed=self.wanted(keys))
        self._threads: dict[str, _Conversation] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            message = f'{type(self).__name__} "{self.__dict__.get("name")}" has no "{name}".'
            if name in ("stream", "astream"):
                message += (
                    " run gives on_chunk what is streamed: await agent.run(…, on_chunk=show)."
                )
            elif name in ("run_sync", "execute", "call", "ainvoke"):
                message += " run is to be awaited; invoke runs it and waits."
            elif near := did_you_mean(name, (each for each in dir(self) if each[0] != "_")):
                message += f" {near}"
            raise AttributeError(message, name=name, obj=self)

    def _inputs_and_style(
        self, inputs: Mapping[str, object], wiring: Wiring
    ) -> tuple[Mapping[str, object], Style]:
        style = self.style
        if isinstance(inputs, _Said) and style.template is None:
            titles: dict[str, str | None] = {**style.titles, "message": ""}
            style = replace(style, template="{message}", hide_unused_fields=True, titles=titles)
        return inputs, style

    def invoke(
        self,
        inputs: Said | Mapping[str, object],
        attributes: Mapping[str, object] | None = None,
        *,
        thread: str = "",
        deps: object = None,
    ) -> T:
        """``run``, without an event loop. Raises: as ``run``; RuntimeError: a loop is running."""

        async def once() -> T:
            try:
                return await self.run(inputs, attributes, thread=thread, deps=deps)
            finally:
                await self._model.close()  # its connections cannot outlive this loop

        return run_sync(once())

    async def run(
        self,
        inputs: Said | Mapping[str, object],
        attributes: Mapping[str, object] | None = None,
        *,
        thread: str = "",
        deps: object = None,
        on_chunk: Callable[[object], None] | None = None,
    ) -> T:
        """Return the fields of one reply, or an object of the output's type. Connections of its
        model are kept until ``close``.

        Args:
            inputs: fields, or a message: a text, or a list of texts, images and files. It is the
                field ``message`` of a template.
            deps: ``ctx.deps`` of tools that have a parameter ``ctx``.
            thread: the conversation that this turn belongs to, kept in this object, by a
                ``HistoryMemory`` where it has no memory. Its turns wait for one another.
            on_chunk: called with what is streamed: texts, tool calls, results.
        Raises: ReplyError, TurnLimit, ContextError, PromptError, WiringError; and what the model
        raises.
        """
        if not isinstance(inputs, Mapping):
            inputs = _Said(message=_content(inputs))
        if thread and not self._memories:
            from axil_agent.history import HistoryMemory

            self.add_memory(HistoryMemory())
        self.check(self._wiring)
        conversation = (
            self._threads.setdefault(thread, _Conversation()) if thread else _Conversation()
        )
        async with conversation.turn():
            stage = StandaloneContext(
                plain_data(conversation.local), on_chunk, dict(conversation.state)
            )
            stage.workspace, stage.thread, stage.deps = self._workspace, thread, deps
            fields, answer = await self.turn(inputs, attributes or {}, stage, self._wiring)
            conversation.state |= shared_values(stage)
            conversation.local = stage.local
        return cast("T", fields if self.output_type is None else answer.value)

    def forget(self, thread: str) -> None:
        """End a conversation."""
        self._threads.pop(thread, None)


def _content(said: Said) -> object:
    """Return what was said as the content of a message."""
    if isinstance(said, str):
        return said
    return [text_part(each) if isinstance(each, str) else dict(each) for each in said]

"""From what a user gives as a model to a model: an object, a name, ``{type: …, …}``, or an object
with MASFactory's ``invoke``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from axil import ConfigError, Problem
from axil.plugin import (
    LoopLocal,
    Place,
    current_grants,
    granted,
    is_async,
    signature_of,
    with_article,
)
from axil_models import (
    Emit,
    Model,
    ModelContract,
    ModelLike,
    Reply,
    Request,
    ToolCall,
    Usage,
    call_async,
    in_thread,
    name_and_config,
    read_arguments,
)

if TYPE_CHECKING:
    from axil.plugin import CompileOptions

Through = Callable[[Callable[[], Model], Any], Model]
"""From a way to make the model that was meant, and what was written for it, to the model that is
asked.
"""

_through: ContextVar[Through | None] = ContextVar("axil_agent_models", default=None)


@contextlib.contextmanager
def models_through(change: Through) -> Generator[None]:
    """Within the ``with``, every agent asks the model that ``change`` gives instead of its own.

    For work without a key (``lambda meant, written: Scripted(…)``) and for recordings (``lambda
    meant, written: Recorder(meant(), …)``). It holds for graphs that are built and run inside.
    """
    token = _through.set(change)
    try:
        yield
    finally:
        _through.reset(token)


@dataclass(slots=True)
class _Held:
    """Models with open connections on one event loop."""

    models: list[Any] = field(default_factory=list[Any])
    entering: asyncio.Lock = field(default_factory=asyncio.Lock)

    def has(self, model: object) -> bool:
        return any(each is model for each in self.models)


class Chosen:
    """The model of a node: found when it is first needed, or when the plan is made."""

    def __init__(self, given: ModelLike | None, where: str | Place = "model") -> None:
        self.given, self.where = given, where
        self._grants = current_grants()
        """The grants of the file that names it: it may be made when none are in force."""
        self._made: Model | None = None
        self._changed: tuple[Through, Model] | None = None
        self._held = LoopLocal(_Held)

    def check(self, setting: CompileOptions | None = None) -> None:
        """Make the model now, where nothing stands in for it.

        Raises: as ``model_of``; ModelContract (AX666): there is none.
        """
        if _through.get() is None:
            self._meant(setting)

    def _meant(self, setting: CompileOptions | None = None) -> Model:
        if self._made is None:
            with granted(self._grants or current_grants()):
                self._made = model_of(self.given, self.where, setting)
        return self._made

    def now(self) -> Model:
        """Return the model to ask."""
        change = _through.get()
        if change is None:
            return self._meant()
        changed = self._changed  # another thread may have another one
        if changed is None or changed[0] is not change:
            changed = self._changed = (change, change(self._meant, self.given))
        return changed[1]

    @property
    def can_talk(self) -> bool:
        """True if the model was made, and can talk."""
        return hasattr(self._made, "talking")

    async def ready(self) -> Model:
        """Return the model to ask, with its connections kept until ``close``."""
        model: Any = self.now()
        if hasattr(model, "__aenter__"):
            held = self._held.get()
            if not held.has(model):
                async with held.entering:
                    if not held.has(model):
                        await model.__aenter__()
                        held.models.append(model)
        return model

    async def close(self) -> None:
        """Let all connections go, even if one fails at it; close a model made from a name."""
        held = self._held.pop()
        close = getattr(self._made, "close", None)
        async with contextlib.AsyncExitStack() as stack:
            if close is not None and isinstance(self.given, (str, Mapping)):
                stack.push_async_callback(call_async, close)
            for model in held.models if held is not None else ():
                stack.push_async_callback(model.__aexit__, None, None, None)


def model_of(
    given: Any, where: str | Place = "model", setting: CompileOptions | None = None
) -> Model:
    """Return what was given as a model.

    Raises: ModelContract (AX654): it is not a model; (AX666) nothing was given; as ``resolve`` and
    ``make_component``.
    """
    if given is None:
        hint = "Give model=…, or use models_through."
        raise ModelContract("AX666", "there is no model to ask.", hint, str(where))
    if isinstance(given, (str, Mapping)):
        from axil.plugin import UnknownComponent, default_registry, make_component

        name, config = name_and_config(given)
        if not name:
            message, hint = 'the key "type" is missing.', "Write {type: openai, name: …}."
            raise ConfigError(Problem("AX132", str(where), message, hint))
        known = getattr(setting, "registry", None) or default_registry()
        inside = where
        if isinstance(where, Place) and isinstance(given, Mapping) and "config" in given:
            inside = where.at("config")
        try:
            found = known.resolve("models", name, str(where))
        except UnknownComponent as error:
            if not isinstance(given, str):
                raise
            adapter, _, rest = name.partition(":")  # as others write it
            is_adapter = bool(rest) and adapter in known.names("models")
            kind, own_name = (adapter, rest) if is_adapter else ("openai", name)
            own = f'If it is a model\'s own name: {{"type": "{kind}", "name": "{own_name}"}}.'
            hint = f"{own} {error.hint}".strip()
            raise UnknownComponent(error.message, hint=hint, where=error.where) from None
        made = make_component(found, config or {}, inside)
        if callable(getattr(made, "bind", None)):  # a model of models
            made.bind(setting)
        return model_of(made, where)
    if isinstance(given, type):
        message = f"{given.__name__} is a class, and no model."
        raise ModelContract("AX654", message, f"Give an object: {given.__name__}(…).", str(where))
    if is_async(getattr(given, "reply", None)):
        return given
    if callable(getattr(given, "invoke", None)):
        return Invoked(given)
    hint = "A model has `async reply(request, emit)`, or `invoke(messages, tools, settings)`."
    message = f"{with_article(type(given).__name__)} is not a model."
    raise ModelContract("AX654", message, hint, str(where))


def name_of(written: object) -> str:
    """Return the name of a model, from what was written for it.

    >>> name_of({"type": "openai", "name": "small"}), name_of("openai"), name_of(None)
    ('small', 'openai', '')
    """
    if isinstance(written, Mapping):
        given = cast("Mapping[str, object]", written)
        config = given.get("config")
        inner = cast("Mapping[str, object]", config) if isinstance(config, Mapping) else given
        return str(inner.get("name") or inner.get("model") or given.get("type") or "")
    return written if isinstance(written, str) else str(getattr(written, "name", "") or "")


class StandIn:
    """A model that answers for every agent, in the place of one with a name."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model, name
        self.provider_tools = getattr(model, "provider_tools", ())

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return its reply in the name of the model that was meant."""
        return await self.model.reply(request, emit, model=self.name)


class Invoked:
    """A model with MASFactory's contract: ``invoke(messages, tools, settings) -> {"type": "content"
    | "tool_call", "content": …}``.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the result of ``invoke``, awaited or called in a thread."""
        messages = [dict(m) for m in request.messages]
        tools: Any = [
            {"name": t.name, "description": t.description, "parameters": dict(t.parameters)}
            for t in request.tools
        ] or None
        settings = dict(request.settings) or None
        call = partial(self.model.invoke, messages, tools, settings=settings)
        if self._takes_names_only():
            call = partial(self.model.invoke, messages=messages, tools=tools, settings=settings)
        if is_async(self.model.invoke):
            return read_answer(await call())
        return read_answer(await in_thread(call, "axil-model"))

    def _takes_names_only(self) -> bool:
        try:
            parameters = signature_of(self.model.invoke).parameters
        except (TypeError, ValueError):
            return False
        found = parameters.get("messages")
        return found is not None and found.kind is found.KEYWORD_ONLY


def read_answer(answer: object) -> Reply:
    """Return a reply from what such a model gave. Raises: ModelContract (AX654): it is no reply."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str):
        return Reply(text=answer)
    kind: object = (
        cast("Mapping[str, object]", answer).get("type") if isinstance(answer, Mapping) else None
    )
    kind = str(getattr(kind, "value", kind)).lower()
    if kind not in ("content", "tool_call"):
        hint = 'Give {"type": "content" | "tool_call", "content": text | calls}.'
        raise ModelContract("AX654", f"the model gave {answer!r:.80}, which is no reply.", hint)
    data = cast("Mapping[str, object]", answer)
    usage = _usage(data.get("usage"))
    if kind == "content":
        return Reply(text=str(data.get("content") or ""), usage=usage, finish="stop")
    calls = cast("Sequence[Mapping[str, Any]]", data.get("content") or ())
    return Reply(
        tool_calls=tuple(_call(call, i) for i, call in enumerate(calls)),
        usage=usage,
        finish="tools",
    )


def _call(call: Mapping[str, object], number: int) -> ToolCall:
    arguments, fault = read_arguments(call.get("arguments"))
    return ToolCall(
        id=str(call.get("id") or f"call_{number}"),
        name=str(call.get("name") or ""),
        arguments=arguments,
        fault=fault,
    )


def _usage(given: object) -> Usage:
    if not isinstance(given, Mapping):
        return Usage()
    data = cast("Mapping[str, int | None]", given)
    return Usage(
        input_tokens=int(data.get("input_tokens") or 0),
        output_tokens=int(data.get("output_tokens") or 0),
    )

"""``cache`` among models: equal requests make one call.

Theory of operation
-------------------
The first of equal requests makes the call, in a task of its own; those that come meanwhile wait for
it, and are shown what it shows, from its beginning. One that is cancelled takes nothing from the
rest, and the call is given up when all are. A reply serves all, and so does an error. Errors are
not kept; replies are, for later requests, unless ``keep`` is false.

A call is paid once: requests that did not make it get the reply without usage.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Unpack
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import LoopLocal, decode_config, refers_to
from axil_agent.converse import names_of
from axil_agent.models import model_of
from axil_agent.replay import digest
from axil_models import Emit, Model, ModelLike, Reply, Request, Usage, call_async, plain_data

if TYPE_CHECKING:
    from axil.plugin import CompileOptions
    from axil_agent.keywords import CachedKeywords

MOST: Final = 1000
"""Replies that this process keeps, of all models together."""


class CacheConfig(BaseModel):
    """The model, and whether its replies are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: ModelLike = Field(
        description="The model: the name of an installed adapter, or {type: …} with its settings.",
        json_schema_extra=refers_to("models"),
    )
    keep: bool = Field(
        True,
        description="Also answer later requests, from the replies that this process keeps; "
        "false: only requests at the same time make one call.",
    )
    ttl_seconds: float | None = Field(
        None, gt=0, description="The longest age of a kept reply, in real time."
    )


class _Replies:
    """The newest replies of this process. Safe between threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, Reply]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, ttl_seconds: float | None) -> Reply | None:
        """Return the reply to a request, if it is recent enough."""
        with self._lock:
            at, reply = self._kept.get(key, (0.0, None))
        is_old = ttl_seconds is not None and time.monotonic() - at > ttl_seconds
        return None if is_old else reply

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply, and drop the oldest where there are too many."""
        with self._lock:
            self._kept[key] = (time.monotonic(), reply)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()


@dataclass(eq=False, slots=True)
class _Call:
    """A call under way."""

    task: asyncio.Task[Reply]
    listeners: list[Emit] = field(default_factory=list[Emit])
    shown: list[object] = field(default_factory=list[object])

    def emit(self, chunk: object, /) -> None:
        """Show a chunk to all that wait."""
        self.shown.append(chunk)
        for listener in tuple(self.listeners):
            listener(chunk)


_calls: LoopLocal[dict[str, _Call]] = LoopLocal(dict)
"""On each event loop, the calls under way by what is asked of which model."""
_objects: WeakKeyDictionary[object, int] = WeakKeyDictionary()
_numbers = itertools.count()


def _number(model: object) -> int:
    """Return the number that stands for a model given as an object."""
    try:
        return _objects.setdefault(model, next(_numbers))
    except TypeError:  # it cannot be remembered, so it is like no other
        return next(_numbers)


class Cached:
    """The model ``cache``: asks another model, once for equal requests."""

    examples = ({"model": {"type": "scripted", "config": {"rules": [{"replies": ["Hello."]}]}}},)

    Config = CacheConfig
    memory = _Replies()
    """The replies that this process keeps; ``Cached.memory.clear()`` drops them."""

    def __init__(
        self, config: CacheConfig | ModelLike, /, **settings: Unpack[CachedKeywords]
    ) -> None:
        """Take ``config``, or a model and settings: ``Cached(model, keep=False)``."""
        if not isinstance(config, CacheConfig):
            config = decode_config(CacheConfig, {"model": config, **settings}, "cache")
        self.config = config
        self._setting: CompileOptions | None = None
        self._made: Model | None = None
        given = self.config.model
        self._name: object = given if isinstance(given, (str, Mapping)) else _number(given)

    def bind(self, setting: CompileOptions | None) -> None:
        """Make the model now rather than with the first request. Raises: as ``model_of``."""
        self._setting = setting
        _ = self.model

    @property
    def model(self) -> Model:
        """The model that is asked; one given by name is made once. Raises: as ``model_of``."""
        if self._made is None:
            self._made = model_of(self.config.model, "model", self._setting)
        return self._made

    @property
    def names(self) -> tuple[str, ...]:
        """The model's names in prices."""
        return names_of(self.model)

    @property
    def modalities(self) -> object:
        """The kinds of parts that the model takes beside text, where it says so."""
        return getattr(self.model, "modalities", None)

    @property
    def provider_tools(self) -> object:
        """The tools that the model's provider has."""
        return getattr(self.model, "provider_tools", ())

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the reply to this request or to an equal one. Raises: what the model raises."""
        key = self._key(request)
        kept = self.memory.get(key, self.config.ttl_seconds) if self.config.keep else None
        if kept is not None:
            emit({"kind": "cache", "hit": True})
            return replace(kept, usage=Usage())
        calls = _calls.get()
        call = calls.get(key)
        is_shared = call is not None
        if call is None:
            call = calls[key] = self._started(calls, key, request)
        else:
            emit({"kind": "cache", "hit": True, "shared": True})
            for chunk in call.shown:
                emit(chunk)
        call.listeners.append(emit)
        try:
            reply = await asyncio.shield(call.task)
        finally:
            call.listeners.remove(emit)
            if not call.listeners and not call.task.done():  # all that waited were cancelled
                if calls.get(key) is call:
                    del calls[key]
                call.task.cancel()
        return replace(reply, usage=Usage()) if is_shared else reply

    def _started(self, calls: dict[str, _Call], key: str, request: Request) -> _Call:
        async def ask() -> Reply:
            try:
                reply = await self.model.reply(request, lambda chunk: call.emit(chunk))
                if self.config.keep:
                    self.memory.put(key, reply)
                return reply
            finally:
                if calls.get(key) is call:
                    del calls[key]

        task = asyncio.create_task(ask())
        # where all were cancelled, its error is raised to no caller
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        call = _Call(task)
        return call

    def _key(self, request: Request) -> str:
        # by what a file says of the model, so the agents of a file share one
        return digest({"model": plain_data(self._name), **request.plain()})

    async def close(self) -> None:
        """Close the model, if it was made from a name."""
        made, self._made = self._made, None
        close = getattr(made, "close", None)
        if close is not None and isinstance(self.config.model, (str, Mapping)):
            await call_async(close)

    def __repr__(self) -> str:
        return f"Cached({self.config.model!r})"

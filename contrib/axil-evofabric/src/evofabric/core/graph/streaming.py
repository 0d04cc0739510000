"""The output of nodes while they work: to the handler of the process, and as chunks of axil's
runs.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydantic import BaseModel

from evofabric.core.factory.components import BaseComponent

__all__ = [
    "StreamCtx",
    "StreamWriter",
    "current_ctx",
    "get_stream_writer",
    "set_streaming_handler",
    "stream_writer_env",
]


class StreamCtx(BaseModel):
    """The place where output is shown."""

    node_name: str | None = None
    call_id: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    meta: dict[str, Any] | None = None

    def __bool__(self) -> bool:
        return any((self.node_name, self.call_id, self.tool_name, self.tool_call_id))


_where: ContextVar[StreamCtx | None] = ContextVar("evofabric_where", default=None)
_run: ContextVar[Any] = ContextVar("evofabric_run", default=None)
_handlers: list[Callable[[dict[str, Any]], Any]] = []
_tasks: set[asyncio.Task[Any]] = set()


def set_streaming_handler(callback: Callable[[dict[str, Any]], Any]) -> None:
    """Set the handler of the process: a function of ``{"node_name", "call_id", "payload", …}``.

    An async one runs beside the node; ``GraphEngine.run`` waits for it at the end.
    """
    _handlers[:] = [callback]


async def settled() -> None:
    """Wait for the handlers that are under way on this loop."""
    here = asyncio.get_running_loop()
    while waiting := [task for task in _tasks if task.get_loop() is here]:
        await asyncio.gather(*waiting, return_exceptions=True)


def current_ctx() -> StreamCtx:
    """Give where the caller is."""
    return _where.get() or StreamCtx()


@contextmanager
def stream_writer_env(ctx_updates: StreamCtx) -> Generator[None]:
    """Show things as from another place within."""
    before = current_ctx()
    said = ctx_updates.model_dump(exclude_unset=True)
    if ctx_updates.meta is not None:
        said["meta"] = {**(before.meta or {}), **ctx_updates.meta}
    token = _where.set(before.model_copy(update=said))
    try:
        yield
    finally:
        _where.reset(token)


@contextmanager
def within(ctx: Any) -> Generator[None]:
    """Be within a firing of a run of axil: what is shown is a chunk of it, too."""
    token = _run.set(ctx)
    try:
        yield
    finally:
        _run.reset(token)


def current_run() -> Any:
    """Give the context of axil of the present firing; None: there is none."""
    return _run.get()


class StreamWriter(BaseComponent):
    """Shows what a node has so far."""

    @staticmethod
    def put(payload: Any) -> None:
        """Show something."""
        envelope = {**current_ctx().model_dump(exclude_unset=True), "payload": payload}
        for handler in _handlers:
            if inspect.iscoroutinefunction(handler):
                _later(handler(envelope))
            else:
                handler(envelope)
        ctx = current_run()
        if ctx is not None:
            dump = getattr(payload, "model_dump", None)
            ctx.emit(dump() if dump is not None else payload)


def _later(work: Any) -> None:
    try:
        task = asyncio.get_running_loop().create_task(work)
    except RuntimeError:  # a plain function, which runs in a thread
        asyncio.run(work)
        return
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


_writer = StreamWriter()


def get_stream_writer() -> StreamWriter:
    """Give the writer."""
    return _writer

"""The output of nodes while they work: to the handler of the process, and as chunks of axil's
runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = [
    "StreamCtx",
    "StreamWriter",
    "current_ctx",
    "get_stream_writer",
    "set_streaming_handler",
    "stream_writer_env",
]


@dataclass(frozen=True, slots=True)
class StreamCtx:
    """The place where output is shown."""

    node_name: str | None = None
    call_id: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    meta: dict[str, Any] | None = None


_where: ContextVar[StreamCtx | None] = ContextVar("evofabric_where", default=None)
_emit: ContextVar[Callable[[Any], None] | None] = ContextVar("evofabric_emit", default=None)
_handlers: list[Callable[[dict[str, Any]], Any]] = []


def set_streaming_handler(callback: Callable[[dict[str, Any]], Any]) -> None:
    """Set the handler of the process: a function of ``{"node_name", "call_id", "payload", …}``.

    Raises: TypeError: it is async; ``axil.RootGraph.stream`` is for what waits.
    """
    if inspect.iscoroutinefunction(callback):
        raise TypeError(
            "set_streaming_handler: found an async function, expected a plain one. "
            "Watch GraphEngine.axil.stream(…) where the handler has to wait."
        )
    _handlers[:] = [callback]


def current_ctx() -> StreamCtx:
    """Give where the caller is."""
    return _where.get() or StreamCtx()


@contextmanager
def stream_writer_env(ctx_updates: StreamCtx) -> Generator[None]:
    """Show things as from another place within."""
    said = {name: value for name, value in asdict(ctx_updates).items() if value is not None}
    token = _where.set(replace(current_ctx(), **said))
    try:
        yield
    finally:
        _where.reset(token)


@contextmanager
def emitting(emit: Callable[[Any], None]) -> Generator[None]:
    """Show things as chunks of a run of axil within, too."""
    token = _emit.set(emit)
    try:
        yield
    finally:
        _emit.reset(token)


class StreamWriter:
    """Shows what a node has so far."""

    def put(self, payload: Any) -> None:
        """Show something."""
        reported = {
            name: value for name, value in asdict(current_ctx()).items() if value is not None
        }
        for handler in _handlers:
            handler({**reported, "payload": payload})
        emit = _emit.get()
        if emit is not None:
            dump = getattr(payload, "model_dump", None)
            emit(dump() if dump is not None else payload)


def get_stream_writer() -> StreamWriter:
    """Give a writer."""
    return StreamWriter()

"""Nodes: functions, and objects that are called as one."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, cast

from evofabric.core.graph.streaming import (
    StreamCtx,
    StreamWriter,
    emitting,
    stream_writer_env,
)
from evofabric.core.typing import StateBaseMessage


class NodeBase(ABC):  # noqa: B024  # its kinds differ in how they are called
    """The base of nodes that are objects."""


class SyncNode(NodeBase):
    """A node that is called with the state."""

    @abstractmethod
    def __call__(self, state: Any) -> Any: ...


class AsyncNode(NodeBase):
    """A node that is called with the state, and awaited."""

    @abstractmethod
    async def __call__(self, state: Any) -> Any: ...


class SyncStreamNode(NodeBase):
    """A node that is called with the state and a writer."""

    @abstractmethod
    def __call__(self, state: Any, stream_writer: StreamWriter) -> Any: ...


class AsyncStreamNode(NodeBase):
    """A node that is called with the state and a writer, and awaited."""

    @abstractmethod
    async def __call__(self, state: Any, stream_writer: StreamWriter) -> Any: ...


class Asking(NodeBase):
    """A node that is given the context of axil: to ask a person, to do something once."""

    @abstractmethod
    async def fire(self, state: Any, ctx: Any) -> Any:
        """Give the delta."""


def body_of(name: str, node: Any) -> Callable[..., Any]:
    """Give a node as a body of axil."""
    if isinstance(node, Asking):

        async def asking(state: Any, ctx: Any) -> Any:
            with _place(name, ctx):
                return stamped(await node.fire(state, ctx), name)

        return asking
    called = node if inspect.isroutine(node) or _is_partial(node) else node.__call__
    streams = "stream_writer" in inspect.signature(called).parameters
    given = {"stream_writer": StreamWriter()} if streams else {}
    if _waits(called):

        async def waiting(state: Any, ctx: Any) -> Any:
            with _place(name, ctx):
                return stamped(await called(state, **given), name)

        return waiting

    def working(state: Any, ctx: Any) -> Any:
        with _place(name, ctx):
            return stamped(called(state, **given), name)

    return working


class _place:  # a context manager, called like one
    def __init__(self, name: str, ctx: Any) -> None:
        activation = ctx.activation
        here = StreamCtx(node_name=name, call_id=f"{activation.path}#{activation.ordinal}")
        self._inside = (stream_writer_env(here), emitting(ctx.emit))

    def __enter__(self) -> None:
        for each in self._inside:
            each.__enter__()

    def __exit__(self, *failure: Any) -> None:
        for each in reversed(self._inside):
            each.__exit__(*failure)


def _is_partial(node: Any) -> bool:
    return hasattr(node, "func") and hasattr(node, "keywords")


def _waits(called: Any) -> bool:
    while _is_partial(called):
        called = called.func
    return inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(
        getattr(called, "__call__", None)  # noqa: B004  # an object whose call is async
    )


def stamped(delta: Any, name: str) -> Any:
    """Give a delta whose messages say which node they are from."""
    if delta is None:
        return {}
    if hasattr(delta, "model_dump") and not isinstance(delta, Mapping):
        delta = {field: getattr(delta, field) for field in delta.model_fields_set}
    if not isinstance(delta, Mapping):
        return delta
    reported = dict(cast("Mapping[str, Any]", delta))
    for field, value in reported.items():
        if isinstance(value, list):
            reported[field] = [
                each.model_copy(update={"node_name": name})
                if isinstance(each, StateBaseMessage)
                else each
                for each in cast("list[Any]", value)
            ]
    return reported

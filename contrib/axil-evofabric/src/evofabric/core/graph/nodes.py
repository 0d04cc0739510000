"""Nodes: functions, and objects that are called as one."""

from __future__ import annotations

import functools
import inspect
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

from axil.plugin import signature_of, without_views
from evofabric.core.factory.components import BaseComponent
from evofabric.core.graph.streaming import (
    StreamCtx,
    StreamWriter,
    get_stream_writer,
    stream_writer_env,
    within,
)
from evofabric.core.typing import StateBaseMessage, cast_state_message


class NodeBase(BaseComponent):
    """The base of nodes that are objects: models, whose fields are their settings."""


class SyncNode(NodeBase):
    """A node that is called with the state."""

    def __call__(self, state: Any) -> Any: ...


class AsyncNode(NodeBase):
    """A node that is called with the state, and awaited."""

    async def __call__(self, state: Any) -> Any: ...


class SyncStreamNode(NodeBase):
    """A node that is called with the state and a writer."""

    def __call__(self, state: Any, stream_writer: StreamWriter) -> Any: ...


class AsyncStreamNode(NodeBase):
    """A node that is called with the state and a writer, and awaited."""

    async def __call__(self, state: Any, stream_writer: StreamWriter) -> Any: ...


def callable_to_node(callable_obj: Callable[..., Any]) -> NodeBase:
    """Give a function as a node of the kind that it is."""
    called, streams, waits = _kind_of(callable_obj)
    base = {
        (False, False): SyncNode,
        (True, False): AsyncNode,
        (False, True): SyncStreamNode,
        (True, True): AsyncStreamNode,
    }[waits, streams]

    def work(self: Any, *given: Any, **named: Any) -> Any:
        del self
        return called(*given, **named)

    async def wait(self: Any, *given: Any, **named: Any) -> Any:
        del self
        return await called(*given, **named)

    name = getattr(callable_obj, "__name__", type(callable_obj).__name__)
    made: Any = type(f"Node_{name}", (base,), {"__call__": wait if waits else work})
    return made()


def _kind_of(node: Any) -> tuple[Callable[..., Any], bool, bool]:
    """Give what is called, whether it takes a writer, and whether it is awaited."""
    called = node if inspect.isroutine(node) or _is_partial(node) else node.__call__
    if isinstance(node, NodeBase):
        streams = isinstance(node, (SyncStreamNode, AsyncStreamNode))
    else:
        streams = "stream_writer" in signature_of(called).parameters
    return called, streams, _waits(called)


def _is_partial(node: Any) -> bool:
    return isinstance(node, functools.partial)


def _waits(called: Any) -> bool:
    while _is_partial(called):
        called = called.func
    return inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(
        getattr(called, "__call__", None)  # noqa: B004  # an object whose call is async
    )


def body_of(name: str, node: Any, fields: Collection[str]) -> Callable[..., Any]:
    """Give a node as a body of axil.

    Args:
        fields: those of the state; a delta's others are left out.
    """
    called, streams, waits = _kind_of(node)
    given = {"stream_writer": get_stream_writer()} if streams else {}

    async def waiting(ctx: Any) -> Any:
        with stream_writer_env(_place(name, ctx)), within(ctx):
            return delta_of(await called(own_state(ctx.state), **given), name, fields)

    def working(ctx: Any) -> Any:
        with stream_writer_env(_place(name, ctx)), within(ctx):
            return delta_of(called(own_state(ctx.state), **given), name, fields)

    return waiting if waits else working


def _place(name: str, ctx: Any) -> StreamCtx:
    activation = ctx.activation
    return StreamCtx(node_name=name, call_id=f"{activation.path}#{activation.ordinal}")


def own_state(view: Any) -> Any:
    """Give a state as an instance, or a dict, of the program's own; lists are lists."""
    if isinstance(view, Mapping):
        return {key: without_views(value) for key, value in cast("Any", view).items()}
    return without_views(view)


def delta_of(given: Any, name: str, fields: Collection[str]) -> dict[str, Any]:
    """Give what a node returned as the fields that it writes; messages say which node they are
    from.
    """
    return stamped(fields_of(given, f"node {name!r}", fields), name)


def fields_of(given: Any, where: str, fields: Collection[str]) -> dict[str, Any]:
    """Give a mapping's or an object's values of these fields, and warn of others."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        found = dict(cast("Mapping[str, Any]", given))
    elif hasattr(given, "model_dump"):
        found = {field: getattr(given, field) for field in fields if hasattr(given, field)}
    else:
        warnings.warn(
            f"{where} gave {type(given).__name__}, expected a mapping of fields; it has no "
            "effect. Return {field: value}.",
            stacklevel=2,
        )
        return {}
    strange = [str(field) for field in found if field not in fields]
    if strange:
        warnings.warn(
            f"{where} gave {', '.join(strange)}, which the state has not; left out. Declare "
            "it in the schema.",
            stacklevel=2,
        )
    return {field: value for field, value in found.items() if field in fields}


def stamped(delta: dict[str, Any], name: str | None) -> dict[str, Any]:
    """Give a delta whose messages have ids, and say which node they are from."""
    for field, value in delta.items():
        if isinstance(value, (list, tuple)):
            delta[field] = list(_stamped(cast("list[Any]", value), field, name))
    return delta


def _stamped(values: Iterable[Any], field: str, name: str | None) -> Iterable[Any]:
    for each in values:
        message = each
        if field == "messages" and isinstance(each, Mapping) and "role" in each:
            message = cast_state_message(each)
        if isinstance(message, StateBaseMessage):
            message.msg_id = message.msg_id or uuid.uuid4().hex
            if name is not None and field == "messages":
                message.node_name = name
        yield message

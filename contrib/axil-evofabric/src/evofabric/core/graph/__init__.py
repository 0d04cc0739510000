"""Graphs on a typed state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing
from evofabric.core.graph.builder import GraphBuilder, GraphEngine
from evofabric.core.graph.nodes import (
    AsyncNode,
    AsyncStreamNode,
    NodeBase,
    SyncNode,
    SyncStreamNode,
    callable_to_node,
)
from evofabric.core.graph.state import StateUpdater, generate_state_schema
from evofabric.core.graph.streaming import (
    StreamCtx,
    StreamWriter,
    current_ctx,
    get_stream_writer,
    set_streaming_handler,
    stream_writer_env,
)

__all__ = [
    "AsyncNode",
    "AsyncStreamNode",
    "GraphBuilder",
    "GraphEngine",
    "NodeBase",
    "StateUpdater",
    "StreamCtx",
    "StreamWriter",
    "SyncNode",
    "SyncStreamNode",
    "callable_to_node",
    "current_ctx",
    "generate_state_schema",
    "get_stream_writer",
    "set_streaming_handler",
    "stream_writer_env",
]

_STATE = "States are values of axil.State, which a run keeps; see axil's model of state."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "StateCkpt": _STATE,
        "GraphEngineDebugger": "Run with a journal, and inspect the run with axil-journals.",
        "RunTimeTask": _STATE,
        "TreeNode": _STATE,
        "RuntimeTaskTree": _STATE,
        "GraphNodeSpec": "A node of a graph is axil.NodeSpec.",
        "EdgeSpec": "An edge of a graph is axil.EdgeSpec.",
        "EdgeSpecBase": "An edge of a graph is axil.EdgeSpec.",
        "ConditionEdgeSpec": "Routers are made by axil's Graph.create_router.",
    },
)

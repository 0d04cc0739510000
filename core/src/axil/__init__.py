"""axil: multi-agent workflow graphs from a small kernel and plugins.

>>> import axil
>>> g = axil.RootGraph("hello")
>>> greet = g.create_node(axil.CustomNode, name="greet", forward=lambda inputs: {"text": f"hello {inputs['name']}"})
>>> _ = g.edge_from_entry(greet, ["name"]), g.edge_to_exit(greet, ["text"])
>>> g.build().invoke({"name": "world"})
({'text': 'hello world'}, {})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axil.context import Context, Question
from axil.errors import (
    AxilError,
    ConfigError,
    LimitReached,
    NodeFailed,
    PluginError,
    Problem,
    RunCancelled,
    RunPaused,
    SpecError,
    StateError,
)
from axil.fields import Reducer
from axil.graph import Graph, RootGraph
from axil.hooks import hookimpl
from axil.journal import MemoryJournal
from axil.loop import Loop
from axil.nodes import CustomNode, node
from axil.result import Event, Options, Result
from axil.spec import CycleLimit, EdgeSpec, GraphSpec, Limits, NodeSpec, Use
from axil.state import Schema, State
from axil.tokens import Activation, Out, Token
from axil.values import MISSING
from axil.views import safe_get_attr
from axil.workflow import Workflow, load

if TYPE_CHECKING:
    from axil.reducers import reducer, register_strategy
    from axil.run import Run, run_sync
    from axil.schema import generate_state_schema, schema_of

_LATER = {
    "reducer": "axil.reducers",
    "register_strategy": "axil.reducers",
    "Run": "axil.run",
    "run_sync": "axil.run",
    "generate_state_schema": "axil.schema",
    "schema_of": "axil.schema",
}


def __getattr__(name: str) -> Any:
    """What is imported only when it is used: files, schemas, and the shell with asyncio."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'axil' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)


__all__ = [
    "MISSING",
    "Activation",
    "AxilError",
    "ConfigError",
    "Context",
    "CustomNode",
    "CycleLimit",
    "EdgeSpec",
    "Event",
    "Graph",
    "GraphSpec",
    "LimitReached",
    "Limits",
    "Loop",
    "MemoryJournal",
    "NodeFailed",
    "NodeSpec",
    "Options",
    "Out",
    "PluginError",
    "Problem",
    "Question",
    "Reducer",
    "Result",
    "RootGraph",
    "Run",
    "RunCancelled",
    "RunPaused",
    "Schema",
    "SpecError",
    "State",
    "StateError",
    "Token",
    "Use",
    "Workflow",
    "generate_state_schema",
    "hookimpl",
    "load",
    "node",
    "reducer",
    "register_strategy",
    "run_sync",
    "safe_get_attr",
    "schema_of",
]

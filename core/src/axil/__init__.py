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

if TYPE_CHECKING:
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
    from axil.reducers import reducer, register_strategy
    from axil.result import Event, Options, Result
    from axil.run import Run, run_sync
    from axil.schema import generate_state_schema, schema_of
    from axil.spec import CycleLimit, EdgeSpec, GraphSpec, Limits, NodeSpec, Use
    from axil.state import Schema, State
    from axil.tokens import Activation, Out, Token
    from axil.values import MISSING
    from axil.views import safe_get_attr
    from axil.workflow import Workflow, load

_NAMES = {
    "context": "Context Question",
    "errors": "AxilError ConfigError LimitReached NodeFailed PluginError Problem RunCancelled RunPaused SpecError StateError",
    "fields": "Reducer",
    "graph": "Graph RootGraph",
    "hooks": "hookimpl",
    "journal": "MemoryJournal",
    "loop": "Loop",
    "nodes": "CustomNode node",
    "reducers": "reducer register_strategy",
    "result": "Event Options Result",
    "run": "Run run_sync",
    "schema": "generate_state_schema schema_of",
    "spec": "CycleLimit EdgeSpec GraphSpec Limits NodeSpec Use",
    "state": "Schema State",
    "tokens": "Activation Out Token",
    "values": "MISSING",
    "views": "safe_get_attr",
    "workflow": "Workflow load",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Each name is imported when it is first used: who only asks for the version, or for one class, waits for nothing else."""
    if name not in _MODULES:
        raise AttributeError(f"module 'axil' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(f"axil.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__


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

"""axil: multi-agent workflow graphs from a small kernel and plugins.

>>> import axil
>>> g = axil.RootGraph("hello")
>>> def hello(inputs):
...     return {"text": f"hello {inputs['name']}"}
>>> greet = g.create_node(axil.CustomNode, name="greet", forward=hello)
>>> _ = g.edge_from_entry(greet, ["name"]), g.edge_to_exit(greet, ["text"])
>>> output, attributes = g.build().invoke({"name": "world"})
>>> output
{'text': 'hello world'}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axil._door import lazy

_SUBJECTS = {
    "Graphs": {
        "builder.graph": "Graph RootGraph",
        "axil_control.loop_graph": "Loop",
        "compiler.nodes": "CustomNode node",
        "builder.workflow": "Workflow load",
    },
    "Graphs as data": {
        "kernel.plan": "CycleLimit",
        "spec.graph": "EdgeSpec GraphSpec Limits NodeSpec Use",
    },
    "Bodies": {
        "contract.context": "Context Question",
        "contract.node": "Edge Node",
        "kernel.tokens": "Activation Out Token",
    },
    "State": {
        "axil_typed.reducers": "reducer register_strategy",
        "axil_typed.schema": "generate_state_schema schema_of",
        "kernel.state": "Reducer Schema State",
        "kernel.values": "MISSING",
        "contract.views": "safe_get_attr",
    },
    "Runs": {
        "axil_journals.journal": "MemoryJournal",
        "runtime.result": "Event Options Result",
        "runtime.run": "Run run_sync",
    },
    "Errors": {
        "errors": """
            AxilError ConfigError LimitReached NodeFailed PluginError Problem RunCancelled
            RunPaused SpecError StateError GraphWarning
        """,
    },
    "Hooks": {
        "contract.hooks": "hookimpl",
    },
}

if TYPE_CHECKING:
    from axil.builder.graph import Graph, RootGraph
    from axil.builder.workflow import Workflow, load
    from axil.compiler.nodes import CustomNode, node
    from axil.contract.context import Context, Question
    from axil.contract.hooks import hookimpl
    from axil.contract.node import Edge, Node
    from axil.contract.views import safe_get_attr
    from axil.errors import (
        AxilError,
        ConfigError,
        GraphWarning,
        LimitReached,
        NodeFailed,
        PluginError,
        Problem,
        RunCancelled,
        RunPaused,
        SpecError,
        StateError,
    )
    from axil.kernel.plan import CycleLimit
    from axil.kernel.state import Reducer, Schema, State
    from axil.kernel.tokens import Activation, Out, Token
    from axil.kernel.values import MISSING
    from axil.runtime.result import Event, Options, Result
    from axil.runtime.run import Run, run_sync
    from axil.spec.graph import EdgeSpec, GraphSpec, Limits, NodeSpec, Use
    from axil_control.loop_graph import Loop
    from axil_journals.journal import MemoryJournal
    from axil_typed.reducers import reducer, register_strategy
    from axil_typed.schema import generate_state_schema, schema_of
else:
    __getattr__, __dir__ = lazy(globals(), _SUBJECTS)

__all__ = [
    "MISSING",
    "Activation",
    "AxilError",
    "ConfigError",
    "Context",
    "CustomNode",
    "CycleLimit",
    "Edge",
    "EdgeSpec",
    "Event",
    "Graph",
    "GraphSpec",
    "GraphWarning",
    "LimitReached",
    "Limits",
    "Loop",
    "MemoryJournal",
    "Node",
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

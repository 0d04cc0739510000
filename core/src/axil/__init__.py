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

from axil._lazy import lazy_names

_SUBJECTS = {
    "Graphs": {
        "builder.graph": "Graph RootGraph",
        "builder.workflow": "Workflow",
        "compiler.nodes": "CustomNode node",
    },
    "Graphs as data": {
        "kernel.plan": "CycleLimit",
        "spec.graph": "ComponentRef EdgeSpec GraphSpec Limits NodeSpec",
    },
    "Bodies": {
        "contract.context": "Context Question",
        "contract.node": "Edge Node",
        "kernel.tokens": "Activation Out Token",
    },
    "State": {
        "kernel.state": "Reducer Schema State",
        "kernel.values": "MISSING",
        "typed.reducers": "reducer register_strategy",
        "typed.schema": "generate_state_schema schema_of",
        "typed.views": "safe_get_attr",
    },
    "Runs": {
        "runtime.result": "Event Options Result",
        "runtime.run": "Run run_sync",
    },
    "Errors": {
        "errors": """
            AxilError ConfigError GraphWarning LimitReached NodeFailed
            PluginError Problem RunCancelled RunPaused SpecError StateError
        """,
    },
    "Hooks": {
        "contract.hooks": "hookimpl",
    },
}

_RENAMED = {"Use": "ComponentRef"}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS, _RENAMED)

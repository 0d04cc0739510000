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

from axil._door import lazy

_SUBJECTS = {
    "Graphs": {
        "builder.graph": "Graph RootGraph",
        "axil_control.loop_graph": "Loop",
        "compiler.nodes": "CustomNode node",
        "builder.workflow": "Workflow",
        "axil_files.workflows": "load",
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
        "axil_typed.reducers": "reducer register_strategy",
        "axil_typed.schema": "generate_state_schema schema_of",
        "kernel.state": "Reducer Schema State",
        "kernel.values": "MISSING",
        "axil_typed.views": "safe_get_attr",
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

_RENAMED = {"Use": "ComponentRef"}

__getattr__, __dir__, __all__ = lazy(globals(), _SUBJECTS, _RENAMED)

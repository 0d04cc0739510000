"""Names of ``axil`` for type checkers; written by ``make manifests``."""

from axil.builder.graph import Graph as Graph, RootGraph as RootGraph
from axil.builder.workflow import Workflow as Workflow
from axil.compiler.nodes import CustomNode as CustomNode, node as node
from axil.contract.context import Context as Context, Question as Question
from axil.contract.hooks import hookimpl as hookimpl
from axil.contract.node import Edge as Edge, Node as Node
from axil.errors import (
    AxilError as AxilError,
    ConfigError as ConfigError,
    GraphWarning as GraphWarning,
    LimitReached as LimitReached,
    NodeFailed as NodeFailed,
    PluginError as PluginError,
    Problem as Problem,
    RunCancelled as RunCancelled,
    RunPaused as RunPaused,
    SpecError as SpecError,
    StateError as StateError,
)
from axil.kernel.plan import CycleLimit as CycleLimit
from axil.kernel.state import Reducer as Reducer, Schema as Schema, State as State
from axil.kernel.tokens import Activation as Activation, Out as Out, Token as Token
from axil.kernel.values import MISSING as MISSING
from axil.runtime.result import Event as Event, Options as Options, Result as Result
from axil.runtime.run import Run as Run, run_sync as run_sync
from axil.spec.graph import (
    ComponentRef as ComponentRef,
    EdgeSpec as EdgeSpec,
    GraphSpec as GraphSpec,
    Limits as Limits,
    NodeSpec as NodeSpec,
)
from axil.typed.reducers import reducer as reducer, register_strategy as register_strategy
from axil.typed.schema import generate_state_schema as generate_state_schema, schema_of as schema_of
from axil.typed.views import safe_get_attr as safe_get_attr

Use = ComponentRef

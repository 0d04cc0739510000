"""Names for authors of plugins: what components are given, return and declare.

What users of axil need as well is in ``axil``; what journals, engines and executors need is in
``axil.driver``. Each name belongs to one of the three. The names are stable within a major
version, the modules that they come from may move.

>>> from axil.plugin import canonical_name, text_of
>>> canonical_name("Axil_Files"), text_of([{"role": "user", "content": "hello"}])
('axil-files', 'hello')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axil._door import lazy

_SUBJECTS = {
    "Nodes and bodies": {
        "compiler.bodies": """
            STAR Attributes BodyRules arranged as_body bind body_of inputs_of is_async parameters_of
            pushed_fields result_reader
        """,
        "contract.context": "SubRunResult",
        "contract.node": "NodeContract",
        "kernel.joins": "Join",
        "kernel.plan": "Body Mode",
        "compiler.nodes": "FunctionNode",
        "builder.graph": "EdgeHandle",
        "compiler.planner": "NodeInfo",
        "kernel.tokens": "Changes ENTRY EXIT Effects Task",
        "spec.graph": "kept_field local_field",
    },
    "Graphs as nodes": {
        "kernel.scopes": "SubgraphBody combine_deltas entry_tokens",
        "spec.graph": "SubgraphSpec",
    },
    "Edges": {
        "compiler.edges": "Condition EdgeInput Processor",
    },
    "Messages and payloads": {
        "contract.messages": """
            Message as_messages fold_payloads gather_messages is_messages message
            render text_of
        """,
    },
    "State and values": {
        "kernel.state": "APPEND Field FieldChange OVERWRITE",
        "axil_typed.reducers": "MAXIMUM SUM as_reducer",
        "axil_typed.views": "model_view",
        "kernel.values": "ATOMS Log isolate same_value=same thaw",
        "contract.views": "InstanceView StateView read_only without_views",
    },
    "Configuration and secrets": {
        "registry.config": """
            Misfit Secret decode_config is_private make_component misfits refers_to resolve_secret
        """,
        "registry.grants": """
            Grants Want current_grants granted note_own note_want noting_wants reads_path
            refusals_of sends_to writes_path
        """,
        "spec.graph": "FromEnvironment Place",
    },
    "Questions to people": {
        "contract.context": "Channel",
    },
    "Errors": {
        "errors": """
            BodyError ComponentBlocked ComponentConflict ConcurrentReset CycleError EngineError
            HookFailed InvalidValue JournalError KernelBug MissingKeys NotBuilt NotInstalled Overdue
            PluginContract PluginLoadError ProblemError RouteError RunError SchemaMismatch Uncertain
            UndeclaredField UnknownComponent did_you_mean format_names
        """,
    },
    "Budgets and prices": {
        "axil_budget.ledger": "Budget Ledger OverBudget Reservation Usage",
        "axil_budget.prices": "Estimate Estimator Price Pricing UnknownPrice",
    },
    "Event loops": {
        "contract.loops": "LoopLocal",
    },
    "Meters": {
        "contract.meters": "Hold Meter MeterMaker RunUsage",
    },
    "Hooks": {
        "contract.decisions": "Admission DECIDING_HOOKS Fail Firing Outcome Replace Retry Skip",
        "contract.hooks": "Hooks hook_manager",
        "contract.observers": "OBSERVER_HOOKS",
    },
    "Registry and policy": {
        "registry.kinds": """
            COMPONENT_KINDS CONTRACT_VERSIONS KERNEL canonical_name
            incompatibility kind_of_group
        """,
        "registry.policy": "Policy",
        "registry.registry": """
            Component Registry component_index default_registry use_registry
        """,
    },
    "Distributions: manifests and dependencies": {
        "registry.manifest": "MANIFEST_FILE MANIFEST_VERSION Manifest parse_manifest",
        "axil_dependencies.needs": "Dependencies Dependency dependencies_of",
        "axil_dependencies.references": "Reference references_of settings_at",
        "axil_dependencies.versions": "recorded_files",
    },
    "Regular expressions": {
        "axil_patterns.errors": "PatternFault PatternLimit",
        "axil_patterns.patterns": "Match Pattern compile_pattern",
    },
    "Graphs as data, and their files": {
        "axil_files.changes": "spec_changes=changes",
        "axil_files.documents": """
            Document KeyPath=Keys Loader MAX_SIZE=LARGEST MAX_DEPTH=DEEPEST
            MAX_DIGITS=LONGEST_NUMBER MAX_VALUES=MOST check_document=measure
            document_error=refused parse_json
        """,
        "axil_files.durations": "format_duration=format_seconds parse_duration=seconds",
        "axil_files.functions": "with_functions",
        "axil_files.python": "PythonTarget python_target",
        "axil_files.loading": """
            LoadOptions=Reading dump_spec=dump include_spec=include inline_spec=inline
            load_spec=load parse_workflow=parse spec_from_document=spec_from
        """,
        "axil_files.format": "is_version_0 notes_field workflow_schema=json_schema",
        "spec.graph": "RouterSpec SURROUNDINGS with_usual_wrappers",
        "registry.excerpts": "format_value",
    },
    "Compilation": {
        "kernel.cycles": "CycleBody",
        "kernel.plan": "BACK OUTSIDE Plan PlanEdge PlanNode ResolvedNode",
        "compiler.planner": "CompileOptions Compiler compile_spec",
    },
}

if TYPE_CHECKING:
    from axil.builder.graph import EdgeHandle
    from axil.compiler.bodies import (
        STAR,
        Attributes,
        BodyRules,
        arranged,
        as_body,
        bind,
        body_of,
        inputs_of,
        is_async,
        parameters_of,
        pushed_fields,
        result_reader,
    )
    from axil.compiler.edges import Condition, EdgeInput, Processor
    from axil.compiler.nodes import FunctionNode
    from axil.compiler.planner import (
        CompileOptions,
        Compiler,
        NodeInfo,
        compile_spec,
    )
    from axil.contract.context import Channel, SubRunResult
    from axil.contract.decisions import (
        DECIDING_HOOKS,
        Admission,
        Fail,
        Firing,
        Outcome,
        Replace,
        Retry,
        Skip,
    )
    from axil.contract.hooks import Hooks, hook_manager
    from axil.contract.loops import LoopLocal
    from axil.contract.messages import (
        Message,
        as_messages,
        fold_payloads,
        gather_messages,
        is_messages,
        message,
        render,
        text_of,
    )
    from axil.contract.meters import Hold, Meter, MeterMaker, RunUsage
    from axil.contract.node import NodeContract
    from axil.contract.observers import OBSERVER_HOOKS
    from axil.contract.views import InstanceView, StateView, read_only, without_views
    from axil.errors import (
        BodyError,
        ComponentBlocked,
        ComponentConflict,
        ConcurrentReset,
        CycleError,
        EngineError,
        HookFailed,
        InvalidValue,
        JournalError,
        KernelBug,
        MissingKeys,
        NotBuilt,
        NotInstalled,
        Overdue,
        PluginContract,
        PluginLoadError,
        ProblemError,
        RouteError,
        RunError,
        SchemaMismatch,
        Uncertain,
        UndeclaredField,
        UnknownComponent,
        did_you_mean,
        format_names,
    )
    from axil.kernel.cycles import CycleBody
    from axil.kernel.joins import Join
    from axil.kernel.plan import (
        BACK,
        OUTSIDE,
        Body,
        Mode,
        Plan,
        PlanEdge,
        PlanNode,
        ResolvedNode,
    )
    from axil.kernel.scopes import (
        SubgraphBody,
        combine_deltas,
        entry_tokens,
    )
    from axil.kernel.state import APPEND, OVERWRITE, Field, FieldChange
    from axil.kernel.tokens import ENTRY, EXIT, Changes, Effects, Task
    from axil.kernel.values import ATOMS, Log, isolate, same as same_value, thaw
    from axil.registry.config import (
        Misfit,
        Secret,
        decode_config,
        is_private,
        make_component,
        misfits,
        refers_to,
        resolve_secret,
    )
    from axil.registry.excerpts import format_value
    from axil.registry.grants import (
        Grants,
        Want,
        current_grants,
        granted,
        note_own,
        note_want,
        noting_wants,
        reads_path,
        refusals_of,
        sends_to,
        writes_path,
    )
    from axil.registry.kinds import (
        COMPONENT_KINDS,
        CONTRACT_VERSIONS,
        KERNEL,
        canonical_name,
        incompatibility,
        kind_of_group,
    )
    from axil.registry.manifest import (
        MANIFEST_FILE,
        MANIFEST_VERSION,
        Manifest,
        parse_manifest,
    )
    from axil.registry.policy import Policy
    from axil.registry.registry import (
        Component,
        Registry,
        component_index,
        default_registry,
        use_registry,
    )
    from axil.spec.graph import (
        SURROUNDINGS,
        FromEnvironment,
        Place,
        RouterSpec,
        SubgraphSpec,
        kept_field,
        local_field,
        with_usual_wrappers,
    )
    from axil_budget.ledger import Budget, Ledger, OverBudget, Reservation, Usage
    from axil_budget.prices import Estimate, Estimator, Price, Pricing, UnknownPrice
    from axil_dependencies.needs import (
        Dependencies,
        Dependency,
        dependencies_of,
    )
    from axil_dependencies.references import Reference, references_of, settings_at
    from axil_dependencies.versions import recorded_files
    from axil_files.changes import changes as spec_changes
    from axil_files.documents import (
        DEEPEST as MAX_DEPTH,
        LARGEST as MAX_SIZE,
        LONGEST_NUMBER as MAX_DIGITS,
        MOST as MAX_VALUES,
        Document,
        Keys as KeyPath,
        Loader,
        measure as check_document,
        parse_json,
        refused as document_error,
    )
    from axil_files.durations import format_seconds as format_duration, seconds as parse_duration
    from axil_files.format import is_version_0, json_schema as workflow_schema, notes_field
    from axil_files.functions import with_functions
    from axil_files.loading import (
        Reading as LoadOptions,
        dump as dump_spec,
        include as include_spec,
        inline as inline_spec,
        load as load_spec,
        parse as parse_workflow,
        spec_from as spec_from_document,
    )
    from axil_files.python import PythonTarget, python_target
    from axil_patterns.errors import PatternFault, PatternLimit
    from axil_patterns.patterns import Match, Pattern, compile_pattern
    from axil_typed.reducers import MAXIMUM, SUM, as_reducer
    from axil_typed.views import model_view
else:
    __getattr__, __dir__ = lazy(globals(), _SUBJECTS)

__all__ = [
    "APPEND",
    "ATOMS",
    "BACK",
    "COMPONENT_KINDS",
    "CONTRACT_VERSIONS",
    "DECIDING_HOOKS",
    "ENTRY",
    "EXIT",
    "KERNEL",
    "MANIFEST_FILE",
    "MANIFEST_VERSION",
    "MAXIMUM",
    "MAX_DEPTH",
    "MAX_DIGITS",
    "MAX_SIZE",
    "MAX_VALUES",
    "OBSERVER_HOOKS",
    "OUTSIDE",
    "OVERWRITE",
    "STAR",
    "SUM",
    "SURROUNDINGS",
    "Admission",
    "Attributes",
    "Body",
    "BodyError",
    "BodyRules",
    "Budget",
    "Changes",
    "Channel",
    "CompileOptions",
    "Compiler",
    "Component",
    "ComponentBlocked",
    "ComponentConflict",
    "ConcurrentReset",
    "Condition",
    "CycleBody",
    "CycleError",
    "Dependencies",
    "Dependency",
    "Document",
    "EdgeHandle",
    "EdgeInput",
    "Effects",
    "EngineError",
    "Estimate",
    "Estimator",
    "Fail",
    "Field",
    "FieldChange",
    "Firing",
    "FromEnvironment",
    "FunctionNode",
    "Grants",
    "Hold",
    "HookFailed",
    "Hooks",
    "InstanceView",
    "InvalidValue",
    "Join",
    "JournalError",
    "KernelBug",
    "KeyPath",
    "Ledger",
    "LoadOptions",
    "Loader",
    "Log",
    "LoopLocal",
    "Manifest",
    "Match",
    "Message",
    "Meter",
    "MeterMaker",
    "Misfit",
    "MissingKeys",
    "Mode",
    "NodeContract",
    "NodeInfo",
    "NotBuilt",
    "NotInstalled",
    "Outcome",
    "OverBudget",
    "Overdue",
    "Pattern",
    "PatternFault",
    "PatternLimit",
    "Place",
    "Plan",
    "PlanEdge",
    "PlanNode",
    "PluginContract",
    "PluginLoadError",
    "Policy",
    "Price",
    "Pricing",
    "ProblemError",
    "Processor",
    "PythonTarget",
    "Reference",
    "Registry",
    "Replace",
    "Reservation",
    "ResolvedNode",
    "Retry",
    "RouteError",
    "RouterSpec",
    "RunError",
    "RunUsage",
    "SchemaMismatch",
    "Secret",
    "Skip",
    "StateView",
    "SubRunResult",
    "SubgraphBody",
    "SubgraphSpec",
    "Task",
    "Uncertain",
    "UndeclaredField",
    "UnknownComponent",
    "UnknownPrice",
    "Usage",
    "Want",
    "arranged",
    "as_body",
    "as_messages",
    "as_reducer",
    "bind",
    "body_of",
    "canonical_name",
    "check_document",
    "combine_deltas",
    "compile_pattern",
    "compile_spec",
    "component_index",
    "current_grants",
    "decode_config",
    "default_registry",
    "dependencies_of",
    "did_you_mean",
    "document_error",
    "dump_spec",
    "entry_tokens",
    "fold_payloads",
    "format_duration",
    "format_names",
    "format_value",
    "gather_messages",
    "granted",
    "hook_manager",
    "include_spec",
    "incompatibility",
    "inline_spec",
    "inputs_of",
    "is_async",
    "is_messages",
    "is_private",
    "is_version_0",
    "isolate",
    "kept_field",
    "kind_of_group",
    "load_spec",
    "local_field",
    "make_component",
    "message",
    "misfits",
    "model_view",
    "note_own",
    "note_want",
    "notes_field",
    "noting_wants",
    "parameters_of",
    "parse_duration",
    "parse_json",
    "parse_manifest",
    "parse_workflow",
    "pushed_fields",
    "python_target",
    "read_only",
    "reads_path",
    "recorded_files",
    "references_of",
    "refers_to",
    "refusals_of",
    "render",
    "resolve_secret",
    "result_reader",
    "same_value",
    "sends_to",
    "settings_at",
    "spec_changes",
    "spec_from_document",
    "text_of",
    "thaw",
    "use_registry",
    "with_functions",
    "with_usual_wrappers",
    "without_views",
    "workflow_schema",
    "writes_path",
]

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
            Attributes BodyRules arranged as_body bind body_of inputs_of is_async
            parameters_of pushed_fields result_reader
        """,
        "contract.context": "StepKind SubRunResult",
        "contract.node": "NodeContract",
        "kernel.joins": "Join",
        "kernel.plan": "Body Mode",
        "compiler.nodes": "FunctionNode",
        "builder.graph": "EdgeHandle",
        "builder.options": """
            EdgeOptions FileOptions GraphOptions NodeOptions ReadingOptions RunOptions
        """,
        "compiler.planner": "NodeInfo",
        "kernel.tokens": "Changes ENTRY EXIT Effects Task",
        "spec.graph": "kept_field local_field",
    },
    "Graphs as nodes": {
        "kernel.machine": "entry_tokens",
        "kernel.scopes": "SubgraphBody combine_deltas",
        "spec.graph": "SubgraphSpec",
    },
    "Data classes": {},
    "Edges": {
        "compiler.edges": "Condition EdgeInput Processor",
        "compiler.functions": "edge_function",
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
        "axil_config.decoding": "decode_config refers_to",
        "axil_config.grants": "Grants reads_path sends_to writes_path",
        "axil_config.misfits": "Misfit misfits",
        "axil_config.redaction": "REDACTED redact_data redact_text secret_spans",
        "axil_config.secrets": "Secret is_private resolve_secret",
        "registry.components": "make_component",
        "registry.grants": """
            Want current_grants granted is_granted note_own note_want noting_wants one_line
            refusals_of
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
            with_article
        """,
    },
    "Budgets and prices": {
        "axil_budget.ledger": "Budget Ledger OverBudget Reservation",
        "axil_budget.prices": "Estimate Estimator Price Pricing UnknownPrice",
        "axil_budget.usage": "Usage",
    },
    "Event loops": {
        "contract.loops": "LoopLocal",
    },
    "Meters": {
        "contract.meters": "Meter MeterMaker MeterReservation RunUsage",
    },
    "Hooks": {
        "contract.decisions": "Admission DECIDING_HOOKS Fail Firing Outcome Replace Retry Skip",
        "contract.hooks": "Hooks hook_manager",
        "contract.observers": "OBSERVER_HOOKS EdgePayload",
    },
    "Registry and policy": {
        "registry.kinds": """
            COMPONENT_KINDS CONTRACT_VERSIONS KERNEL canonical_name
            incompatibility kind_of_group
        """,
        "axil_config.policy": "Policy",
        "registry.registry": """
            Component Registry component_index default_registry use_registry
        """,
        "_installing": "install_advice",
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
            LoadOptions dump_spec=dump include_spec=include inline_spec=inline
            load_spec=load parse_workflow=parse spec_from_document=spec_from
        """,
        "axil_files.templates": "match_path",
        "axil_files.format": "is_version_0 notes_field workflow_schema=json_schema",
        "spec.graph": "RouterSpec SURROUNDINGS with_usual_wrappers",
        "registry.excerpts": "format_value",
    },
    "Commands": {
        "axil_cli.arguments": "add_shared_arguments",
    },
    "Compilation": {
        "kernel.scopes": "CycleBody",
        "kernel.plan": "BACK OUTSIDE Plan PlanEdge PlanNode ResolvedNode",
        "compiler.planner": "CompileOptions Compiler compile_spec",
    },
}

_RENAMED = {"Hold": "MeterReservation"}

if TYPE_CHECKING:
    from axil._installing import (
        install_advice as install_advice,
    )
    from axil.builder.graph import EdgeHandle as EdgeHandle
    from axil.builder.options import (
        EdgeOptions as EdgeOptions,
        FileOptions as FileOptions,
        GraphOptions as GraphOptions,
        NodeOptions as NodeOptions,
        ReadingOptions as ReadingOptions,
        RunOptions as RunOptions,
    )
    from axil.compiler.bodies import (
        Attributes as Attributes,
        BodyRules as BodyRules,
        arranged as arranged,
        as_body as as_body,
        bind as bind,
        body_of as body_of,
        inputs_of as inputs_of,
        is_async as is_async,
        parameters_of as parameters_of,
        pushed_fields as pushed_fields,
        result_reader as result_reader,
    )
    from axil.compiler.edges import (
        Condition as Condition,
        EdgeInput as EdgeInput,
        Processor as Processor,
    )
    from axil.compiler.functions import edge_function as edge_function
    from axil.compiler.nodes import FunctionNode as FunctionNode
    from axil.compiler.planner import (
        CompileOptions as CompileOptions,
        Compiler as Compiler,
        NodeInfo as NodeInfo,
        compile_spec as compile_spec,
    )
    from axil.contract.context import (
        Channel as Channel,
        StepKind as StepKind,
        SubRunResult as SubRunResult,
    )
    from axil.contract.decisions import (
        DECIDING_HOOKS as DECIDING_HOOKS,
        Admission as Admission,
        Fail as Fail,
        Firing as Firing,
        Outcome as Outcome,
        Replace as Replace,
        Retry as Retry,
        Skip as Skip,
    )
    from axil.contract.hooks import Hooks as Hooks, hook_manager as hook_manager
    from axil.contract.loops import LoopLocal as LoopLocal
    from axil.contract.messages import (
        Message as Message,
        as_messages as as_messages,
        fold_payloads as fold_payloads,
        gather_messages as gather_messages,
        is_messages as is_messages,
        message as message,
        render as render,
        text_of as text_of,
    )
    from axil.contract.meters import (
        Meter as Meter,
        MeterMaker as MeterMaker,
        MeterReservation as MeterReservation,
        RunUsage as RunUsage,
    )
    from axil.contract.node import NodeContract as NodeContract
    from axil.contract.observers import OBSERVER_HOOKS as OBSERVER_HOOKS, EdgePayload as EdgePayload
    from axil.contract.views import (
        InstanceView as InstanceView,
        StateView as StateView,
        read_only as read_only,
        without_views as without_views,
    )
    from axil.errors import (
        BodyError as BodyError,
        ComponentBlocked as ComponentBlocked,
        ComponentConflict as ComponentConflict,
        ConcurrentReset as ConcurrentReset,
        CycleError as CycleError,
        EngineError as EngineError,
        HookFailed as HookFailed,
        InvalidValue as InvalidValue,
        JournalError as JournalError,
        KernelBug as KernelBug,
        MissingKeys as MissingKeys,
        NotBuilt as NotBuilt,
        NotInstalled as NotInstalled,
        Overdue as Overdue,
        PluginContract as PluginContract,
        PluginLoadError as PluginLoadError,
        ProblemError as ProblemError,
        RouteError as RouteError,
        RunError as RunError,
        SchemaMismatch as SchemaMismatch,
        Uncertain as Uncertain,
        UndeclaredField as UndeclaredField,
        UnknownComponent as UnknownComponent,
        did_you_mean as did_you_mean,
        format_names as format_names,
        with_article as with_article,
    )
    from axil.kernel.joins import Join as Join
    from axil.kernel.machine import entry_tokens as entry_tokens
    from axil.kernel.plan import (
        BACK as BACK,
        OUTSIDE as OUTSIDE,
        Body as Body,
        Mode as Mode,
        Plan as Plan,
        PlanEdge as PlanEdge,
        PlanNode as PlanNode,
        ResolvedNode as ResolvedNode,
    )
    from axil.kernel.scopes import (
        CycleBody as CycleBody,
        SubgraphBody as SubgraphBody,
        combine_deltas as combine_deltas,
    )
    from axil.kernel.state import (
        APPEND as APPEND,
        OVERWRITE as OVERWRITE,
        Field as Field,
        FieldChange as FieldChange,
    )
    from axil.kernel.tokens import (
        ENTRY as ENTRY,
        EXIT as EXIT,
        Changes as Changes,
        Effects as Effects,
        Task as Task,
    )
    from axil.kernel.values import (
        ATOMS as ATOMS,
        Log as Log,
        isolate as isolate,
        same,
        thaw as thaw,
    )
    from axil.registry.components import make_component as make_component
    from axil.registry.excerpts import format_value as format_value
    from axil.registry.grants import (
        Want as Want,
        current_grants as current_grants,
        granted as granted,
        is_granted as is_granted,
        note_own as note_own,
        note_want as note_want,
        noting_wants as noting_wants,
        one_line as one_line,
        refusals_of as refusals_of,
    )
    from axil.registry.kinds import (
        COMPONENT_KINDS as COMPONENT_KINDS,
        CONTRACT_VERSIONS as CONTRACT_VERSIONS,
        KERNEL as KERNEL,
        canonical_name as canonical_name,
        incompatibility as incompatibility,
        kind_of_group as kind_of_group,
    )
    from axil.registry.manifest import (
        MANIFEST_FILE as MANIFEST_FILE,
        MANIFEST_VERSION as MANIFEST_VERSION,
        Manifest as Manifest,
        parse_manifest as parse_manifest,
    )
    from axil.registry.registry import (
        Component as Component,
        Registry as Registry,
        component_index as component_index,
        default_registry as default_registry,
        use_registry as use_registry,
    )
    from axil.spec.graph import (
        SURROUNDINGS as SURROUNDINGS,
        FromEnvironment as FromEnvironment,
        Place as Place,
        RouterSpec as RouterSpec,
        SubgraphSpec as SubgraphSpec,
        kept_field as kept_field,
        local_field as local_field,
        with_usual_wrappers as with_usual_wrappers,
    )
    from axil_budget.ledger import (
        Budget as Budget,
        Ledger as Ledger,
        OverBudget as OverBudget,
        Reservation as Reservation,
    )
    from axil_budget.prices import (
        Estimate as Estimate,
        Estimator as Estimator,
        Price as Price,
        Pricing as Pricing,
        UnknownPrice as UnknownPrice,
    )
    from axil_budget.usage import Usage as Usage
    from axil_cli.arguments import add_shared_arguments as add_shared_arguments
    from axil_config.decoding import decode_config as decode_config, refers_to as refers_to
    from axil_config.grants import (
        Grants as Grants,
        reads_path as reads_path,
        sends_to as sends_to,
        writes_path as writes_path,
    )
    from axil_config.misfits import Misfit as Misfit, misfits as misfits
    from axil_config.policy import Policy as Policy
    from axil_config.redaction import (
        REDACTED as REDACTED,
        redact_data as redact_data,
        redact_text as redact_text,
        secret_spans as secret_spans,
    )
    from axil_config.secrets import (
        Secret as Secret,
        is_private as is_private,
        resolve_secret as resolve_secret,
    )
    from axil_dependencies.needs import (
        Dependencies as Dependencies,
        Dependency as Dependency,
        dependencies_of as dependencies_of,
    )
    from axil_dependencies.references import (
        Reference as Reference,
        references_of as references_of,
        settings_at as settings_at,
    )
    from axil_dependencies.versions import recorded_files as recorded_files
    from axil_files.changes import changes
    from axil_files.documents import (
        DEEPEST,
        LARGEST,
        LONGEST_NUMBER,
        MOST,
        Document as Document,
        Keys,
        Loader as Loader,
        measure,
        parse_json as parse_json,
        refused,
    )
    from axil_files.durations import format_seconds, seconds
    from axil_files.format import (
        is_version_0 as is_version_0,
        json_schema,
        notes_field as notes_field,
    )
    from axil_files.functions import with_functions as with_functions
    from axil_files.loading import (
        LoadOptions as LoadOptions,
        dump,
        include,
        inline,
        load,
        parse,
        spec_from,
    )
    from axil_files.python import PythonTarget as PythonTarget, python_target as python_target
    from axil_files.templates import match_path as match_path
    from axil_patterns.errors import PatternFault as PatternFault, PatternLimit as PatternLimit
    from axil_patterns.patterns import (
        Match as Match,
        Pattern as Pattern,
        compile_pattern as compile_pattern,
    )
    from axil_typed.reducers import MAXIMUM as MAXIMUM, SUM as SUM, as_reducer as as_reducer
    from axil_typed.views import model_view as model_view

    KeyPath = Keys
    MAX_DEPTH = DEEPEST
    MAX_DIGITS = LONGEST_NUMBER
    MAX_SIZE = LARGEST
    MAX_VALUES = MOST
    check_document = measure
    document_error = refused
    dump_spec = dump
    format_duration = format_seconds
    include_spec = include
    inline_spec = inline
    load_spec = load
    parse_duration = seconds
    parse_workflow = parse
    same_value = same
    spec_changes = changes
    spec_from_document = spec_from
    workflow_schema = json_schema
    Hold = MeterReservation
else:
    __getattr__, __dir__, __all__ = lazy(globals(), _SUBJECTS, _RENAMED)

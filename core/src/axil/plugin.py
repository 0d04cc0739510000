"""Names for authors of plugins: what components are given, return and declare.

What users of axil need as well is in ``axil``; what journals, engines and executors need is in
``axil.driver``. Each name belongs to one of the three. The names are stable within a major
version, the modules that they come from may move.

>>> from axil.plugin import canonical_name, text_of
>>> canonical_name("Axil_Files"), text_of([{"role": "user", "content": "hello"}])
('axil-files', 'hello')
"""

from __future__ import annotations

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
        "builder.options": "EdgeOptions GraphOptions NodeOptions RunOptions",
        "compiler.planner": "NodeInfo",
        "kernel.tokens": "Changes ENTRY EXIT Effects Task",
        "spec.graph": "kept_field local_field",
    },
    "Graphs as nodes": {
        "kernel.machine": "entry_tokens",
        "kernel.scopes": "SubgraphBody combine_deltas",
        "spec.graph": "SubgraphSpec",
    },
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
        "kernel.values": "ATOMS Log bounded_text isolate same_value thaw",
        "contract.views": "InstanceView StateView read_only without_views",
    },
    "Configuration and secrets": {
        "axil_config.decoding": "decode_config refers_to",
        "axil_config.grants": "Grants is_axils reads_path sends_to writes_path",
        "axil_config.misfits": "Misfit misfits",
        "axil_config.redaction": """
            REDACTED keep_secret redact_data redact_text secret_spans without_secrets
        """,
        "axil_config.secrets": "Secret is_private resolve_secret",
        "registry.components": "make_component",
        "axil_config.wants": "Want is_granted note_own note_want noting_wants refusals_of",
        "registry.grants": "current_grants granted",
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
            UndeclaredField UnknownComponent did_you_mean format_names one_line with_article
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
        "axil_patterns.schemas": "BoundedSchema SchemaFinding",
    },
    "Graphs as data, and their files": {
        "axil_files.changes": "spec_changes",
        "axil_files.documents": """
            Document KeyPath Loader MAX_SIZE MAX_DEPTH
            MAX_DIGITS MAX_VALUES check_document
            document_error parse_json
        """,
        "axil_files.durations": "format_duration parse_duration",
        "axil_files.functions": "with_functions",
        "axil_files.options": "FileOptions ReadingOptions",
        "axil_files.python": "PythonTarget python_target",
        "axil_files.loading": """
            LoadOptions dump_spec include_spec inline_spec
            load_spec parse_workflow spec_from_document
        """,
        "axil_files.templates": "match_path",
        "axil_files.format": "is_version_0 notes_field workflow_schema",
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

__getattr__, __dir__, __all__ = lazy(globals(), _SUBJECTS, _RENAMED)

"""Names for authors of components: what these are given, return and declare; stable within a major
version.

>>> from axil.plugin import canonical_name, text_of
>>> canonical_name("Axil_Files"), text_of([{"role": "user", "content": "hello"}])
('axil-files', 'hello')
"""

from __future__ import annotations

from axil._lazy import lazy_names

_SUBJECTS = {
    "Nodes and bodies": {
        "builder.graph": "EdgeHandle",
        "builder.options": "EdgeOptions GraphOptions NodeOptions SubgraphOptions",
        "compiler.bodies": """
            Attributes BodyRules arranged as_body bind body_of inputs_of is_async pushed_fields
            result_reader
        """,
        "compiler.nodes": "FunctionNode",
        "compiler.planner": "NodeInfo",
        "contract.context": "StepKind SubRunResult",
        "contract.node": "NodeContract",
        "kernel.joins": "Join",
        "kernel.plan": "Body Mode",
        "kernel.tokens": "Changes ENTRY EXIT Effects Task",
        "signatures": "signature_of",
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
            FAILED_CODE Message as_messages fold_payloads gather_messages has_failed is_messages
            message render text_of
        """,
    },
    "State and values": {
        "contract.views": "without_views",
        "kernel.state": "APPEND Field FieldChange OVERWRITE",
        "kernel.values": "Log bounded_text check_size isolate same_value thaw",
        "typed.reducers": "APPEND_MESSAGES SUM as_reducer",
    },
    "Configuration and secrets": {
        "registry.components": "make_component",
        "secrecy": """
            REDACTED file_without_secrets keep_password keep_secret without_secrets
        """,
        "settings.decoding": "decode_config refers_to",
        "settings.grants": """
            Grants current_grants granted is_axils note_own
        """,
        "settings.leaving": "answer_without_secrets stream_without_secrets",
        "settings.misfits": "Misfit misfits",
        "settings.outside": """
            Address EnvName ImportPath NetAddress OutsideMark Program ReadPath WritePath
        """,
        "settings.redaction": "is_private redact_data redact_text secret_spans",
        "settings.secrets": """
            CallerSecrets Secret SecretLike caller_secret callers_secrets given_by_caller
            resolve_secret
        """,
        "settings.wants": "Want note_want noting_wants refusals_of",
        "spec.graph": "FromEnvironment Place",
    },
    "Questions to people": {
        "contract.context": "Channel",
        "contract.legible": "is_hidden legible",
    },
    "Errors": {
        "errors": """
            BodyError ComponentBlocked EngineError InvalidValue JournalError KernelBug
            MissingKeys NotBuilt NotInstalled Overdue PluginContract ProblemError RouteError
            RunError Uncertain UnknownComponent did_you_mean format_names naming_unknown
            one_line own_line with_article
        """,
    },
    "Event loops": {
        "contract.loops": "LoopLocal",
    },
    "Time": {
        "bounds": "check_time seconds_left",
    },
    "Meters": {
        "contract.meters": "Meter MeterMaker MeterReservation RunUsage",
    },
    "Hooks": {
        "contract.decisions": "DECIDING_HOOKS Fail Firing Outcome Replace Retry Skip",
        "contract.hooks": "Hooks hook_manager",
        "contract.observers": "EdgePayload",
    },
    "Registry and policy": {
        "_installing": "install_advice",
        "spec.kinds": """
            COMPONENT_KINDS CONTRACT_VERSIONS KERNEL canonical_name incompatibility
            is_component_name kind_of_group
        """,
        "registry.registry": "Component Registry component_index default_registry use_registry",
        "settings.policy": "Policy",
    },
    "Distributions: manifests and dependencies": {
        "dependencies.needs": "Dependencies Dependency DependencyWalk",
        "dependencies.references": "references_of",
        "dependencies.versions": "graphs_of recorded_files",
        "registry.manifest": "MANIFEST_FILE MANIFEST_VERSION Manifest parse_manifest",
    },
    "Regular expressions": {
        "patterns.errors": "PatternFault PatternLimit",
        "patterns.patterns": "Match Pattern compile_pattern",
        "patterns.schemas": "BoundedSchema",
        "patterns.settings": "JsonSchema PatternText",
    },
    "Graphs as data, and their files": {
        "settings.excerpts": "format_value",
        "spec.graph": "RouterSpec SURROUNDINGS with_usual_wrappers",
    },
    "Compilation": {
        "compiler.planner": "CompileOptions Compiler compile_spec",
        "kernel.plan": "BACK OUTSIDE Plan PlanEdge PlanNode ResolvedNode",
        "kernel.scopes": "CycleBody",
    },
    "Public modules": {
        "_lazy": "lazy_names",
    },
}

_RENAMED = {"Hold": "MeterReservation"}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS, _RENAMED)

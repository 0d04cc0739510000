"""Names of ``axil.plugin`` for type checkers; written by ``make manifests``."""

from axil._installing import install_advice as install_advice
from axil._lazy import lazy_names as lazy_names
from axil.bounds import check_time as check_time, seconds_left as seconds_left
from axil.builder.graph import EdgeHandle as EdgeHandle
from axil.builder.options import (
    EdgeOptions as EdgeOptions,
    GraphOptions as GraphOptions,
    NodeOptions as NodeOptions,
    SubgraphOptions as SubgraphOptions,
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
    Fail as Fail,
    Firing as Firing,
    Outcome as Outcome,
    Replace as Replace,
    Retry as Retry,
    Skip as Skip,
)
from axil.contract.hooks import Hooks as Hooks, hook_manager as hook_manager
from axil.contract.legible import is_hidden as is_hidden, legible as legible
from axil.contract.loops import LoopLocal as LoopLocal
from axil.contract.messages import (
    FAILED_CODE as FAILED_CODE,
    Message as Message,
    as_messages as as_messages,
    fold_payloads as fold_payloads,
    gather_messages as gather_messages,
    has_failed as has_failed,
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
from axil.contract.observers import EdgePayload as EdgePayload
from axil.contract.views import without_views as without_views
from axil.dependencies.needs import (
    Dependencies as Dependencies,
    Dependency as Dependency,
    DependencyWalk as DependencyWalk,
)
from axil.dependencies.references import references_of as references_of
from axil.dependencies.versions import graphs_of as graphs_of, recorded_files as recorded_files
from axil.errors import (
    BodyError as BodyError,
    ComponentBlocked as ComponentBlocked,
    EngineError as EngineError,
    InvalidValue as InvalidValue,
    JournalError as JournalError,
    KernelBug as KernelBug,
    MissingKeys as MissingKeys,
    NotBuilt as NotBuilt,
    NotInstalled as NotInstalled,
    Overdue as Overdue,
    PluginContract as PluginContract,
    ProblemError as ProblemError,
    RouteError as RouteError,
    RunError as RunError,
    Uncertain as Uncertain,
    UnknownComponent as UnknownComponent,
    did_you_mean as did_you_mean,
    format_names as format_names,
    naming_unknown as naming_unknown,
    one_line as one_line,
    own_line as own_line,
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
    Log as Log,
    bounded_text as bounded_text,
    check_size as check_size,
    isolate as isolate,
    same_value as same_value,
    thaw as thaw,
)
from axil.patterns.errors import PatternFault as PatternFault, PatternLimit as PatternLimit
from axil.patterns.patterns import (
    Match as Match,
    Pattern as Pattern,
    compile_pattern as compile_pattern,
)
from axil.patterns.schemas import BoundedSchema as BoundedSchema
from axil.patterns.settings import JsonSchema as JsonSchema, PatternText as PatternText
from axil.registry.components import make_component as make_component
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
from axil.secrecy import (
    REDACTED as REDACTED,
    file_without_secrets as file_without_secrets,
    keep_password as keep_password,
    keep_secret as keep_secret,
    without_secrets as without_secrets,
)
from axil.settings.decoding import decode_config as decode_config, refers_to as refers_to
from axil.settings.excerpts import format_value as format_value
from axil.settings.grants import (
    Grants as Grants,
    current_grants as current_grants,
    granted as granted,
    is_axils as is_axils,
    note_own as note_own,
)
from axil.settings.leaving import (
    answer_without_secrets as answer_without_secrets,
    stream_without_secrets as stream_without_secrets,
)
from axil.settings.misfits import Misfit as Misfit, misfits as misfits
from axil.settings.outside import (
    Address as Address,
    EnvName as EnvName,
    ImportPath as ImportPath,
    NetAddress as NetAddress,
    OutsideMark as OutsideMark,
    Program as Program,
    ReadPath as ReadPath,
    WritePath as WritePath,
)
from axil.settings.policy import Policy as Policy
from axil.settings.redaction import (
    is_private as is_private,
    redact_data as redact_data,
    redact_text as redact_text,
    secret_spans as secret_spans,
)
from axil.settings.secrets import (
    CallerSecrets as CallerSecrets,
    Secret as Secret,
    SecretLike as SecretLike,
    caller_secret as caller_secret,
    callers_secrets as callers_secrets,
    given_by_caller as given_by_caller,
    resolve_secret as resolve_secret,
)
from axil.settings.wants import (
    Want as Want,
    note_want as note_want,
    noting_wants as noting_wants,
    refusals_of as refusals_of,
)
from axil.signatures import signature_of as signature_of
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
from axil.spec.kinds import (
    COMPONENT_KINDS as COMPONENT_KINDS,
    CONTRACT_VERSIONS as CONTRACT_VERSIONS,
    KERNEL as KERNEL,
    canonical_name as canonical_name,
    incompatibility as incompatibility,
    is_component_name as is_component_name,
    kind_of_group as kind_of_group,
)
from axil.typed.reducers import (
    APPEND_MESSAGES as APPEND_MESSAGES,
    SUM as SUM,
    as_reducer as as_reducer,
)

Hold = MeterReservation

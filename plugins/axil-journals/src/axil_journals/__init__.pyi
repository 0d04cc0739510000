"""Names of ``axil_journals`` for type checkers; written by ``make manifests``."""

from axil_journals.aes import Aes as Aes
from axil_journals.analysis.bounds import (
    Bound as Bound,
    Bounds as Bounds,
    Estimate as Estimate,
    Likely as Likely,
    NodeBound as NodeBound,
    bound_data as bound_data,
    bound_lines as bound_lines,
    bounds_of as bounds_of,
    estimate as estimate,
)
from axil_journals.analysis.findings import findings as findings
from axil_journals.deadlines import (
    accept_answers as accept_answers,
    format_time as format_time,
    open_questions as open_questions,
)
from axil_journals.engine.loading import (
    ResumedStatus as ResumedStatus,
    check_run_options as check_run_options,
    lasting_executor as lasting_executor,
    resume_run as resume_run,
)
from axil_journals.engine.local import LocalEngine as LocalEngine
from axil_journals.engine.managed import ManagedRun as ManagedRun
from axil_journals.engine.metrics import (
    METRICS as METRICS,
    EngineTally as EngineTally,
    current_run_id as current_run_id,
    journal_metrics as journal_metrics,
    process_metrics as process_metrics,
)
from axil_journals.engine.protocol import (
    PASSING_ERRORS as PASSING_ERRORS,
    AroundRun as AroundRun,
    Engine as Engine,
    FindWorkflow as FindWorkflow,
    RunLeave as RunLeave,
    RunStatus as RunStatus,
)
from axil_journals.engine.status import with_recorded_end as with_recorded_end
from axil_journals.engine.triggers import (
    TriggeredRuns as TriggeredRuns,
    TriggerSettings as TriggerSettings,
    read_triggers as read_triggers,
)
from axil_journals.inspection.breakpoints import Breakpoints as Breakpoints
from axil_journals.inspection.checks import (
    CheckResult as CheckResult,
    check_workflow as check_workflow,
    want_lines as want_lines,
    want_rows as want_rows,
)
from axil_journals.inspection.forks import Edit as Edit, fork as fork
from axil_journals.inspection.inputs import input_schema as input_schema
from axil_journals.inspection.snapshots import (
    DueFiring as DueFiring,
    Snapshot as Snapshot,
    snapshot as snapshot,
)
from axil_journals.inspection.steps import (
    Difference as Difference,
    RunStep as RunStep,
    differences as differences,
    steps as steps,
)
from axil_journals.journal import (
    DUE_NOW as DUE_NOW,
    ENDED as ENDED,
    ChangeSignal as ChangeSignal,
    Cipher as Cipher,
    Compactor as Compactor,
    Entry as Entry,
    Journal as Journal,
    JournalWriter as JournalWriter,
    RunCount as RunCount,
    RunInfo as RunInfo,
    RunMail as RunMail,
    SharedJournal as SharedJournal,
    claimed_error as claimed_error,
    due_of_end as due_of_end,
    question_due as question_due,
    unknown_error as unknown_error,
)
from axil_journals.memory import MemoryJournal as MemoryJournal
from axil_journals.migrations import (
    adapt_entries as adapt_entries,
    graph_of_frame as graph_of_frame,
    recorded_graph as recorded_graph,
)
from axil_journals.objects import (
    Bucket as Bucket,
    ObjectStore as ObjectStore,
    RunObjects as RunObjects,
    list_of as list_of,
)
from axil_journals.pictures.drawing import (
    as_mermaid as as_mermaid,
    as_text as as_text,
    escaped as escaped,
    join_name as join_name,
    mermaid_picture as mermaid_picture,
    svg_picture as svg_picture,
    text_picture as text_picture,
)
from axil_journals.pictures.outlines import (
    Outline as Outline,
    OutlineNode as OutlineNode,
    outline as outline,
)
from axil_journals.pictures.picture import (
    Picture as Picture,
    PictureEdge as PictureEdge,
    picture_of as picture_of,
)
from axil_journals.pictures.scopes import (
    PlanScope as PlanScope,
    cycle_bounds as cycle_bounds,
    edge_label as edge_label,
    plan_scopes as plan_scopes,
    shortened as shortened,
    use_label as use_label,
    walk_plan as walk_plan,
)
from axil_journals.prompts import Prompt as Prompt, prompts_of as prompts_of
from axil_journals.queues import (
    RULES as RULES,
    STATE as STATE,
    Place as Place,
    Queue as Queue,
    QueueState as QueueState,
    RunExists as RunExists,
    Spent as Spent,
    chosen as chosen,
    place_of as place_of,
    read_queues as read_queues,
    take_by_priority as take_by_priority,
)
from axil_journals.recorder import (
    JournalRecorder as JournalRecorder,
    Recording as Recording,
    answer_entry as answer_entry,
)
from axil_journals.records import record_graph as record_graph, version_changes as version_changes
from axil_journals.replay import ReplayIndex as ReplayIndex
from axil_journals.rows import (
    Cut as Cut,
    Damage as Damage,
    EntryRow as EntryRow,
    damage_of as damage_of,
    damaged_error as damaged_error,
    data_without_secrets as data_without_secrets,
    entry_row as entry_row,
    find_cut as find_cut,
    joined_row as joined_row,
    row_entries as row_entries,
    run_info as run_info,
)
from axil_journals.sealing import RowCodec as RowCodec, about_row as about_row
from axil_journals.threads import (
    admit_run as admit_run,
    left_behind_error as left_behind_error,
    overtaken_error as overtaken_error,
)
from axil_journals.values import (
    decode_delta as decode_delta,
    decode_value as decode_value,
    encode_delta as encode_delta,
    encode_value as encode_value,
)
from axil_journals.writers import (
    GroupCommit as GroupCommit,
    RunPart as RunPart,
    RunWriter as RunWriter,
)

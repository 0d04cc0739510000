"""Names of ``axil.driver`` for type checkers; written by ``make manifests``."""

from axil.builder.workflow import RunInput as RunInput
from axil.contract.context import Clock as Clock, Executor as Executor
from axil.kernel.events import (
    Command as Command,
    CycleTally as CycleTally,
    DropBodies as DropBodies,
    End as End,
    Ending as Ending,
    Known as Known,
    RecordFiring as RecordFiring,
    RecordRound as RecordRound,
    Report as Report,
    Return as Return,
    Start as Start,
    SubRun as SubRun,
)
from axil.kernel.machine import Machine as Machine
from axil.kernel.outcomes import (
    Exit as Exit,
    FrameResult as FrameResult,
    Send as Send,
    Transition as Transition,
)
from axil.kernel.plan import Graph
from axil.kernel.scheduler import Scheduler as Scheduler
from axil.kernel.scopes import CycleRun as CycleRun, Round as Round
from axil.kernel.state import NO_RESET as NO_RESET
from axil.kernel.tokens import (
    Frame as Frame,
    Ordinal as Ordinal,
    inner_frame as inner_frame,
    new_tuple as new_tuple,
)
from axil.runtime.pool import LocalExecutor as LocalExecutor
from axil.runtime.recorder import (
    Answered as Answered,
    Asked as Asked,
    ClockRead as ClockRead,
    EffectBegun as EffectBegun,
    Fact as Fact,
    Recorder as Recorder,
    SleepBegun as SleepBegun,
    StepDone as StepDone,
)
from axil.runtime.services import Pause as Pause, Progress as Progress, RealClock as RealClock
from axil.spec.graph import KEPT as KEPT
from axil_engine.engine import LocalEngine as LocalEngine
from axil_engine.loading import (
    LastingExecutor as LastingExecutor,
    Stand as Stand,
    go_on as go_on,
    lasting_executor as lasting_executor,
)
from axil_engine.managed import ManagedRun as ManagedRun
from axil_engine.protocol import Engine as Engine, RunStatus as RunStatus
from axil_engine.status import with_recorded_end as with_recorded_end
from axil_inspection.breakpoints import Breakpoints as Breakpoints
from axil_inspection.checks import (
    CheckResult as CheckResult,
    check_workflow as check_workflow,
    want_lines as want_lines,
    want_rows as want_rows,
)
from axil_inspection.drawing import draw, join_of
from axil_inspection.forks import Edit as Edit, fork as fork
from axil_inspection.outlines import (
    Outline as Outline,
    OutlineNode as OutlineNode,
    outline as outline,
)
from axil_inspection.records import (
    Difference as Difference,
    RunStep as RunStep,
    differences as differences,
    steps as steps,
)
from axil_inspection.scopes import Scope, bounded, label, shortened as shortened, walk
from axil_inspection.snapshots import Snapshot as Snapshot, snapshot as snapshot
from axil_journals.deadlines import (
    accept_answers as accept_answers,
    format_time as format_time,
    open_questions as open_questions,
    wall_time as wall_time,
)
from axil_journals.journal import (
    AT_ONCE as AT_ONCE,
    Bell as Bell,
    Cipher as Cipher,
    Compactor as Compactor,
    Entry as Entry,
    Journal as Journal,
    JournalWriter as JournalWriter,
    Letter as Letter,
    RunInfo as RunInfo,
    SharedJournal as SharedJournal,
    claimed_error as claimed_error,
    due_of_end as due_of_end,
    question_due as question_due,
)
from axil_journals.migrations import (
    adapt_entries as adapt_entries,
    graph_of_frame as graph_of_frame,
    recorded_graph as recorded_graph,
)
from axil_journals.prompts import Prompt as Prompt, prompts_of as prompts_of
from axil_journals.recorder import JournalRecorder as JournalRecorder, answer_entry as answer_entry
from axil_journals.records import record_graph as record_graph, version_changes as version_changes
from axil_journals.replay import ReplayIndex as ReplayIndex
from axil_journals.rows import Row, damaged, entries_of, joined, row_of
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
from axil_process.config import ExecutorConfig, ProcessConfig as ProcessConfig
from axil_process.conversation import (
    Conversation as Conversation,
    Link as Link,
    firing_of as firing_of,
    outcome_of as outcome_of,
)
from axil_process.errors import (
    BodyRaised as BodyRaised,
    ProcessError as ProcessError,
    WorkerDied as WorkerDied,
)
from axil_process.executor import JobExecutor as JobExecutor, ProcessExecutor as ProcessExecutor
from axil_process.host import BodyHost as BodyHost
from axil_process.jobs import (
    Job as Job,
    decode_outcome as decode_outcome,
    decode_task as decode_task,
    encode_outcome as encode_outcome,
    encode_task as encode_task,
    job_of as job_of,
    plan_of_job as plan_of_job,
)
from axil_process.wrapper import Process

EntryRow = Row
Moment = Snapshot
PlanScope = Scope
ProcessExecutorConfig = ExecutorConfig
ProcessWrapper = Process
ResolvedGraph = Graph
cycle_bounds = bounded
damaged_error = damaged
draw_plan = draw
edge_label = label
entry_row = row_of
join_name = join_of
joined_row = joined
moment = snapshot
row_entries = entries_of
walk_plan = walk

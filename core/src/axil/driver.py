"""Names for authors of journals, engines and executors, and of tools that inspect runs.

What components of other kinds need is in ``axil.plugin``, what users need is in ``axil``. Each name
belongs to one of the three. The names are stable within a major version, the modules that they come
from may move.

An engine starts, unloads, resumes and recovers runs; the protocol is ``Engine``. An engine of your
own needs ``Workflow.begun`` with ``ManagedRun``, a ``Journal``, ``Entry`` and ``ReplayIndex`` to
read what it recorded, ``accept_answers`` and ``wall_time`` for deadlines, and ``snapshot`` for the
result of a run that another process ended. ``axil_testing.kit.EngineKit`` tests it. The protocol,
``ManagedRun`` and ``LocalEngine`` come from the distribution ``axil-engine``, and ``snapshot``,
``fork``, ``steps`` and what belongs to them from ``axil-inspection``. Whatever reads or writes a
journal comes from ``axil-journals``, and bodies as plain data from ``axil-process``.

>>> from axil.driver import inner_frame
>>> inner_frame((), "loop", (0, 2))
('loop', '#0.2')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axil._door import lazy

_SUBJECTS = {
    "Journals": {
        "axil_journals.journal": """
            AT_ONCE Bell Cipher Entry Journal JournalWriter Letter RunInfo SharedJournal
            Compactor claimed_error due_of_end question_due
        """,
        "axil_journals.threads": "admit_run left_behind_error overtaken_error",
        "axil_journals.writers": "GroupCommit RunPart RunWriter",
    },
    "Records as plain data": {
        "axil_journals.rows": """
            EntryRow=Row entry_row=row_of row_entries=entries_of joined_row=joined
            damaged_error=damaged
        """,
        "axil_journals.values": "decode_delta decode_value encode_delta encode_value",
        "kernel.tokens": "Frame Ordinal inner_frame new_tuple",
    },
    "Recorders": {
        "runtime.recorder": """
            Answered Asked ClockRead EffectBegun Fact Recorder SleepBegun StepDone
        """,
        "runtime.services": "Progress",
        "axil_journals.recorder": "JournalRecorder answer_entry",
        "kernel.outcomes": "Exit Send Transition",
        "kernel.plan": "ResolvedGraph=Graph",
        "kernel.scopes": "CycleRun Round",
        "kernel.state": "NO_RESET",
        "spec.graph": "KEPT",
    },
    "Inspection of runs": {
        "axil_journals.deadlines": "format_time open_questions",
        "axil_journals.replay": "ReplayIndex",
        "axil_journals.prompts": "Prompt prompts_of",
        "axil_journals.migrations": "adapt_entries graph_of_frame recorded_graph",
        "axil_journals.records": "record_graph version_changes",
        "axil_inspection.breakpoints": "Breakpoints",
        "axil_inspection.checks": "CheckResult check_workflow want_lines want_rows",
        "axil_inspection.drawing": "draw_plan=draw join_name=join_of",
        "axil_inspection.forks": "Edit fork",
        "axil_inspection.snapshots": "Snapshot snapshot",
        "axil_inspection.outlines": "Outline OutlineNode outline",
        "axil_inspection.scopes": """
            PlanScope=Scope cycle_bounds=bounded edge_label=label shortened walk_plan=walk
        """,
        "axil_inspection.records": "Difference RunStep differences steps",
    },
    "Engines": {
        "axil_engine.protocol": "Engine RunStatus",
        "builder.workflow": "RunInput",
        "axil_engine.managed": "ManagedRun",
        "axil_engine.loading": "LastingExecutor Stand go_on lasting_executor",
        "axil_journals.deadlines": "accept_answers wall_time",
        "axil_engine.engine": "LocalEngine",
    },
    "Executors": {
        "contract.context": "Executor",
        "runtime.pool": "LocalExecutor",
        "axil_process.executor": "JobExecutor ProcessExecutor",
        "axil_process.wrapper": "ProcessWrapper=Process",
        "axil_process.config": "ProcessConfig ProcessExecutorConfig=ExecutorConfig",
    },
    "Bodies as plain data": {
        "axil_process.jobs": """
            Job decode_outcome decode_task encode_outcome
            encode_task job_of plan_of_job
        """,
        "axil_process.conversation": "Conversation Link firing_of outcome_of",
        "axil_process.host": "BodyHost",
        "axil_process.errors": "BodyRaised ProcessError WorkerDied",
    },
    "Time and pauses": {
        "contract.context": "Clock",
        "runtime.services": "Pause RealClock",
    },
    "Scheduling": {
        "kernel.events": """
            Command CycleTally DropBodies End Ending Known RecordFiring RecordRound Report Return
            Start SubRun
        """,
        "kernel.machine": "Machine",
        "kernel.scheduler": "Scheduler",
        "kernel.outcomes": "FrameResult",
    },
}

_RENAMED = {"Moment": "Snapshot", "moment": "snapshot"}

if TYPE_CHECKING:
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
    from axil_journals.recorder import (
        JournalRecorder as JournalRecorder,
        answer_entry as answer_entry,
    )
    from axil_journals.records import (
        record_graph as record_graph,
        version_changes as version_changes,
    )
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
    from axil_process.executor import (
        JobExecutor as JobExecutor,
        ProcessExecutor as ProcessExecutor,
    )
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
    damaged_error = damaged
    entry_row = row_of
    joined_row = joined
    row_entries = entries_of
    PlanScope = Scope
    ProcessExecutorConfig = ExecutorConfig
    ProcessWrapper = Process
    ResolvedGraph = Graph
    cycle_bounds = bounded
    draw_plan = draw
    edge_label = label
    join_name = join_of
    walk_plan = walk
    Moment = Snapshot
    moment = snapshot
else:
    __getattr__, __dir__, __all__ = lazy(globals(), _SUBJECTS, _RENAMED)

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

from axil._door import lazy

_SUBJECTS = {
    "Journals": {
        "axil_journals.journal": """
            DUE_NOW ChangeSignal Cipher Entry Journal JournalWriter RunMail RunInfo SharedJournal
            Compactor claimed_error due_of_end question_due
        """,
        "axil_journals.threads": "admit_run left_behind_error overtaken_error",
        "axil_journals.writers": "GroupCommit RunPart RunWriter",
    },
    "Records as plain data": {
        "axil_journals.rows": """
            EntryRow entry_row row_entries joined_row
            damaged_error
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
        "kernel.plan": "ResolvedGraph",
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
        "axil_inspection.drawing": "draw_plan join_name",
        "axil_inspection.forks": "Edit fork",
        "axil_inspection.snapshots": "Snapshot snapshot",
        "axil_inspection.outlines": "Outline OutlineNode outline",
        "axil_inspection.scopes": """
            PlanScope cycle_bounds edge_label shortened walk_plan
        """,
        "axil_inspection.records": "Difference RunStep differences steps",
    },
    "Engines": {
        "axil_engine.protocol": "Engine RunStatus",
        "builder.workflow": "RunInput",
        "axil_engine.managed": "ManagedRun",
        "axil_engine.status": "with_recorded_end",
        "axil_engine.loading": "LastingExecutor ResumedStatus resume_run lasting_executor",
        "axil_journals.deadlines": "accept_answers wall_time",
        "axil_engine.engine": "LocalEngine",
    },
    "Executors": {
        "contract.context": "Executor",
        "runtime.pool": "LocalExecutor",
        "axil_process.executor": "JobExecutor ProcessExecutor",
        "axil_process.wrapper": "ProcessWrapper",
        "axil_process.config": "ProcessConfig ProcessExecutorConfig",
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

__getattr__, __dir__, __all__ = lazy(globals(), _SUBJECTS, _RENAMED)

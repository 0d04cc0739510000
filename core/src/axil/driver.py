"""Names for authors of journals, engines and executors, and of tools that inspect runs.

What components of other kinds need is in ``axil.plugin``, what users need is in ``axil``. Each name
belongs to one of the three. The names are stable within a major version, the modules that they come
from may move.

An engine starts, unloads, resumes and recovers runs; the protocol is ``Engine``. An engine of your
own needs ``Workflow.begun`` with ``ManagedRun``, a ``Journal``, ``Entry`` and ``ReplayIndex`` to
read what it recorded, ``accept_answers`` and ``wall_time`` for deadlines, and ``moment`` for the
result of a run that another process ended. ``axil_testing.kit.EngineKit`` tests it. The protocol,
``ManagedRun`` and ``LocalEngine`` come from the distribution ``axil-engine``, and ``moment``,
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
            Cipher Entry Journal JournalWriter RunInfo Compactor claimed_error
        """,
        "axil_journals.threads": "admit_run left_behind_error overtaken_error",
    },
    "Records as plain data": {
        "axil_journals.values": "decode_delta decode_value encode_delta encode_value",
        "kernel.tokens": "Frame Ordinal inner_frame new_tuple",
    },
    "Recorders": {
        "runtime.recorder": """
            Answered Asked ClockRead EffectBegun Fact Recorder SleepBegun StepDone
        """,
        "runtime.services": "Progress",
        "axil_journals.recorder": "JournalRecorder",
        "kernel.outcomes": "Exit Send Transition",
        "kernel.plan": "ResolvedGraph=Graph",
        "kernel.scopes": "CycleRun Round",
        "kernel.state": "NO_RESET",
        "spec.graph": "KEPT",
    },
    "Inspection of runs": {
        "axil_journals.deadlines": "format_time open_questions",
        "axil_journals.replay": "ReplayIndex",
        "axil_journals.migrations": "adapt_entries graph_of_frame recorded_graph",
        "axil_journals.records": "record_graph version_changes",
        "axil_inspection.breakpoints": "Breakpoints",
        "axil_inspection.drawing": "draw_plan=draw join_name=join_of",
        "axil_inspection.forks": "Edit fork",
        "axil_inspection.moments": "Moment moment",
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
        "axil_journals.deadlines": "accept_answers wall_time",
        "axil_engine.engine": "LocalEngine",
    },
    "Executors": {
        "contract.context": "Executor",
        "runtime.pool": "LocalExecutor",
    },
    "Bodies as plain data": {
        "axil_process.jobs": """
            Job decode_outcome decode_task encode_outcome
            encode_task job_of plan_of_job
        """,
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

if TYPE_CHECKING:
    from axil.builder.workflow import RunInput
    from axil.contract.context import Clock, Executor
    from axil.kernel.events import (
        Command,
        CycleTally,
        DropBodies,
        End,
        Ending,
        Known,
        RecordFiring,
        RecordRound,
        Report,
        Return,
        Start,
        SubRun,
    )
    from axil.kernel.machine import Machine
    from axil.kernel.outcomes import Exit, FrameResult, Send, Transition
    from axil.kernel.plan import Graph as ResolvedGraph
    from axil.kernel.scheduler import Scheduler
    from axil.kernel.scopes import CycleRun, Round
    from axil.kernel.state import NO_RESET
    from axil.kernel.tokens import Frame, Ordinal, inner_frame, new_tuple
    from axil.runtime.pool import LocalExecutor
    from axil.runtime.recorder import (
        Answered,
        Asked,
        ClockRead,
        EffectBegun,
        Fact,
        Recorder,
        SleepBegun,
        StepDone,
    )
    from axil.runtime.services import Pause, Progress, RealClock
    from axil.spec.graph import KEPT
    from axil_engine.engine import LocalEngine
    from axil_engine.managed import ManagedRun
    from axil_engine.protocol import Engine, RunStatus
    from axil_inspection.breakpoints import Breakpoints
    from axil_inspection.drawing import draw as draw_plan, join_of as join_name
    from axil_inspection.forks import Edit, fork
    from axil_inspection.moments import Moment, moment
    from axil_inspection.outlines import Outline, OutlineNode, outline
    from axil_inspection.records import Difference, RunStep, differences, steps
    from axil_inspection.scopes import (
        Scope as PlanScope,
        bounded as cycle_bounds,
        label as edge_label,
        shortened,
        walk as walk_plan,
    )
    from axil_journals.deadlines import (
        accept_answers,
        format_time,
        open_questions,
        wall_time,
    )
    from axil_journals.journal import (
        Cipher,
        Compactor,
        Entry,
        Journal,
        JournalWriter,
        RunInfo,
        claimed_error,
    )
    from axil_journals.migrations import (
        adapt_entries,
        graph_of_frame,
        recorded_graph,
    )
    from axil_journals.recorder import JournalRecorder
    from axil_journals.records import record_graph, version_changes
    from axil_journals.replay import ReplayIndex
    from axil_journals.threads import (
        admit_run,
        left_behind_error,
        overtaken_error,
    )
    from axil_journals.values import decode_delta, decode_value, encode_delta, encode_value
    from axil_process.jobs import (
        Job,
        decode_outcome,
        decode_task,
        encode_outcome,
        encode_task,
        job_of,
        plan_of_job,
    )
else:
    __getattr__, __dir__ = lazy(globals(), _SUBJECTS)

__all__ = [
    "KEPT",
    "NO_RESET",
    "Answered",
    "Asked",
    "Breakpoints",
    "Cipher",
    "Clock",
    "ClockRead",
    "Command",
    "Compactor",
    "CycleRun",
    "CycleTally",
    "Difference",
    "DropBodies",
    "Edit",
    "EffectBegun",
    "End",
    "Ending",
    "Engine",
    "Entry",
    "Executor",
    "Exit",
    "Fact",
    "Frame",
    "FrameResult",
    "Job",
    "Journal",
    "JournalRecorder",
    "JournalWriter",
    "Known",
    "LocalEngine",
    "LocalExecutor",
    "Machine",
    "ManagedRun",
    "Moment",
    "Ordinal",
    "Outline",
    "OutlineNode",
    "Pause",
    "PlanScope",
    "Progress",
    "RealClock",
    "RecordFiring",
    "RecordRound",
    "Recorder",
    "ReplayIndex",
    "Report",
    "ResolvedGraph",
    "Return",
    "Round",
    "RunInfo",
    "RunInput",
    "RunStatus",
    "RunStep",
    "Scheduler",
    "Send",
    "SleepBegun",
    "Start",
    "StepDone",
    "SubRun",
    "Transition",
    "accept_answers",
    "adapt_entries",
    "admit_run",
    "claimed_error",
    "cycle_bounds",
    "decode_delta",
    "decode_outcome",
    "decode_task",
    "decode_value",
    "differences",
    "draw_plan",
    "edge_label",
    "encode_delta",
    "encode_outcome",
    "encode_task",
    "encode_value",
    "fork",
    "format_time",
    "graph_of_frame",
    "inner_frame",
    "job_of",
    "join_name",
    "left_behind_error",
    "moment",
    "new_tuple",
    "open_questions",
    "outline",
    "overtaken_error",
    "plan_of_job",
    "record_graph",
    "recorded_graph",
    "shortened",
    "steps",
    "version_changes",
    "walk_plan",
    "wall_time",
]

"""Names for authors of journals, engines and executors; stable within a major version.

>>> from axil.driver import inner_frame
>>> inner_frame((), "loop", (0, 2))
('loop', '#0.2')
"""

from __future__ import annotations

from axil._lazy import lazy_names

_SUBJECTS = {
    "Records as plain data": {
        "kernel.tokens": "Frame Ordinal inner_frame new_tuple",
    },
    "Recorders": {
        "compiler.migrations": "Migration",
        "kernel.machine": "Exit Send Transition",
        "kernel.plan": "ResolvedGraph",
        "kernel.scopes": "CycleRun Round",
        "kernel.state": "NO_RESET",
        "runtime.deadlines": "wall_time",
        "runtime.recorder": """
            Progress RunJournal
            Answered Asked ClockRead EffectBegun Fact Recorder SleepBegun
            StepDone
        """,
        "spec.graph": "KEPT",
    },
    "Engines": {
        "builder.workflow": "RunInput",
    },
    "Executors": {
        "contract.context": "Executor STEPS_ELSEWHERE",
        "runtime.pool": "LocalExecutor",
    },
    "Time and pauses": {
        "contract.context": "Clock",
        "runtime.services": "Pause RealClock",
    },
    "Scheduling": {
        "kernel.events": """
            Command CycleTally DropBodies End Ending Known RecordFiring
            RecordRound Report Return Start SubRun
        """,
        "kernel.machine": "FrameResult Machine",
        "kernel.scheduler": "Scheduler",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

"""Names of ``axil.driver`` for type checkers; written by ``make manifests``."""

from axil.builder.workflow import RunInput as RunInput
from axil.compiler.migrations import Migration as Migration
from axil.contract.context import (
    STEPS_ELSEWHERE as STEPS_ELSEWHERE,
    Clock as Clock,
    Executor as Executor,
)
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
from axil.kernel.machine import (
    Exit as Exit,
    FrameResult as FrameResult,
    Machine as Machine,
    Send as Send,
    Transition as Transition,
)
from axil.kernel.plan import ResolvedGraph as ResolvedGraph
from axil.kernel.scheduler import Scheduler as Scheduler
from axil.kernel.scopes import CycleRun as CycleRun, Round as Round
from axil.kernel.state import NO_RESET as NO_RESET
from axil.kernel.tokens import (
    Frame as Frame,
    Ordinal as Ordinal,
    inner_frame as inner_frame,
    new_tuple as new_tuple,
)
from axil.runtime.deadlines import wall_time as wall_time
from axil.runtime.pool import LocalExecutor as LocalExecutor
from axil.runtime.recorder import (
    Answered as Answered,
    Asked as Asked,
    ClockRead as ClockRead,
    EffectBegun as EffectBegun,
    Fact as Fact,
    Progress as Progress,
    Recorder as Recorder,
    RunJournal as RunJournal,
    SleepBegun as SleepBegun,
    StepDone as StepDone,
)
from axil.runtime.services import Pause as Pause, RealClock as RealClock
from axil.spec.graph import KEPT as KEPT

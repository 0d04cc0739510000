"""Names of ``axil_process`` for type checkers; written by ``make manifests``."""

from axil_process.config import (
    ProcessConfig as ProcessConfig,
    ProcessExecutorConfig as ProcessExecutorConfig,
)
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
from axil_process.programs.child import KILL as KILL, Child as Child, end_elsewhere as end_elsewhere
from axil_process.programs.output import Output as Output
from axil_process.programs.program import (
    Ended as Ended,
    run_program as run_program,
    settle as settle,
)
from axil_process.programs.sandbox import (
    CONTAINERS as CONTAINERS,
    Launch as Launch,
    Place as Place,
    Sandbox as Sandbox,
    Wanted as Wanted,
    find_sandbox as find_sandbox,
    sandboxed as sandboxed,
)
from axil_process.sandboxes.bubblewrap import Bubblewrap as Bubblewrap
from axil_process.sandboxes.containers import Docker as Docker, Podman as Podman
from axil_process.sandboxes.executor import (
    SandboxExecutor as SandboxExecutor,
    SandboxWrapper as SandboxWrapper,
)
from axil_process.wrapper import ProcessWrapper as ProcessWrapper

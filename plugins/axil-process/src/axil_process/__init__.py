"""Other processes: programs, sandboxes for them, and bodies of nodes in processes of their own."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Executors": {
        "config": "ProcessConfig ProcessExecutorConfig",
        "executor": "JobExecutor ProcessExecutor",
        "wrapper": "ProcessWrapper",
    },
    "Bodies as plain data": {
        "conversation": "Conversation Link firing_of outcome_of",
        "errors": "BodyRaised ProcessError WorkerDied",
        "host": "BodyHost",
        "jobs": """
            Job decode_outcome decode_task encode_outcome encode_task job_of
            plan_of_job
        """,
    },
    "Programs": {
        "programs.child": "Child KILL end_elsewhere",
        "programs.output": "Output",
        "programs.program": "Ended run_program settle",
        "programs.sandbox": "CONTAINERS Launch Place Sandbox Wanted find_sandbox sandboxed",
    },
    "Sandboxes": {
        "sandboxes.bubblewrap": "Bubblewrap",
        "sandboxes.containers": "Docker Podman",
        "sandboxes.executor": "SandboxExecutor SandboxWrapper",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

_MOVED = {
    "axil_process.programs": "axil_subprocess",
    "axil_process.sandboxes": "axil_sandbox",
    "axil_process.sandboxes.executor:SandboxWrapper": "axil_sandbox.executor:Sandbox",
    "axil_process.wrapper:ProcessWrapper": "axil_process.wrapper:Process",
}
"""Moved places → their names in the digests of runs that were recorded before."""

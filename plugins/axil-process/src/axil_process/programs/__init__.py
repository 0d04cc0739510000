"""Programs in process groups of their own: ``Child`` for a conversation, ``run`` for one result."""

from axil_subprocess.child import KILL, Child, end_elsewhere
from axil_subprocess.output import Output
from axil_subprocess.program import Ended, run_program, settle
from axil_subprocess.sandbox import Launch, Place, Sandbox, Wanted, find_sandbox, sandboxed

__all__ = [
    "KILL",
    "Child",
    "Ended",
    "Launch",
    "Output",
    "Place",
    "Sandbox",
    "Wanted",
    "end_elsewhere",
    "find_sandbox",
    "run_program",
    "sandboxed",
    "settle",
]

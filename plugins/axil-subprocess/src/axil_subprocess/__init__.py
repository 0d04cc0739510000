"""Programs in process groups of their own: ``Child`` for a conversation, ``run`` for one result."""

from axil_subprocess.child import KILL, Child
from axil_subprocess.output import Output
from axil_subprocess.program import Ended, run, settle
from axil_subprocess.sandbox import Place, Sandbox, Wanted, find_sandbox, sandboxed

__all__ = [
    "KILL",
    "Child",
    "Ended",
    "Output",
    "Place",
    "Sandbox",
    "Wanted",
    "find_sandbox",
    "run",
    "sandboxed",
    "settle",
]

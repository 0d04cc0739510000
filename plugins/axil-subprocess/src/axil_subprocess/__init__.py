"""Programs in process groups of their own: ``Child`` for a conversation, ``run`` for one result."""

from axil_subprocess.child import KILL, Child, end_elsewhere
from axil_subprocess.output import Output
from axil_subprocess.program import Ended, run, settle
from axil_subprocess.sandbox import (
    CONTAINERS,
    Launch,
    Place,
    Sandbox,
    Wanted,
    find_sandbox,
    sandboxed,
    withheld,
)

__all__ = [
    "CONTAINERS",
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
    "run",
    "sandboxed",
    "settle",
    "withheld",
]

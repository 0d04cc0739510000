"""Bodies in processes of their own: what keeps a core busy does not hold up the rest, and what
crashes takes nothing with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axil_process.errors import BodyRaised, ProcessError, WorkerDied
    from axil_process.executor import ProcessExecutor
    from axil_process.wrapper import ProcessWrapper

_FOUND_IN = {
    "BodyRaised": "errors",
    "Process": "wrapper",
    "ProcessError": "errors",
    "ProcessExecutor": "executor",
    "WorkerDied": "errors",
}


def __getattr__(name: str) -> Any:
    """Import it when it is used: a process that runs bodies needs less than one that starts it."""
    module = _FOUND_IN.get(name)
    if module is None:
        raise AttributeError(f"module 'axil_process' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"axil_process.{module}"), name)


__all__ = ["BodyRaised", "ProcessError", "ProcessExecutor", "ProcessWrapper", "WorkerDied"]

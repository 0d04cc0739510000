"""Sandboxes for programs: ``Bubblewrap``, ``Docker``, ``Podman``; and for bodies of nodes: the
executor ``SandboxExecutor`` and the wrapper ``Sandbox``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axil_sandbox.bubblewrap import Bubblewrap
from axil_sandbox.containers import Docker, Podman

if TYPE_CHECKING:
    from axil_sandbox.executor import SandboxExecutor, SandboxWrapper


def __getattr__(name: str) -> Any:
    """Import it when it is used: programs in a sandbox need no processes for bodies."""
    if name not in ("Sandbox", "SandboxExecutor"):
        raise AttributeError(f"module 'axil_sandbox' has no attribute {name!r}")
    from axil_sandbox import executor

    return getattr(executor, name)


__all__ = ["Bubblewrap", "Docker", "Podman", "SandboxExecutor", "SandboxWrapper"]

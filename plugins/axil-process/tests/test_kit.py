"""The laws of the kits."""

from __future__ import annotations

from axil_process.executor import ProcessExecutor
from axil_process.wrapper import ProcessWrapper
from axil_testing.kit import Kit


class TestExecutor(Kit):
    kind = "executors"
    component = ProcessExecutor


class TestWrapper(Kit):
    kind = "wrappers"
    component = ProcessWrapper

"""The laws of the kit; they need no cluster."""

from __future__ import annotations

from axil_ray import RayExecutor
from axil_testing.kit import Kit


class TestExecutor(Kit):
    kind = "executors"
    component = RayExecutor

"""The fixtures under test.

Elsewhere one says ``pytest_plugins`` in the topmost conftest; this one is not the topmost of the
workspace.
"""

from axil_testing.fixtures import machine, only_plugins, recorder, virtual_clock, workflow

__all__ = ["machine", "only_plugins", "recorder", "virtual_clock", "workflow"]

"""Tools for plugin authors: a virtual clock, a recorder, scripted models, random graphs, golden
traces.

Nothing is imported until it is used, and nothing is registered with pytest: say ``pytest_plugins =
["axil_testing.fixtures"]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axil_testing.clock import VirtualClock
    from axil_testing.golden import Golden
    from axil_testing.recorder import Recorded, Recorder
    from axil_testing.scripted import ScriptedModel

__all__ = ["Golden", "Recorded", "Recorder", "ScriptedModel", "VirtualClock"]

_FOUND_IN = {
    "Golden": "axil_testing.golden",
    "Recorded": "axil_testing.recorder",
    "Recorder": "axil_testing.recorder",
    "ScriptedModel": "axil_testing.scripted",
    "VirtualClock": "axil_testing.clock",
}


def __getattr__(name: str) -> Any:
    module = _FOUND_IN.get(name)
    if module is None:
        raise AttributeError(f"module 'axil_testing' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)

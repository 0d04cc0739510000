"""Tools for plugin authors: a virtual clock, a recorder, scripted models, random graphs, golden
traces.

For the fixtures of pytest write ``pytest_plugins = ["axil_testing.fixtures"]``.
"""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Tools of tests": {
        "clock": "JumpingClock VirtualClock",
        "golden": "Golden",
        "recorder": "Recorded Recorder",
        "scripted": "ScriptedModel",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

"""The names that EvoFabric has in ``plugin_manager``, and axil in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing

_INSTEAD = "Components are found through entry points: see axil's tutorial on writing a plugin."
__getattr__: Callable[[str], Any] = missing(
    __name__, dict.fromkeys(("init_plugins", "load_plugins", "PluginTypeDict"), _INSTEAD)
)

"""Access to states of either kind."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, cast

from axil import safe_get_attr
from evofabric.absent import missing

__all__ = ["safe_get_attr", "safe_set_attr"]


def safe_set_attr(data: Any, name: str, value: Any) -> None:
    """Set a key of a mapping, or an attribute of anything else."""
    if isinstance(data, MutableMapping):
        cast("MutableMapping[str, Any]", data)[name] = value
    else:
        setattr(data, name, value)


_PLUGINS = "Components are found through entry points: see axil's tutorial on writing a plugin."
_FILES = "Graphs are kept as workflow files, which hold no code: see axil_files."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "BaseComponent": _PLUGINS,
        "ComponentFactory": _PLUGINS,
        "FactoryTypeAdapter": _PLUGINS,
        "get_func_serializer": _FILES,
        "set_func_serializer": _FILES,
        "FunctionSerializerProto": _FILES,
        "FunctionSerializerCloudPickle": _FILES,
        "register_deserialize_modules": _FILES,
    },
)

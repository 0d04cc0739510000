"""Components by name, and access to states of either kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axil import safe_get_attr
from evofabric.absent import missing
from evofabric.core.factory.components import BaseComponent, ComponentFactory, FactoryTypeAdapter
from evofabric.core.factory.helpers import (
    deep_dump,
    fill_defaults,
    is_basemodel,
    is_dataclass,
    is_typeddict,
    safe_convert_to_schema,
    safe_set_attr,
    strip_annotated,
)

__all__ = [
    "BaseComponent",
    "ComponentFactory",
    "FactoryTypeAdapter",
    "deep_dump",
    "fill_defaults",
    "is_basemodel",
    "is_dataclass",
    "is_typeddict",
    "safe_convert_to_schema",
    "safe_get_attr",
    "safe_set_attr",
    "strip_annotated",
]

_FILES = "Graphs are kept as workflow files, which hold no code: see axil_files."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    dict.fromkeys(
        (
            "get_func_serializer",
            "set_func_serializer",
            "FunctionSerializerProto",
            "FunctionSerializerCloudPickle",
            "register_deserialize_modules",
            "StateSchemaSerializable",
            "dump_schema_annotated_info",
            "load_schema_annotated_info",
        ),
        _FILES,
    ),
)

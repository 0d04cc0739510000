"""The input of a graph as a JSON Schema: for tools, and for forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from axil import GraphSpec
from axil.plugin import ENTRY, Field, thaw


def input_schema(spec: GraphSpec) -> dict[str, Any]:
    """Return the schema of an object with the inputs of a graph.

    The input of a graph of messages is one text, here under the name ``input``.

    >>> from axil import RootGraph
    >>> graph = RootGraph("greet")
    >>> _ = graph.create_node(lambda inputs: inputs, name="hello")
    >>> _ = graph.edge_from_entry("hello", {"name": "of whom"})
    >>> _ = graph.edge_to_exit("hello", {"name": "of whom"})
    >>> input_schema(graph.build().spec)["properties"]
    {'name': {'description': 'of whom'}}
    """
    if spec.payload == "messages":
        text = {"type": "string", "description": "The input of the workflow."}
        return _object({"input": text}, ["input"])
    if spec.payload == "state" and spec.schema is not None:
        return _object({name: _typed(field) for name, field in spec.schema.fields.items()}, [])
    edges = [edge for edge in spec.edges if edge.source == ENTRY]
    keys = {name: text for edge in edges for name, text in (edge.keys or {}).items()}
    # what an edge with a condition carries may be missing
    needed = {name for edge in edges if edge.condition is None for name in edge.keys or ()}
    described = {name: {"description": text} if text else {} for name, text in keys.items()}
    return _object(described, [name for name in keys if name in needed], more=not keys)


def _object(
    properties: Mapping[str, Any], required: list[str], *, more: bool = False
) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": more,
    }


def _typed(field: Field) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    schema_of = getattr(field.validate, "json_schema", None)
    try:
        found: dict[str, Any] = {} if schema_of is None else dict(schema_of())
    except PydanticUserError:  # JSON has no word for the type; the field's own check will judge
        found = {}
    if field.default is not None and "default" not in found:
        try:
            found["default"] = json.loads(json.dumps(thaw(field.default())))
        except (TypeError, ValueError):  # it is no plain data, and so nothing for a form
            return found
    return found


__all__ = ["input_schema"]

"""The format of workflow files as data: the shapes of its parts, in the words of JSON Schema.

One table serves the reader (``files``), which checks documents against it, and editors, which get
it as a JSON Schema together with the config of the installed components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from axil import PluginError, Problem
from axil.plugin import (
    Registry,
    default_registry,
    did_you_mean,
    format_names,
    format_value,
)
from axil_files.documents import DEEPEST, Document, Keys

Shape = Mapping[str, Any]

NODE_IDS: Final[Shape] = {"type": ["string", "array"], "items": {"type": "string", "minLength": 1}}
NAMES: Final[Shape] = {
    "type": ["object", "array"],
    "additionalProperties": {"type": "string"},
    "items": {"type": "string"},
}
_YES_OR_NO: Final[Shape] = {"type": "boolean"}
_TEXT: Final[Shape] = {"type": "string"}
_MAPPING: Final[Shape] = {"type": "object"}
_COUNT: Final[Shape] = {"type": "integer", "minimum": 1}
_AMOUNT: Final[Shape] = {"type": "number", "exclusiveMinimum": 0}


def is_version_0(version: Any) -> bool:
    """Say whether a file is of version ``0.…``: one of DevAll's, which ignores keys that it does
    not know.

    >>> is_version_0("0.4.0"), is_version_0(0.4), is_version_0("1.0.0"), is_version_0(None)
    (True, True, False, False)
    """
    return version is not None and str(version).split(".")[0] == "0"


def notes_field(memory: str) -> str:
    """Return the field of the state in which agents leave notes for a memory of their graph.

    >>> notes_field("board")
    'memory/board'
    """
    return f"memory/{memory}"


def _of(shape: Shape, description: str, **more: Any) -> Shape:
    return {**shape, "description": description, **more}


def _object(properties: Mapping[str, Shape], *required: str) -> Shape:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


USE: Final[Shape] = {
    "type": ["string", "object"],
    "minLength": 1,
    "properties": {"type": _of(_TEXT, "The component's name.", minLength=1), "config": _MAPPING},
    "required": ["type"],
    "additionalProperties": False,
}
SPLIT: Final[Shape] = {
    **USE,
    "properties": {
        **USE["properties"],
        "type": _of(_TEXT, "message, regex or json_path.", minLength=1),
    },
}

NODE: Final[Shape] = _object(
    {
        "id": _of(_TEXT, "The node's name, unique in the graph.", minLength=1),
        "type": _of(_TEXT, "The node type.", minLength=1),
        "config": _of(_MAPPING, "The settings of the node type."),
        "description": _TEXT,
        "join": _of(USE, "When the node fires: gate, all, each, or a join that a plugin provides."),
        "lane": _of(_TEXT, "Nodes of one lane share a limit of concurrency."),
        "effects": {
            "enum": ["none", "idempotent", "external"],
            "description": "What running the node once more may do to the world; "
            "external: a resumed run asks first.",
        },
        "wrappers": {
            "type": "array",
            "items": USE,
            "description": "Around the body, outermost first: retry, timeout …",
        },
        "pull": _of(NAMES, "State fields the node sees."),
        "push": _of(NAMES, "Output fields written to the state."),
        "pull_keys": _of(NAMES, "The same as pull."),
        "push_keys": _of(NAMES, "The same as push."),
        "attributes": _of(_MAPPING, "The node's own attributes."),
        "context_window": {
            "type": "integer",
            "minimum": -1,
            "description": "Messages kept for the next firing; 0 none, -1 all.",
        },
        "log_output": _of(_YES_OR_NO, "False hides the output in logs."),
        "input": {"type": "array", "description": "Messages that are there from the start."},
        "output": {"type": "array"},
        "dynamic": {"description": "Ignored: it belongs on the edge."},
    },
    "id",
    "type",
)

DYNAMIC: Final[Shape] = _object(
    {
        "type": {
            "enum": ["map", "tree"],
            "description": "One firing per part, or rounds of groups until one is left.",
        },
        "split": _of(SPLIT, "How messages become parts."),
        "config": _object(
            {"max_parallel": _COUNT, "group_size": {"type": "integer", "minimum": 2}}
        ),
    },
    "type",
)

EDGE: Final[Shape] = _object(
    {
        "from": _of(_TEXT, 'A node, or "@entry".', minLength=1),
        "to": _of(_TEXT, 'A node, or "@exit".', minLength=1),
        "trigger": _of(_YES_OR_NO, "False: carries data and never makes the target fire."),
        "condition": {
            **USE,
            "type": ["boolean", "string", "object"],
            "description": "When the edge is taken.",
        },
        "keys": _of(NAMES, "Fields to carry; none: the whole output."),
        "process": _of(USE, "What is carried instead of the output."),
        "group": _of(_TEXT, "In-edges of one group join by themselves."),
        "carry_data": _of(_YES_OR_NO, "False: only the trigger."),
        "keep_message": _of(_YES_OR_NO, "What is carried stays with the target."),
        "clear_context": _of(
            _YES_OR_NO, "What the target has is dropped first, unless it is kept."
        ),
        "clear_kept_context": _of(_YES_OR_NO, "What the target has is dropped first."),
        "dynamic": _of(DYNAMIC, "The target runs once for each part of what is carried."),
        "description": _TEXT,
    },
    "from",
    "to",
)

CYCLE_LIMIT: Final[Shape] = _object(
    {
        "rounds": {
            "type": ["integer", "string"],
            "minimum": 1,
            "description": "How often the cycle may turn, or unlimited.",
        },
        "at_limit": {"enum": ["limited", "exit"], "description": "What that means."},
    }
)
_MONEY: Final[Shape] = {"type": "number", "minimum": 0}
PRICE: Final[Shape] = _object(
    {"input": _MONEY, "output": _MONEY, "cached": _MONEY}, "input", "output"
)
PRICING: Final[Shape] = _object(
    {
        "models": {
            "type": "object",
            "additionalProperties": PRICE,
            "description": "Money for a million tokens, by model.",
        },
        "unknown": {"type": ["string", "object"], "description": "refuse, ignore, or a price."},
    }
)
LIMITS: Final[Shape] = _object(
    {
        "firings": _COUNT,
        "seconds": _AMOUNT,
        "concurrency": _COUNT,
        "lanes": {"type": "object", "additionalProperties": _COUNT},
        "tokens": _COUNT,
        "cost": _AMOUNT,
        "pricing": _of(PRICING, "What models cost."),
        "estimate": _object(
            {"characters_per_token": _AMOUNT, "output_tokens": {"type": "integer", "minimum": 0}}
        ),
    }
)
FIELD: Final[Shape] = _object(
    {
        "type": _of(_TEXT, "str, int, float, bool, list, dict, any, list[str] …"),
        "strategy": _TEXT,
        "default": {},
        "description": _TEXT,
    },
    "type",
)
STORE: Final[Shape] = _object(
    {"name": _of(_TEXT, "Unique.", minLength=1), "type": _TEXT, "config": _MAPPING},
    "name",
    "type",
    "config",
)

GRAPH: Final[Shape] = _object(
    {
        "id": _TEXT,
        "description": _TEXT,
        "nodes": {"type": "array", "items": NODE},
        "edges": {"type": "array", "items": EDGE},
        "start": _of(NODE_IDS, "The nodes that receive the input."),
        "end": _of(NODE_IDS, "The nodes whose output is the result, in order of preference."),
        "state": _of(
            _MAPPING,
            "Attributes with their first values, or fields: {name: {type, strategy, default}}.",
        ),
        "attributes": _of(_MAPPING, "Attributes with their first values."),
        "state_version": {
            "type": "integer",
            "minimum": 1,
            "description": "Of the shape of the state; see migrations.",
        },
        "migrations": _of(
            _MAPPING,
            "By the version it begins at, the import path of what leads to the next: "
            "module:function.",
        ),
        "payload": {"enum": ["messages", "fields", "state"], "description": "What edges carry."},
        "cycles": {"enum": ["allow", "forbid"]},
        "loop": _of(_TEXT, "The controller, if the graph is a loop."),
        "cycle_limits": {
            "type": "object",
            "additionalProperties": CYCLE_LIMIT,
            "description": 'By the node of entry; "*": all others.',
        },
        "limits": LIMITS,
        "node_wrappers": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": USE},
            "description": 'Around nodes, outside their own wrappers, by node type; "*": all.',
        },
        "is_majority_voting": _of(
            _YES_OR_NO,
            "All nodes answer the input; the most frequent answer wins; edges are ignored.",
        ),
        "memory": {"type": "array", "items": STORE},
        "initial_instruction": _TEXT,
        "organization": _TEXT,
        "log_level": {"enum": ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]},
        "args": {},
    },
    "nodes",
)
ROOT: Final[Shape] = _object(
    {
        "version": {"type": ["string", "number"]},
        "vars": _of(_MAPPING, "Values for ${NAME}."),
        "requires": {
            **NAMES,
            "description": "Distributions the workflow needs: {name: version} or [name>=version].",
        },
        "graph": GRAPH,
    },
    "graph",
)

_WORDS: Final = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
}
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list, tuple),
    "object": (dict,),
}


def is_kind(value: Any, kind: str) -> bool:
    """Whether ``value`` is of a JSON Schema type; booleans are no numbers."""
    return isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


class Shapes:
    """Compares a document with shapes and reports every difference.

    An optional key that is null is a key that is not there.
    """

    def __init__(self, document: Document, report: Callable[[Problem], None]) -> None:
        self._document, self.report = document, report
        self.spoiled: set[Keys] = set()
        """Parts in which something has the wrong shape, down to the keys of nodes and edges."""

    @property
    def is_lenient(self) -> bool:
        """Tell whether unknown keys are only warned of: in DevAll's files, those of version 0."""
        data = self._document.data
        return isinstance(data, dict) and is_version_0(cast("dict[str, Any]", data).get("version"))

    def fits(self, value: Any, shape: Shape, keys: Keys) -> bool:
        """Whether ``value`` has the shape, all the way down; what has not is reported."""
        if expected := _unmet(value, shape):
            known = cast("Sequence[str]", shape.get("enum", ()))
            hint = did_you_mean(value, known) if isinstance(value, str) else ""
            return self.problem(
                "AX103", keys, f"expected {expected}, found {format_value(value)}.", hint
            )
        fine = True
        if isinstance(value, dict):
            fine = self._members(cast("dict[str, Any]", value), shape, keys)
        elif isinstance(value, list) and "items" in shape:
            for i, item in enumerate(cast("list[Any]", value)):
                fine = self.fits(item, shape["items"], (*keys, i)) and fine
        return fine

    def _members(self, value: dict[str, Any], shape: Shape, keys: Keys) -> bool:
        fine = True
        properties = cast("Mapping[str, Shape]", shape.get("properties", {}))
        others = shape.get("additionalProperties", True)
        for key, item in value.items():
            if key in properties:
                if item is not None or key in shape["required"]:
                    fine = self.fits(item, properties[key], (*keys, key)) and fine
            elif others is False and self.is_lenient:
                place = str(self._document.place(*keys, key))
                self.report(
                    Problem(
                        "AX141",
                        place,
                        f'unknown key "{key}" is ignored.',
                        self._instead(key, properties),
                        "warning",
                    )
                )
            elif others is False:
                fine = self.problem(
                    "AX141", (*keys, key), f'unknown key "{key}".', self._instead(key, properties)
                )
            elif others is not True:
                fine = self.fits(item, others, (*keys, key)) and fine
        for key in shape.get("required", ()):
            if key not in value:
                fine = self.problem(
                    "AX142", keys, f'the key "{key}" is missing.', _meaning(properties[key])
                )
        return fine

    def _instead(self, key: str, properties: Mapping[str, Shape]) -> str:
        places = {"graph": GRAPH, "the node": NODE, "the edge": EDGE, "the top of the file": ROOT}
        for place, shape in places.items():
            if key in shape["properties"]:
                return f'"{key}" belongs to {place}.'
        if key in ("merge", "filter", "router", "body"):
            return "It is a function, and can be given in Python only."
        return (
            did_you_mean(key, properties) or f"Known here: {format_names(sorted(properties), 20)}."
        )

    def problem(self, id: str, keys: Keys, message: str, hint: str = "") -> bool:
        """Reports a problem; False, for ``return``."""
        self.report(Problem(id, str(self._document.place(*keys)), message, hint))
        if id != "AX141":  # what is known of the part can still be read
            self.spoiled.update(keys[:length] for length in range(2, len(keys) + 1))
        return False


def _unmet(value: Any, shape: Shape) -> str:
    """What is expected and not so; empty: ``value`` itself is fine."""
    if "enum" in shape:
        return (
            ""
            if isinstance(value, str) and value in shape["enum"]
            else "one of " + ", ".join(shape["enum"])
        )
    kinds = shape.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else cast("Sequence[str]", kinds)
    if kinds and not any(is_kind(value, kind) for kind in kinds):
        return " or ".join(_WORDS[kind] for kind in kinds)
    if isinstance(value, str) and len(value) < shape.get("minLength", 0):
        return "text that is not empty"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < shape.get("minimum", value):
            return f"{_WORDS[kinds[0]]}, at least {shape['minimum']}"
        if "exclusiveMinimum" in shape and value <= shape["exclusiveMinimum"]:
            return f"{_WORDS[kinds[0]]} > {shape['exclusiveMinimum']}"
    return ""


def _meaning(shape: Shape) -> str:
    return str(shape.get("description", ""))


# --------------------------------------------------------------------------------------------------

_CONFIGURED: Final = {
    "nodes": "nodes",
    "conditions": "conditions",
    "processors": "processors",
    "wrappers": "wrappers",
}


def json_schema(registry: Registry | None = None) -> dict[str, Any]:
    """The JSON Schema of workflow files, with the config of every installed component.

    Components are imported for it; those that cannot be are left open: their config may be
    anything.
    """
    known = registry or default_registry()
    definitions: dict[str, Any] = {}
    for kind in _CONFIGURED:
        names = known.names(kind)
        rules = [
            _rule(kind, name, _config_schema(known, kind, name, definitions)) for name in names
        ]
        definitions[kind] = {"properties": {"type": {"examples": list(names)}}, "allOf": rules}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "axil workflow file",
        **cast("dict[str, Any]", _open(ROOT, 0)),
        "$defs": definitions,
    }


def _rule(kind: str, name: str, config: Any) -> dict[str, Any]:
    applies = {
        "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
        "then": {"properties": {"config": config}},
    }
    return applies


def _config_schema(registry: Registry, kind: str, name: str, definitions: dict[str, Any]) -> Any:
    """The JSON Schema of one component's config; its inner models go to ``definitions``, under the
    component's name.
    """
    try:
        component = registry.resolve(kind, name)
    except PluginError:
        return {}
    model = getattr(component, "Config", None)
    if not hasattr(model, "model_json_schema"):
        return {}
    from pydantic.errors import PydanticUserError  # whoever has a model has pydantic

    try:
        schema: dict[str, Any] = cast("Any", model).model_json_schema(
            ref_template=f"#/$defs/{kind}.{name}.{{model}}"
        )
    except PydanticUserError:  # a type that JSON Schema has no words for
        return {}
    for inner, definition in schema.pop("$defs", {}).items():
        definitions[f"{kind}.{name}.{inner}"] = definition
    return schema if schema.get("required") else {"anyOf": [schema, {"type": "null"}]}


def _open(shape: Any, depth: int) -> Any:
    """The shape for editors: optional keys may be null, components have their config."""
    if not isinstance(shape, Mapping) or depth > DEEPEST:
        return cast("Any", shape)
    source = cast("Shape", shape)
    result: dict[str, Any] = {
        k: v for k, v in source.items() if k not in ("properties", "items", "additionalProperties")
    }
    for key in ("items", "additionalProperties"):
        if key in source:
            result[key] = _open(source[key], depth + 1)
    if "properties" in source:
        required = source.get("required", ())
        result["properties"] = {
            k: _open(v, depth + 1)
            if k in required
            else {"anyOf": [_with_config(k, _open(v, depth + 1)), {"type": "null"}]}
            for k, v in source["properties"].items()
        }
    if source is NODE:
        result["$ref"] = "#/$defs/nodes"
    return result


def _with_config(key: str, shape: Any) -> Any:
    kind = {"condition": "conditions", "process": "processors"}.get(key)
    if kind is not None:
        return {**shape, "if": {"type": "object"}, "then": {"$ref": f"#/$defs/{kind}"}}
    if key == "wrappers":
        return {
            **shape,
            "items": {
                **shape["items"],
                "if": {"type": "object"},
                "then": {"$ref": "#/$defs/wrappers"},
            },
        }
    if key == "node_wrappers":
        return {
            **shape,
            "additionalProperties": _with_config("wrappers", shape["additionalProperties"]),
        }
    return shape

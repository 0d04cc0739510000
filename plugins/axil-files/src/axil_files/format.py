"""The format of workflow files: documents are compared with its models, and editors get them as a
JSON Schema together with the config of the installed components.

The models are in ``models``, which needs pydantic and is imported where there is a document.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from axil import PluginError, Problem
from axil.plugin import Misfit, Registry, default_registry, did_you_mean, format_names, misfits
from axil_files.documents import Document, KeyPath

if TYPE_CHECKING:
    from pydantic import BaseModel


def is_version_0(version: object) -> bool:
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


_IDS: Final = {"unknown": "AX141", "missing": "AX142", "value": "AX103"}


WHOLE: Final = "Write graph, with nodes and start; axil schema prints the format."
"""The way in which a file is written."""
_WRITTEN: Final = {
    "nodes": "Write a list of them: - {id: plan, type: agent, config: {…}}.",
    "edges": "Write a list of them: - {from: plan, to: write}.",
}
"""The ways in which parts of a graph are written."""


class Shapes:
    """A comparison of a document with models; it reports every difference.

    An optional key that is null is a key that is not there.
    """

    def __init__(self, document: Document, report: Callable[[Problem], None]) -> None:
        self._document, self.report = document, report
        self.spoiled: set[KeyPath] = set()
        """Parts in which something does not fit, down to the keys of nodes and edges."""

    @property
    def is_lenient(self) -> bool:
        """Tell whether unknown keys are only warned of: in DevAll's files, those of version 0."""
        data = self._document.data
        return isinstance(data, dict) and is_version_0(cast("dict[str, Any]", data).get("version"))

    def fits(self, value: Any, model: type[BaseModel], keys: KeyPath) -> bool:
        """Tell whether ``value`` fits a model, all the way down; what does not is reported."""
        from pydantic import ValidationError

        try:
            model.model_validate(value)
        except ValidationError as error:
            found = list(misfits(model, value, error))
        else:
            return True
        for each in found:
            self._report(each, (*keys, *each.keys))
        return self.is_lenient and all(each.kind == "unknown" for each in found)

    def _report(self, misfit: Misfit, keys: KeyPath) -> None:
        where = str(self._document.place(*keys))
        message, hint, severity = misfit.message, misfit.hint or misfit.description, "error"
        if not hint and misfit.kind == "value":
            names = [key for key in keys if isinstance(key, str)]
            hint = _WRITTEN.get(names[-1], "") if names else WHOLE
        if misfit.kind == "unknown":
            hint = _instead(misfit)
            if self.is_lenient:
                message, severity = f"{message[:-1]} is ignored.", "warning"
        else:  # what is known of a part with an unknown key can still be read
            self.spoiled.update(keys[:length] for length in range(2, len(keys) + 1))
        self.report(Problem(_IDS[misfit.kind], where, message, hint, cast("Any", severity)))


_ELSEWHERE: Final = {"when": "condition", "if": "condition", "source": "from", "target": "to"}
"""Keys of Python and of other systems, and what files say."""
_WRAPPERS: Final = {
    **dict.fromkeys(("retries", "retry", "max_retries"), "retry"),
    **dict.fromkeys(("timeout", "timeout_seconds"), "timeout"),
    "cache": "cache",
}
"""Keys of nodes in other systems, and the wrappers that do it here."""


def _instead(misfit: Misfit) -> str:
    """Return what to do about an unknown key."""
    from axil_files.models import Edge, File, Graph, Node, names_of

    places = {"graph": Graph, "the node": Node, "the edge": Edge, "the top of the file": File}
    for place, model in places.items():
        if misfit.key in names_of(model):
            return f'"{misfit.key}" belongs to {place}.'
    if misfit.key in ("merge", "filter", "router", "body"):
        return "It is a function, and can be given in Python only."
    if (other := _ELSEWHERE.get(misfit.key)) in misfit.known:
        return f'Write "{other}".'
    if "wrappers" in misfit.known and (wrapper := _WRAPPERS.get(misfit.key)):
        return f"Write wrappers: [{{type: {wrapper}}}]."
    meant = did_you_mean(misfit.key, misfit.known)
    if not meant and {"type", "config"} <= set(misfit.known):
        return f"Settings of its type are under config: config: {{{misfit.key}: …}}."
    return meant or f"Known here: {format_names(sorted(misfit.known), 20)}."


# --------------------------------------------------------------------------------------------------

_CONFIGURED: Final = {
    "nodes": "Node",
    "conditions": "Condition",
    "processors": "Processor",
    "wrappers": "Wrapper",
}
"""Kinds of components whose settings are in files, and the models that name one."""


def workflow_schema(registry: Registry | None = None) -> dict[str, Any]:
    """Return the JSON Schema of workflow files, with the config of every installed component.

    Components are imported for it; those that cannot be are left open: their config may be
    anything.
    """
    from axil_files.models import File

    known = registry or default_registry()
    schema = File.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs")
    for kind, model in _CONFIGURED.items():
        names = known.names(kind)
        rules = [
            _rule(kind, name, _config_schema(known, kind, name, definitions)) for name in names
        ]
        definitions[kind] = {
            "properties": {"type": {"type": "string", "examples": list(names)}},
            "allOf": rules,
        }
        definitions[model]["$ref"] = f"#/$defs/{kind}"
    definitions["Template"]["$ref"] = "#/$defs/nodes"
    node = definitions["Node"]
    node["required"].remove("type")
    node["anyOf"] = [{"required": ["type"]}, {"required": ["use"]}]
    for each in (schema, *definitions.values()):
        _admit_variables(each)
    definitions["variable"] = {"type": "string", "pattern": r"\$\{"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "axil workflow file",
        "$defs": definitions,
    }


def _admit_variables(schema: dict[str, Any]) -> None:
    """Let each property also be a text with a variable, as ``max_iterations: ${ROUNDS}``."""
    for name, value in schema.get("properties", {}).items():
        if value.get("type") != "string" and "const" not in value:
            said = {key: value.pop(key) for key in ("description", "default") if key in value}
            schema["properties"][name] = {"anyOf": [value, {"$ref": "#/$defs/variable"}], **said}


def _rule(kind: str, name: str, config: Any) -> dict[str, Any]:
    applies = {
        "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
        "then": {"properties": {"config": config}},
    }
    return applies


def _config_schema(registry: Registry, kind: str, name: str, definitions: dict[str, Any]) -> Any:
    """Return the JSON Schema of one component's config.

    Its inner models go to ``definitions``, under the component's name.
    """
    try:
        component = registry.resolve(kind, name)
    except PluginError:
        return {}
    model = getattr(component, "Config", None)
    if not hasattr(model, "model_json_schema"):
        return {}
    from pydantic.errors import PydanticUserError  # a program with a model has pydantic

    try:
        schema: dict[str, Any] = cast("Any", model).model_json_schema(
            ref_template=f"#/$defs/{kind}.{name}.{{model}}"
        )
    except PydanticUserError:  # a type that JSON Schema has no words for
        return {}
    for inner, definition in schema.pop("$defs", {}).items():
        definitions[f"{kind}.{name}.{inner}"] = definition
    _admit_variables(schema)
    return schema if schema.get("required") else {"anyOf": [schema, {"type": "null"}]}

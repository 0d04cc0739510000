"""Manifests, written from the classes: what entry points cannot say without an import.

The schema of a ``Config`` is the one source: ``axil.plugin.refers_to`` and ``axil.plugin.Secret``
mark fields there, and ``json_schema_extra={"examples": […]}`` of a model gives configs that a
component can be made with.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from axil import AxilError, ConfigError, Problem
from axil.plugin import (
    CONTRACT_VERSIONS,
    MANIFEST_FILE,
    MANIFEST_VERSION,
    Component,
    Registry,
    make_component,
)
from axil_plugins.survey import installed_name

UNCONFIGURED = frozenset({"reducers", "loaders", "commands", "options", "hooks"})
"""Kinds whose components are used as they are: nothing is written for them in files."""


def manifest_of(distribution: str, registry: Registry, summary: str = "") -> dict[str, Any]:
    """Return the manifest of an installed distribution, as data. Its components are imported.

    Raises: UnknownComponent: it is not installed; PluginLoadError: a component cannot be imported.
    """
    name = installed_name(distribution, registry)
    own = [each for each in registry.candidates() if each.distribution == name]
    components = [
        _component(each, registry.resolve(each.kind, f"{name}/{each.name}")) for each in own
    ]
    kinds = sorted({each.kind for each in own})
    metadata = getattr(registry.distribution(name), "metadata", None)
    return {
        "manifest": MANIFEST_VERSION,
        "distribution": name,
        "summary": summary or (str(metadata["Summary"] or "") if metadata is not None else ""),
        "spec": {kind: CONTRACT_VERSIONS[kind] for kind in kinds},
        "components": components,
    }


def as_text(manifest: Mapping[str, Any]) -> str:
    """Return a manifest as text: the same for the same classes."""
    return json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=False) + "\n"


def _component(component: Component, found: Any) -> dict[str, Any]:
    model: Any = getattr(found, "Config", None)
    schema = _in_order(model.model_json_schema()) if hasattr(model, "model_json_schema") else None
    data: dict[str, Any] = {
        "kind": component.kind,
        "name": component.name,
        "object": component.value,
        "summary": summary_of(found),
    }
    if schema is not None:
        data["config_schema"] = schema
        data["refs"] = list(references(schema))
        data["secrets"] = list(secrets(schema))
    if component.kind not in UNCONFIGURED:
        data["examples"] = examples_of(found, schema)
    data["capabilities"] = sorted(map(str, getattr(found, "capabilities", ())))
    data["aliases"] = sorted(map(str, getattr(found, "aliases", ())))
    data["stability"] = str(getattr(found, "stability", "stable"))
    data["replacement"] = str(getattr(found, "replacement", ""))
    return {key: value for key, value in data.items() if value not in ([], "", None)}


def _in_order(shape: Any, *, is_choice: bool = False) -> Any:
    """Return a schema with the values of its choices in an order of their own.

    ``Literal["a", "b"] | None`` equals ``Literal["b", "a"] | None``, and typing keeps the first of
    equal unions for all of them: their order is that of whichever module was imported first.

    >>> _in_order({"anyOf": [{"enum": ["b", "a"]}, {"type": "null"}]})
    {'anyOf': [{'enum': ['a', 'b']}, {'type': 'null'}]}
    >>> _in_order({"enum": ["b", "a"]})
    {'enum': ['b', 'a']}
    """
    if isinstance(shape, list):
        return [_in_order(each, is_choice=is_choice) for each in cast("list[Any]", shape)]
    if not isinstance(shape, dict):
        return shape
    made: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", shape).items():
        if key == "enum" and is_choice and isinstance(value, list):
            made[key] = sorted(cast("list[Any]", value), key=json.dumps)
        elif key in ("default", "examples", "const"):  # values, and no schemas
            made[key] = value
        else:
            made[key] = _in_order(value, is_choice=is_choice or key in ("anyOf", "oneOf"))
    return made


def summary_of(found: Any) -> str:
    """Return the first sentence of a component's description, without its own name before it.

    >>> class A:
    ...     '''``a``: does it. And more.'''
    >>> summary_of(A)
    'Does it.'
    """
    plain = inspect.isclass(found) or inspect.isroutine(found) or inspect.ismodule(found)
    described = found if plain else getattr(found, "reduce", None)
    # None has a docstring since Python 3.13, and it describes no component
    text = None if described is None else inspect.getdoc(described)
    line = " ".join((text or "").split("\n\n")[0].split())
    first = line.partition(". ")[0].rstrip(".") + "." if line else ""
    named, colon, rest = first.partition(": ")
    if colon and named.startswith("``") and named.endswith("``"):
        first = rest[:1].upper() + rest[1:]
    return first.replace("``", "`")


def examples_of(found: Any, schema: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return configs that the component can be made with: those its schema or the class gives, else
    none at all where none is needed.
    """
    given = (schema or {}).get("examples") or getattr(found, "examples", None)
    if given:
        return [dict(each) for each in cast("Sequence[Mapping[str, Any]]", given)]
    if not isinstance(found, type):
        return [{}] if schema is None else []
    try:
        make_component(cast("Any", found), {})
    except (AxilError, TypeError, ValueError):
        return []
    return [{}]


def references(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the references in the fields of a config."""
    for pointer, shape in fields(schema):
        stated = shape.get("x-axil-ref")
        if isinstance(stated, Mapping):
            reference = dict(cast("Mapping[str, Any]", stated))
            path = pointer + str(reference.pop("path", ""))
            yield {"path": path, **reference}


def secrets(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the places at which a config holds secrets."""
    for pointer, shape in fields(schema):
        branches = [shape, *cast("list[Any]", shape.get("anyOf", []))]
        if any(
            isinstance(each, Mapping) and cast("Mapping[str, Any]", each).get("x-axil-secret")
            for each in branches
        ):
            yield pointer


def fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every field of a schema with its pointer, nested models included; a model that contains
    itself is entered once.
    """
    definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))
    waiting: list[tuple[str, Mapping[str, Any], tuple[str, ...]]] = [("", schema, ())]
    while waiting:
        pointer, shape, within = waiting.pop(0)
        inner: list[tuple[str, Any]] = [
            *(
                (f"{pointer}/{name}", each)
                for name, each in cast("Mapping[str, Any]", shape.get("properties", {})).items()
            ),
            *(
                (pointer, each)
                for key in ("anyOf", "oneOf", "allOf")
                for each in cast("list[Any]", shape.get(key, []))
            ),
            *(
                [(f"{pointer}/*", shape["items"])]
                if isinstance(shape.get("items"), Mapping)
                else []
            ),
            *(
                [(f"{pointer}/*", shape["additionalProperties"])]
                if isinstance(shape.get("additionalProperties"), Mapping)
                else []
            ),
        ]
        name = str(shape.get("$ref", "")).rpartition("/")[2]
        if name and name in definitions and name not in within:
            inner.append((pointer, definitions[name]))
            within = (*within, name)
        for where, each in inner:
            if where != pointer:
                yield where, each
            waiting.append((where, each, within))


def place_of(distribution: str, registry: Registry) -> Path:
    """Return where the manifest of an installed distribution belongs: beside its package's
    ``__init__``.

    Raises: UnknownComponent: it is not installed; ConfigError (AX732): it does not say in which
    package, or the package is in no folder.
    """
    name = installed_name(distribution, registry)
    package = registry.package(name)
    hint = (
        f'In its pyproject.toml: [project.entry-points."axil.plugin"] {name} = '
        f'"{name.replace("-", "_")}"'
    )
    if not package:
        message = "it does not say which of its packages holds the manifest."
        raise ConfigError(Problem("AX732", name, message, hint))
    spec = importlib.util.find_spec(package) if "." not in package else None
    places = spec.submodule_search_locations if spec is not None else None
    if not places or not Path(places[0]).is_dir():
        message = f"its package {package} is in no folder that could be written to."
        raise ConfigError(Problem("AX732", name, message, hint))
    return Path(places[0]) / MANIFEST_FILE

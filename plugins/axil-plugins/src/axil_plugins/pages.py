"""``axil plugins docs``: the components of a distribution as Markdown, from its manifest; without
one, from its classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from axil.plugin import (
    COMPONENT_KINDS,
    Manifest,
    Registry,
    canonical_name,
    parse_manifest,
)
from axil_plugins.manifests import manifest_of
from axil_plugins.survey import distribution


def pages(name: str, registry: Registry) -> dict[str, str]:
    """Return a page for each kind: file name → Markdown.

    Raises: UnknownComponent: it is not installed; PluginLoadError: it has to be
    imported and cannot be."""
    stated = distribution(name, registry)
    manifest = registry.manifest(name)
    if manifest is None:
        manifest = parse_manifest(manifest_of(canonical_name(name), registry))
    kinds = [
        kind
        for kind in COMPONENT_KINDS
        if any(each["kind"] == kind for each in manifest.components)
    ]
    return {
        f"{kind}.md": "\n".join(_page(kind, manifest, stated["version"])) + "\n" for kind in kinds
    }


def _page(kind: str, manifest: Manifest, version: str) -> Iterator[str]:
    word = COMPONENT_KINDS[kind]
    yield f"# {word[0].upper()}{word[1:]}s of {manifest.distribution}"
    yield ""
    yield f"Version {version}. {manifest.summary}".rstrip()
    for each in manifest.components:
        if each["kind"] == kind:
            yield ""
            yield from _component(each)


def _component(each: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {each['name']}"
    yield ""
    yield each.get("summary") or "(It says nothing of itself.)"
    if (stability := each.get("stability", "stable")) != "stable":
        instead = f"; use `{each['replacement']}` instead" if each.get("replacement") else ""
        yield f"\nStability: {stability}{instead}."
    if aliases := each.get("aliases"):
        yield f"\nFormerly: {', '.join(f'`{name}`' for name in aliases)}."
    if capabilities := each.get("capabilities"):
        yield f"\nClaims: {', '.join(capabilities)}."
    schema: Mapping[str, Any] = each.get("config_schema") or {}
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties", {}))
    if properties:
        required = set(cast("list[str]", schema.get("required", [])))
        yield "\n| setting | type | default | is |\n|---|---|---|---|"
        for name, shape in properties.items():
            default = (
                "required"
                if name in required
                else f"`{json.dumps(shape.get('default'), ensure_ascii=False)}`"
            )
            report = (type_of(shape, schema), default, str(shape.get("description", "")))
            yield f"| `{name}` | {' | '.join(map(_cell, report))} |"
    for example in each.get("examples", ()):
        if example:
            use = {"type": each["name"], "config": example}
            yield f"\n```json\n{json.dumps(use, ensure_ascii=False, indent=2)}\n```"


def type_of(shape: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the type of a field in words.

    >>> type_of({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}},
    ...     {"type": "null"}]}, {})
    'text, or a list of integer'
    """
    words = {
        "string": "text",
        "integer": "integer",
        "number": "number",
        "boolean": "true or false",
        "object": "mapping",
        "null": "",
    }
    if "$ref" in shape:
        name = str(shape["$ref"]).rpartition("/")[2]
        inner = cast("Mapping[str, Any]", schema.get("$defs", {})).get(name, {})
        return "secret" if "x-axil-secret" in inner else name
    if "x-axil-secret" in shape:
        return "secret"
    for key in ("anyOf", "oneOf"):
        if key in shape:
            lines = [type_of(each, schema) for each in cast("list[Mapping[str, Any]]", shape[key])]
            return ", or ".join(dict.fromkeys(word for word in lines if word))
    if "enum" in shape or "const" in shape:
        return " or ".join(f"`{each}`" for each in shape.get("enum", [shape.get("const")]))
    if shape.get("type") == "array":
        inner = type_of(cast("Mapping[str, Any]", shape.get("items", {})), schema)
        return f"a list of {inner}" if inner else "a list"
    return words.get(
        str(shape.get("type", "")), "anything" if "type" not in shape else str(shape["type"])
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

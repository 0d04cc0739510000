"""The vocabulary of drafts: how workflow files are written, and what is installed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any, Final, cast

from axil.plugin import Registry

_NO_NODES: Final = frozenset({"draft_check", "dynamic_agent", "loop", "map", "tree"})
_NO_KEYS: Final = frozenset(
    {
        "provider",
        "name",
        "base_url",
        "api_key",
        "role",
        "params",
        "role_name",
        "titles",
        "max_turns",
        "max_repairs",
        "input_mode",
        "hide_unused_fields",
        "formatters",
        "model_settings",
        "approve_within",
        "approve_late",
        "hears",
        "gives",
        "split",
        "max_parallel",
        "max_items",
        "edges",
        "reset_on_emit",
        "late",
        "keep",
    }
)
"""Settings that a draft does without: those of a service, and fine tuning."""
_PYTHON: Final = re.compile(r", or an objects? of Python|, or objects of Python|; in Python [^.;]*")
"""The parts of descriptions that are about Python."""


def vocabulary(registry: Registry, allow: Iterable[str] = ()) -> str:
    """Return the text that tells a model what it may write.

    Node types, tools and context providers are those of the registry, as their manifests describe
    them.
    """
    granted = ", ".join(sorted(allow)) or "nothing"
    return "\n".join(
        [
            files("axil_cli.draft").joinpath("format.md").read_text("utf-8"),
            f"Granted: {granted}.",
            "",
            "# Node types, with their settings (config)",
            "",
            *_nodes(registry),
            "",
            "# Tools of agents (`tools: [NAME]`)",
            "",
            *(f"- {name}: {about['summary']}" for name, about in _described("tools", registry)),
            "",
            "# Context of agents (`memories: [NAME]`, `retrievers: [{type: NAME, config: {…}}]`)",
            "",
            *(f"- {name}: {about['summary']}" for name, about in _described("context", registry)),
        ]
    )


def _described(kind: str, registry: Registry) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the installed components of a kind that have a manifest and a plain name."""
    for each in registry.candidates(kind):
        manifest = registry.manifest(each.distribution) if each.status == "available" else None
        about = manifest.find(kind, each.name) if manifest is not None else None
        if about is not None and "." not in each.name:
            yield each.name, about


def _nodes(registry: Registry) -> Iterator[str]:
    for name, about in _described("nodes", registry):
        schema = about.get("config_schema")
        if name in _NO_NODES or not isinstance(schema, Mapping):
            continue
        yield f"- {name}: {about['summary']}"
        fields = cast("Mapping[str, Any]", schema)
        required = fields.get("required", ())
        for key, field in fields.get("properties", {}).items():
            if key not in _NO_KEYS:
                needed = " (required)" if key in required else ""
                about_it = _PYTHON.sub("", field.get("description", ""))
                yield f"    {key}{needed}: {about_it}"


__all__ = ["vocabulary"]

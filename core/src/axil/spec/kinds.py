"""The kinds of components, their entry-point groups, and the versions of their contracts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

COMPONENT_KINDS: Final[Mapping[str, str]] = {
    "nodes": "node type",
    "conditions": "condition",
    "processors": "processor",
    "reducers": "update strategy",
    "joins": "join",
    "models": "model adapter",
    "formatters": "formatter",
    "context": "context provider",
    "tools": "tool",
    "embedders": "embedder",
    "rerankers": "reranker",
    "stores": "store",
    "wrappers": "wrapper",
    "channels": "channel",
    "meters": "meter",
    "pictures": "picture",
    "journals": "journal",
    "ciphers": "cipher",
    "engines": "engine",
    "executors": "executor",
    "sandboxes": "sandbox",
    "loaders": "file format",
    "dialects": "dialect",
    "shorthands": "shorthand",
    "judges": "judge",
    "scorers": "scorer",
    "guards": "guard",
    "hooks": "hook plugin",
    "commands": "command",
    "options": "option",
    "protocols": "protocol",
    "importers": "importer",
}
"""Kinds of components, each with the words for one; the entry-point group is ``axil.<kind>``."""

CONTRACT_VERSIONS: Final[Mapping[str, str]] = dict.fromkeys(COMPONENT_KINDS, "1.0")
"""The contract of each kind, ``major.minor``.

What is added raises the minor, what breaks the major; a major and the one before it are understood.
From the second on a major has a group of its own, ``axil.nodes.v2``, so that a plugin can serve old
and new kernels.
"""

KERNEL: Final = "axil-core"
"""The kernel's own distribution."""
MANIFEST: Final = "plugin"
"""``axil.plugin``: distribution → the package that holds its ``axil-plugin.json``."""
_GROUP: Final = re.compile(r"axil\.(?P<kind>[a-z_]+)(?:\.v(?P<major>[1-9]\d*))?")
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")
_NAMES: Final[Mapping[str, str]] = {
    "options": r"[a-z]+\.[a-z][a-z0-9-]*",
    "protocols": r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)?",
}
"""Kinds whose names are written as options and paths are: with hyphens."""


def canonical_name(distribution: str) -> str:
    """Return a distribution's name in one spelling: ``Axil_Files`` is ``axil-files``."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def is_component_name(kind: str, name: str) -> bool:
    """Return whether a distribution may call a component so: lower case, the vendor before a dot.

    >>> is_component_name("nodes", "acme.shout"), is_component_name("nodes", "Shout")
    (True, False)
    """
    form = _NAMES.get(kind, r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?")
    return re.fullmatch(form, name) is not None


def kind_of_group(group: str) -> tuple[str, int]:
    """Return the kind and the major version of an entry-point group; no kind: not ours.

    >>> kind_of_group("axil.nodes"), kind_of_group("axil.nodes.v2")
    (('nodes', 1), ('nodes', 2))
    >>> kind_of_group("console_scripts")
    ('', 0)
    """
    found = _GROUP.fullmatch(group)
    return (found["kind"], int(found["major"] or 1)) if found else ("", 0)


def incompatibility(kind: str, spec: str) -> str:
    """Return why a component written for ``spec`` of its kind cannot be used; empty: it can.

    >>> incompatibility("nodes", "1.0"), incompatibility("nodes", "2.0")
    ('', 'it is written for version 2.0 of node types, and this axil understands 1.0')
    """
    if spec == CONTRACT_VERSIONS[kind]:
        return ""
    written, current = _VERSION.fullmatch(spec), _VERSION.fullmatch(CONTRACT_VERSIONS[kind])
    assert current is not None
    major, minor = int(current[1]), int(current[2])
    if (
        written is not None
        and max(1, major - 1) <= int(written[1]) <= major
        and (int(written[1]) < major or int(written[2]) <= minor)
    ):
        return ""
    oldest, newest = f"{max(1, major - 1)}.0", CONTRACT_VERSIONS[kind]
    window = newest if newest == oldest else f"{oldest} to {newest}"
    message = f"version {spec}" if written else f'"{spec}", which is no version,'
    return (
        f"it is written for {message} of {COMPONENT_KINDS[kind]}s, "
        f"and this axil understands {window}"
    )

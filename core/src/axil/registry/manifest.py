"""Manifests: what a distribution says of its components in its ``axil-plugin.json``.

Resolving a name needs two facts that entry points cannot hold before anything is imported: the
contract version that a component is written for, and its former names. axil-plugins writes and
shows manifests; axil follows the references in them.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, cast

MANIFEST_FILE: Final = "axil-plugin.json"
"""Its name, in the package of its distribution."""
MANIFEST_VERSION: Final = 1
"""Of the form of manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A distribution's components, as it describes them."""

    distribution: str
    summary: str = ""
    spec: Mapping[str, str] = field(default_factory=dict[str, str])
    """Kind → the contract version that its components are written for; default 1.0."""
    components: tuple[Mapping[str, Any], ...] = ()
    """The description of each, with ``kind`` and ``name``; see docs/reference/plugins.md."""

    def find(self, kind: str, name: str) -> Mapping[str, Any] | None:
        """Return the description of one component; None: there is none."""
        return next(
            (each for each in self.components if each["name"] == name and each["kind"] == kind),
            None,
        )


def read_manifest(package: str) -> Manifest | None:
    """Read the manifest of a top-level package, which is not imported; None: it has none.

    Raises: ValueError, RecursionError: it is no manifest.
    """
    try:
        spec = importlib.util.find_spec(package) if package and "." not in package else None
    except (ImportError, ValueError, AttributeError):
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        try:
            data = cast("Any", spec).loader.get_data(os.path.join(folder, MANIFEST_FILE))
        except (OSError, AttributeError):
            continue
        return parse_manifest(json.loads(data))
    return None


def parse_manifest(data: object) -> Manifest:
    """Return a manifest from its data. Raises: ValueError."""
    if not isinstance(data, Mapping):
        raise ValueError("it is no mapping")
    given = cast("Mapping[str, Any]", data)
    if given.get("manifest") != MANIFEST_VERSION:
        found = given.get("manifest")
        raise ValueError(f"it says manifest {found!r}, and this axil reads {MANIFEST_VERSION}")
    spec, components = given.get("spec", {}), given.get("components", [])
    if not _are_texts([given.get("distribution"), given.get("summary", "")]):
        raise ValueError("its distribution and summary are text")
    if not isinstance(spec, Mapping) or not _are_texts(
        chain(*cast("Mapping[object, object]", spec).items())
    ):
        raise ValueError("its spec is a mapping from kinds to versions")
    if not isinstance(components, list) or not all(map(_is_described, cast("Any", components))):
        raise ValueError("its components are mappings with a kind, a name and lists of texts")
    return Manifest(
        distribution=given["distribution"],
        summary=given.get("summary", ""),
        spec=cast("Mapping[str, str]", spec),
        components=tuple(cast("list[Any]", components)),
    )


_TEXTS: Final = ("object", "summary", "stability", "replacement")
_LISTS: Final = ("secrets", "capabilities", "aliases")


def _is_described(each: object) -> bool:
    if not isinstance(each, Mapping):
        return False
    data = cast("Mapping[str, Any]", each)
    lists: list[Any] = [data.get(key, []) for key in _LISTS]
    refs: object = data.get("refs", [])
    return (
        _are_texts([data.get("kind"), data.get("name"), *(data.get(key, "") for key in _TEXTS)])
        and all(isinstance(listed, list) for listed in lists)
        and all(_are_texts(listed) for listed in lists)
        and isinstance(refs, list)
        and all(_is_reference(ref) for ref in cast("list[Any]", refs))
    )


def _is_reference(ref: object) -> bool:
    if not isinstance(ref, Mapping):
        return False
    data = cast("Mapping[str, Any]", ref)
    default: object = data.get("default", [])
    return (
        _are_texts([data.get("path"), data.get("kind"), data.get("beside", "")])
        and isinstance(default, list)
        and _are_texts(cast("list[Any]", default))
    )


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)

"""Installed distributions: what they require, directly or not, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from axil.plugin import canonical_name
from axil_plugins.records import direct_url


def closure(
    roots: Iterable[str], extras: Mapping[str, frozenset[str]] | None = None
) -> dict[str, str]:
    """Return the versions of distributions and of all that they require and is installed here.

    ``extras``: those that are wanted of roots, by name.
    """
    wanted = extras or {}
    seen: dict[str, str] = {}
    waiting = [(canonical_name(name), wanted.get(name, frozenset())) for name in roots]
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, asked = waiting.pop()
        metadata = metadata_of(name)
        if metadata is None or (name, asked) in done:
            continue
        done.add((name, asked))
        seen[name] = str(metadata.version)
        waiting += required(metadata, asked)
    return dict(sorted(seen.items()))


def required(
    metadata: Any, extras: frozenset[str] = frozenset()
) -> list[tuple[str, frozenset[str]]]:
    """Return the distributions, with extras, that one requires in this environment."""
    from packaging.requirements import InvalidRequirement, Requirement

    found: list[tuple[str, frozenset[str]]] = []
    for text in metadata.requires or ():
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue
        if wanted.marker is None or any(
            wanted.marker.evaluate({"extra": extra}) for extra in (*extras, "")
        ):
            found.append((canonical_name(wanted.name), frozenset(wanted.extras)))
    return found


def metadata_of(name: str) -> Any:
    """Return the metadata of an installed distribution; None: it is not installed."""
    from importlib import metadata as importlib_metadata

    try:
        return importlib_metadata.distribution(name)
    except importlib_metadata.PackageNotFoundError:
        return None


def source_of(metadata: Any) -> Path | None:
    """Return the project folder of an editable distribution; None: it is not editable."""
    stated = None if metadata is None else direct_url(metadata)
    if not stated or not stated.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlsplit(str(stated.get("url", ""))).path))

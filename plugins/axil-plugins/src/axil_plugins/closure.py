"""The closure of distributions: what they require here, directly or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from axil.plugin import canonical_name


def closure(
    roots: Iterable[str], extras: Mapping[str, frozenset[str]] | None = None
) -> dict[str, str]:
    """Return distributions and all that they require here → their versions, by name; what is not
    installed is left out.

    Args:
        extras: those that are wanted of roots, by name.
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
    """Return the distributions that a distribution requires in this environment, with the extras
    that it asks for.
    """
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

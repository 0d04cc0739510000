"""References: settings whose values name other components or hold graphs, as manifests say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A setting whose value names another component, or holds a graph."""

    path: str
    """The place in the config, as a JSON pointer; ``*`` is every member: ``/tools/*``."""
    kind: str
    """A kind of component; ``graph``: a graph, a node, or ``{path: FILE}``; ``file``: the path of a
    file that is read.
    """
    default: tuple[str, ...] = ()
    """The default where the setting is missing."""
    beside: str = ""
    """The default is meant only where this setting is there."""


def references_of(described: Mapping[str, Any]) -> tuple[Reference, ...]:
    """Return what the settings of a component refer to, from its description in a manifest.

    >>> references_of({"refs": [{"path": "/face", "kind": "formatters", "default": ["json"]}]})
    (Reference(path='/face', kind='formatters', default=('json',), beside=''),)
    """
    return tuple(
        Reference(
            path=each["path"],
            kind=each["kind"],
            default=tuple(each.get("default", ())),
            beside=each.get("beside", ""),
        )
        for each in described.get("refs", ())
    )


def settings_at(config: object, pointer: str) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield what a JSON pointer with ``*`` leads to in a config, with its keys.

    >>> list(settings_at({"tools": ["a", {"type": "b"}]}, "/tools/*"))
    [(('tools', 0), 'a'), (('tools', 1), {'type': 'b'})]
    """
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    found: list[tuple[tuple[str | int, ...], object]] = [((), config)]
    for step in steps:
        found = [
            ((*keys, key), inner)
            for keys, value in found
            for key, inner in _members(value)
            if step in ("*", str(key))
        ]
    yield from found


def _members(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, Mapping):
        yield from cast("Mapping[str, Any]", value).items()
    elif isinstance(value, (list, tuple)):
        yield from enumerate(cast("Sequence[Any]", value))

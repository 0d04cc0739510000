"""What a distribution says of its components without being imported: its ``axil-plugin.json``,
generated from its classes.

The manifest adds to what entry points say and never contradicts them: entry points decide what
there is. A distribution without one works all the same; then its settings are known only by
importing it.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

MANIFEST_FILE: Final = "axil-plugin.json"
"""Name of the file, in the package of its distribution."""
MANIFEST_VERSION: Final = 1
"""Of the form of manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A setting whose value names another component, or holds a graph."""

    path: str
    """Where it is in the config, as a JSON pointer; ``*`` is every member: ``/tools/*``."""
    kind: str
    """A kind of component; ``graph``: a graph written out, a node, or ``{path: FILE}``; ``file``:
    the path of a file that is read.
    """
    default: tuple[str, ...] = ()
    """What is meant where the setting is missing; empty: nothing."""
    beside: str = ""
    """The default is meant only where this setting is there; empty: always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedComponent:
    """One component, as its distribution describes it."""

    kind: str
    name: str
    object: str = ""
    """``module:attribute``"""
    summary: str = ""
    config_schema: Mapping[str, Any] | None = None
    """None: it takes no settings, or says nothing of them."""
    examples: tuple[Mapping[str, Any], ...] = ()
    """Configs that it can be made with."""
    refs: tuple[Reference, ...] = ()
    secrets: tuple[str, ...] = ()
    """Where secrets are in the config, as JSON pointers."""
    capabilities: tuple[str, ...] = ()
    """What it claims beyond its kind."""
    aliases: tuple[str, ...] = ()
    """Names that it had before, as files may still have them: ``name``, or ``distribution/name``
    where it was another's.
    """
    stability: str = "stable"
    """``experimental``, ``beta``, ``stable`` or ``deprecated``."""
    replacement: str = ""
    """What to use instead of a deprecated one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A distribution's components."""

    distribution: str
    summary: str = ""
    spec: Mapping[str, str] = field(default_factory=dict[str, str])
    """Kind → the version of its contract that the components are written for; a kind that is not
    there: 1.0.
    """
    components: tuple[DescribedComponent, ...] = ()

    def find(self, kind: str, name: str) -> DescribedComponent | None:
        """What is said of one component; None: nothing."""
        return next(
            (each for each in self.components if (each.kind, each.name) == (kind, name)), None
        )


def read(package: str, distribution: Any = None) -> Manifest | None:
    """The manifest in a package, which is not imported; None: it has none.

    Args:
        package: a top-level package.
        distribution: its metadata; most packages lie beside it, and looking there is far cheaper
            than looking for the package.
    Raises: ValueError: there is one, and it is no manifest.
    """
    folder = _folder(distribution)
    data = (
        _bytes(os.sep.join((folder.rpartition(os.sep)[0], package, MANIFEST_FILE)))
        if folder
        else None
    )
    # installed in place, or in an archive
    if data is None and (not folder or os.path.isfile(f"{folder}{os.sep}direct_url.json")):
        data = _found(package)
    if data is None:
        return None
    given: Any = json.loads(data)
    if not isinstance(given, Mapping):
        raise ValueError("it is no mapping")
    return parse_manifest(cast("Mapping[str, Any]", given))


def _folder(distribution: Any) -> str:
    """The folder of a distribution's metadata; empty: it is in none, or does not say."""
    path = getattr(distribution, "_path", None)
    return str(path) if isinstance(path, Path) else ""


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb", buffering=0) as file:  # it is read at once
            return file.read()
    except OSError:
        return None


def _found(package: str) -> bytes | None:
    """From wherever the package's loader reads: a folder, an archive.

    Finding a top-level package imports nothing.
    """
    if "." in package:
        return None
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    loader: Any = spec.loader
    for folder in spec.submodule_search_locations:
        path = os.path.join(folder, MANIFEST_FILE)
        try:
            return loader.get_data(path) if hasattr(loader, "get_data") else None
        except OSError:
            continue
    return None


def parse_manifest(data: Mapping[str, Any]) -> Manifest:
    """A manifest from its data; what a newer one has beyond ours is passed over.

    Raises: ValueError: it is none.
    """
    version = data.get("manifest")
    if version != MANIFEST_VERSION:
        raise ValueError(f"it says manifest {version!r}, and this axil reads {MANIFEST_VERSION}")
    try:
        return Manifest(
            distribution=_text(data["distribution"]),
            summary=_text(data.get("summary", "")),
            spec={_text(kind): _text(spec) for kind, spec in data.get("spec", {}).items()},
            components=tuple(_described(each) for each in data.get("components", ())),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _texts(each: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(map(_text, each[key])) if key in each else ()


def _described(each: Mapping[str, Any]) -> DescribedComponent:
    return DescribedComponent(
        kind=_text(each["kind"]),
        name=_text(each["name"]),
        object=_text(each.get("object", "")),
        summary=_text(each.get("summary", "")),
        config_schema=each.get("config_schema"),
        examples=tuple([dict(example) for example in each.get("examples", ())]),
        refs=tuple([_reference(ref) for ref in each.get("refs", ())]),
        secrets=_texts(each, "secrets"),
        capabilities=_texts(each, "capabilities"),
        aliases=_texts(each, "aliases"),
        stability=_text(each.get("stability", "stable")),
        replacement=_text(each.get("replacement", "")),
    )


def _reference(ref: Mapping[str, Any]) -> Reference:
    default = tuple(map(_text, ref.get("default", ())))
    return Reference(
        path=_text(ref["path"]),
        kind=_text(ref["kind"]),
        default=default,
        beside=_text(ref.get("beside", "")),
    )


def at(config: Any, pointer: str) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """What a JSON pointer with ``*`` leads to in a config, each with its keys; nothing where it
    leads nowhere.

    >>> list(at({"tools": ["a", {"type": "b"}]}, "/tools/*"))
    [(('tools', 0), 'a'), (('tools', 1), {'type': 'b'})]
    """
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    waiting: list[tuple[tuple[str | int, ...], Any, Sequence[str]]] = [((), config, steps)]
    while waiting:
        keys, value, left = waiting.pop(0)
        if not left:
            yield keys, value
            continue
        step, rest = left[0], left[1:]
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            chosen: list[tuple[str | int, Any]] = (
                [*members.items()]
                if step == "*"
                else [(step, members[step])]
                if step in members
                else []
            )
        elif isinstance(value, (list, tuple)):
            items = cast("Sequence[Any]", value)
            chosen = (
                [*enumerate(items)]
                if step == "*"
                else [(int(step), items[int(step)])]
                if step.isdigit() and int(step) < len(items)
                else []
            )
        else:
            chosen = []
        waiting[:0] = [((*keys, key), inner, rest) for key, inner in chosen]

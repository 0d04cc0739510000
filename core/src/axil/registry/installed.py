"""Installed distributions: their names, and their entry points in groups of axil.

Those in folders are read directly, the rest by ``importlib.metadata``, whose import takes longer
than reading a hundred of them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol, cast

from axil.spec.kinds import canonical_name


class EntryPoint(Protocol):
    """The part of an entry point that the registry needs."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def dist(self) -> Any: ...


def installed(unreadable: list[str]) -> Iterator[EntryPoint]:
    """Read the entry points in groups of axil, from the metadata of every distribution.

    ``importlib.metadata.entry_points`` fails as a whole where one distribution cannot be parsed. Of
    several of one name the first on ``sys.path`` is taken, as imports do, unless an interrupted
    removal has left it without metadata.

    Args:
        unreadable: gets a line for each distribution that cannot be read.
    """
    named: dict[str, list[Any]] = {}
    for distribution in _distributions():
        named.setdefault(identity_of(distribution)[0], []).append(distribution)
    for same in named.values():
        try:
            distribution = same[0] if len(same) == 1 else next(filter(_is_whole, same), same[0])
            points = [each for each in distribution.entry_points if each.group.startswith("axil.")]
        except Exception as error:  # noqa: BLE001
            # metadata is anybody's text, and finders are anybody's code
            path = getattr(same[0], "_path", same[0])
            unreadable.append(f"{path}: {type(error).__name__}: {error}")
        else:
            yield from cast("list[EntryPoint]", points)


def _distributions() -> Iterator[object]:
    """Yield what is installed, in the order of ``sys.path``."""
    finders = [each for each in sys.meta_path if hasattr(each, "find_distributions")]
    if [getattr(each, "__name__", "") for each in finders] != ["PathFinder"]:
        from importlib import metadata

        yield from metadata.distributions()
        return
    for entry in sys.path:
        try:
            names = os.listdir(entry or ".")
        except OSError:  # an archive, or nothing
            if os.path.isfile(entry):
                from importlib import metadata

                yield from metadata.distributions(path=[entry])
            continue
        is_egg = entry.lower().endswith(".egg")
        for name in names:
            low = name.lower()
            if low.endswith((".dist-info", ".egg-info")) or (is_egg and low == "egg-info"):
                yield _Installed(os.path.join(entry, name))


class _Installed:
    def __init__(self, folder: str) -> None:
        self._path = folder

    @property
    def entry_points(self) -> list[EntryPoint]:
        """The entry points in groups of axil. Raises: TypeError, OSError, UnicodeDecodeError."""
        try:
            with open(os.path.join(self._path, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return []
        found: list[EntryPoint] = []
        group = ""
        for line in filter(None, map(str.strip, text.splitlines() if "[axil." in text else ())):
            if line.startswith("[") and line.endswith("]"):
                group = line[1:-1]
            elif group.startswith("axil.") and not line.startswith("#"):
                name, is_pair, value = map(str.strip, line.partition("="))
                if not is_pair:
                    raise TypeError(f"expected name = module:attribute, found {line!r}")
                found.append(_Point(name, group, value, self))
        return found

    def __getattr__(self, name: str) -> object:
        from importlib import metadata
        from pathlib import Path

        return getattr(metadata.Distribution.at(Path(self._path)), name)


class _Point(NamedTuple):
    name: str
    group: str
    value: str
    dist: object


def _is_whole(distribution: Any) -> bool:
    return bool(distribution.read_text("METADATA") or distribution.read_text("PKG-INFO"))


_FOLDER: Final = re.compile(r"([A-Za-z0-9][\w.]*)-([^-/\\]+)\.dist-info")


def identity_of(distribution: Any) -> tuple[str, str]:
    """Return name and version, from the name of the metadata's folder if possible; empty where the
    metadata does not say.
    """
    path = str(getattr(distribution, "_path", ""))
    folder = _FOLDER.fullmatch(os.path.basename(path))
    if folder:
        return canonical_name(folder[1]), folder[2]
    try:
        return canonical_name(distribution.name), str(distribution.version)
    except Exception:  # noqa: BLE001
        # incomplete metadata raises whatever it was parsed with; the component may be sound
        return "", ""

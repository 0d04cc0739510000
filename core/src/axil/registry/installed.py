"""What is installed: the entry points of our groups, from the metadata of every distribution on
``sys.path``.

importlib_metadata finds the distributions, in folders, archives and wherever other finders look.
Their entry points are read here: one small file of each, and only those that name one of our groups
are looked at line by line. Nothing else of a distribution is read as long as its folder says its
name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from axil.registry.kinds import canonical_name

_OURS: Final = b"axil."
_SUFFIXES: Final = ("dist-info", "egg-info")
_NO_FILE: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)


class Point(NamedTuple):
    """One entry point."""

    group: str
    name: str
    value: str
    dist: Any


def entry_points(unreadable: list[str]) -> Iterator[Point]:
    """Those in our groups.

    Of distributions of one name the first on ``sys.path`` wins, as it does when modules are
    imported.

    Args:
        unreadable: gets a line for each distribution that cannot be read, which costs only itself.
    """
    import importlib_metadata

    named: dict[str, list[Any]] = {}
    # its signatures are not typed
    for distribution in cast("Any", importlib_metadata).distributions():
        try:
            named.setdefault(_name_of(distribution), []).append(distribution)
        except Exception as error:  # noqa: BLE001
            # metadata is anybody's text, and finders are anybody's code
            unreadable.append(_told(distribution, error))
    for same in named.values():
        distribution = same[0] if len(same) == 1 else next(filter(_is_whole, same), same[0])
        try:
            points = list(_points(distribution))
        except Exception as error:  # noqa: BLE001  # as above
            unreadable.append(_told(distribution, error))
        else:
            yield from points


def _told(distribution: Any, error: Exception) -> str:
    return f"{getattr(distribution, '_path', distribution)}: {type(error).__name__}: {error}"


def _name_of(distribution: Any) -> str:
    """The name, from the metadata's folder where that has it."""
    folder = str(getattr(getattr(distribution, "_path", None), "name", ""))
    stem, _, suffix = folder.rpartition(".")
    return canonical_name(stem.partition("-")[0] if suffix in _SUFFIXES else distribution.name)


def _is_whole(distribution: Any) -> bool:
    """Whether there is more of it than the folder that an interrupted removal leaves behind."""
    return bool(distribution.read_text("METADATA") or distribution.read_text("PKG-INFO"))


def _points(distribution: Any) -> Iterator[Point]:
    """Source: the entry points specification of PyPA, read as importlib_metadata reads it."""
    group = ""
    for line in _text(distribution).splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif line and group.startswith("axil.") and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise ValueError(f'its entry point "{line}" has no "="')
            yield Point(group, name.strip(), value.strip(), distribution)


def _text(distribution: Any) -> str:
    """Its file of entry points, if it names one of our groups; else empty."""
    path = getattr(distribution, "_path", None)
    if not isinstance(path, Path):  # in an archive, or wherever its finder found it
        return distribution.read_text("entry_points.txt") or ""
    try:
        with open(f"{path}/entry_points.txt", "rb", buffering=0) as file:  # it is read at once
            data = file.read()
    except _NO_FILE:
        return ""
    return data.decode() if _OURS in data else ""

"""Filters of the paths at which nodes are made: ``phase>writer``, ``demo>*>writer``, ``a>**>b``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from axil_files import match_path
from masfactory.utils.naming import is_valid_name

__all__ = ["PathFilter", "match_path_filter", "parse_path_filter"]


@dataclass(frozen=True, slots=True)
class PathFilter:
    """A parsed filter: names, ``*`` for one name, ``**`` for any number of them."""

    tokens: tuple[str, ...]
    raw: str


@lru_cache(maxsize=256)
def parse_path_filter(path_filter: str) -> PathFilter:
    """Parse a filter. Raises: ValueError: it is empty, or a part of it is no name."""
    tokens = tuple(part.strip() for part in path_filter.split(">"))
    wrong = [part for part in tokens if part not in ("*", "**") and not is_valid_name(part)]
    if wrong:
        raise ValueError(
            f'path_filter "{path_filter}": found the part "{wrong[0]}", expected a name, * or **. '
            "Write names with > between them."
        )
    return PathFilter(tokens, path_filter)


def match_path_filter(path_filter: PathFilter, path: tuple[str, ...]) -> bool:
    """Say whether the filter matches a part of the path."""
    return match_path(path_filter.raw, path)

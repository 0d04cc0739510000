"""Migrations of a graph's state: functions that lead from one version to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from axil.errors import Problem, SpecError
from axil.spec.graph import GraphSpec

Migration = Callable[[dict[str, Any]], Mapping[str, Any]]
"""From what was written under one version of a state to the next version."""


def checked_migrations(
    spec: GraphSpec, imported: Callable[[str, str], object]
) -> dict[int, Migration]:
    """Return the migrations of a graph, by the version that each begins with.

    Args:
        imported: the object at an import path, with the place for messages.

    Raises: SpecError: AX527 one is no function, or leads nowhere; AX148 its path.
    """
    found: dict[int, Migration] = {}
    for version, given in spec.migrations.items():
        where = f"migrations.{version}"
        step: object = imported(given, where) if isinstance(given, str) else given
        # files give anything as a version
        is_version = type(version) is int and 0 < version < spec.state_version
        if not is_version or not callable(step):
            message = (
                f"expected functions by versions from 1 to {spec.state_version - 1}, "
                f"found {given!r:.80} for {version!r}."
            )
            hint = "state_version is the version that the last of them leads to."
            raise SpecError(Problem("AX527", where, message, hint))
        found[version] = cast("Migration", step)
    return found

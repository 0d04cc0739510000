"""A plan of which only the shape counts: for pictures of workflows that cannot run here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from axil import PluginError
from axil.plugin import Body, CompileOptions, Plan, Registry, compile_spec
from axil_files import AnyVariable, load_spec

_REAL = frozenset({"loaders", "dialects", "shorthands"})
"""Kinds that files are read with."""


class _StandIn:
    """A stand-in for any component that is no graph: takes every setting, and is never run."""

    inline = True

    def __init__(self, **settings: Any) -> None:
        pass

    def __call__(self, seen: Any) -> bool:
        return True

    def run(self) -> None:
        """Nothing."""

    def wrap(self, body: Body, node: Any) -> Body:
        """Return the body unchanged."""
        return body


class _Registry(Registry):
    """A registry with stand-ins for all components but those that hold a graph or read files."""

    def __init__(self, real: Registry) -> None:
        super().__init__(real.policy, ())
        self._real = real

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names that the real registry has."""
        return self._real.names(kind)

    def resolve(
        self, kind: str, name: str, where: str = "", *, requires: Mapping[str, str] | None = None
    ) -> Any:
        """Return the component, or its stand-in."""
        if kind in _REAL:
            return self._real.resolve(kind, name, where, requires=requires)
        try:
            found = self._real.resolve(kind, name, where, requires=requires)
        except PluginError:
            return _StandIn
        return found if hasattr(found, "scope") else _StandIn


def sketched(file: str, registry: Registry, **reading: Any) -> Plan:
    """Return the plan of a file, with stand-ins for what it names.

    Raises: SpecError: its shape is wrong as well.
    """
    known, environment = _Registry(registry), AnyVariable()
    spec = load_spec(file, registry=known, environment=environment, **reading)
    folder = os.path.dirname(os.path.realpath(file))
    options = CompileOptions(registry=known, environment=environment, folder=folder)
    return compile_spec(spec, options)

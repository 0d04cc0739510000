"""A plan of which only the shape counts: for pictures of workflows that cannot run here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from axil import PluginError
from axil.plugin import Body, CompileOptions, Plan, Registry, compile_spec
from axil_files import load_spec

_REAL = frozenset({"loaders", "dialects", "shorthands"})
"""Kinds that files are read with."""


class Stroke:
    """Stands for any component that is no graph: takes every setting, and is never run."""

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


class Sketching(Registry):
    """A registry in which everything is there: real is only what holds a graph, or what files are
    read with.
    """

    def __init__(self, real: Registry) -> None:
        super().__init__(real.policy, ())
        self._real = real

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names that the real registry has."""
        return self._real.names(kind)

    def resolve(
        self, kind: str, name: str, where: str = "", *, requires: Mapping[str, str] | None = None
    ) -> Any:
        """Return the component, or something that stands for it."""
        if kind in _REAL:
            return self._real.resolve(kind, name, where, requires=requires)
        try:
            found = self._real.resolve(kind, name, where, requires=requires)
        except PluginError:
            return Stroke
        return found if hasattr(found, "scope") else Stroke


class _Named(Mapping[str, str]):
    """An environment in which every name is set: to the placeholder that it is."""

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name, "${" + name + "}")

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def sketched(file: str, registry: Registry, **reading: Any) -> Plan:
    """Return the plan of a file, with strokes in the place of what it names.

    Raises: SpecError: its shape is wrong as well.
    """
    known = Sketching(registry)
    spec = load_spec(file, registry=known, environment=_Named(), **reading)
    return compile_spec(
        spec,
        CompileOptions(
            registry=known, environment=_Named(), folder=os.path.dirname(os.path.realpath(file))
        ),
    )

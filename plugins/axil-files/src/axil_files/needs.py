"""The distributions that workflow files, and graphs in Python, need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from axil import GraphSpec
from axil.plugin import (
    KERNEL,
    Dependencies,
    DependencyWalk,
    Place,
    Registry,
    default_registry,
    graphs_of,
)
from axil_files.imports import imports_of
from axil_files.loading import LoadOptions, load_spec, read_inner
from axil_files.python import PythonTarget, python_target


def dependencies_of(
    files: Sequence[str | os.PathLike[str]],
    *,
    registry: Registry | None = None,
    vars: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    functions: str = "",
) -> Dependencies:
    """Return what the workflows in ``files`` need.

    A graph in Python, ``module:graph`` or ``file.py:graph``, is a workflow, too: its module is
    executed, and what that imports is needed.

    Args:
        environment: where variables are looked up; None: a missing one stays as it is written.
        functions: the folder of the functions that ``registry`` has (``with_functions``): what they
            import is needed.
    Raises: SpecError: one of the files is no workflow; PluginError: there is no loader for it.
    """
    walk = _Walk(
        registry or default_registry(),
        {"vars": vars or {}, "environment": AnyVariable() if environment is None else environment},
    )
    for file in files:
        walk.file(os.fspath(file))
    if functions:
        own = sorted(str(each) for each in Path(functions).rglob("*.py"))
        walk.imported(own, os.path.realpath(functions))
    return walk.needs


class AnyVariable(Mapping[str, str]):
    """An environment in which every variable is set: the shape of a workflow, what it needs and
    wants do not depend on keys.
    """

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name, f"${name}")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


class _Walk(DependencyWalk):
    """From file to file, and from graph to graph."""

    def __init__(self, registry: Registry, options: Mapping[str, Any]) -> None:
        super().__init__(registry, self._inner_graph)
        self.options = options

    def _inner_graph(
        self, given: Mapping[str, Any], place: Place, spec: GraphSpec
    ) -> GraphSpec | None:
        reading = LoadOptions(registry=self.registry, **self.options)
        return read_inner(given, place, spec, reading)

    def file(self, path: str) -> None:
        """Walk a workflow file, or a graph in Python, and all inside it."""
        target = python_target(path)
        if target is not None:
            self._python(target)
            return
        suffix = Path(path).suffix.lower().lstrip(".")
        if suffix:
            self.note("loaders", suffix, path, {})
        self.graph(load_spec(path, registry=self.registry, **self.options), {})

    def _python(self, target: PythonTarget) -> None:
        spec = target.load().spec
        for graph in graphs_of(spec):
            self.graph(graph, {})
            if graph.schema is not None and graph.schema.view is not None:
                self.code(KERNEL, f"{target.text} state")
        file = target.file or str(getattr(sys.modules.get(target.module), "__file__", None) or "")
        if file:
            self.imported([file], target.folder)

    def imported(self, files: Sequence[str], folder: str) -> None:
        """Note what Python files import, and themselves."""
        found = imports_of(files, folder)
        self.needs.files.update(found.files)
        for distribution, place in found.distributions.items():
            self.code(distribution, place)

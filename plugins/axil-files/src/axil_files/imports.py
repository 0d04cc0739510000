"""The imports of Python files: further files beside them, and distributions.

Nothing is executed; imports are read from the text. Those below ``TYPE_CHECKING`` are left out, and
so is what cannot be found here: the file did without it.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from axil.plugin import KERNEL, canonical_name


@dataclass(slots=True)
class Imports:
    """The imports of files, direct and indirect."""

    files: dict[str, None] = field(default_factory=dict[str, None])
    """The files themselves, and those beside them: real paths."""
    distributions: dict[str, str] = field(default_factory=dict[str, str])
    """Distribution → the first place that imports it: ``flow.py:3 pydantic``."""


def imports_of(files: Iterable[str], folder: str) -> Imports:
    """Return what ``files`` import.

    Args:
        folder: where the imports of files beside them begin.
    """
    found, installed = Imports(), packages_distributions()
    waiting = [os.path.realpath(file) for file in files]
    while waiting:
        file = waiting.pop()
        if file in found.files:
            continue
        found.files[file] = None
        for line, module, names in _imported(file, folder):
            beside = list(_beside(module, names, folder))
            waiting.extend(beside)
            top = module.partition(".")[0]
            if beside or top in sys.stdlib_module_names:
                continue
            place = f"{os.path.relpath(file, folder)}:{line} {module}"
            if name := _distribution_of(top, installed):
                found.distributions.setdefault(name, place)
    found.distributions.pop(KERNEL, None)
    return found


def _imported(file: str, folder: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield what a file imports: the line, the module in full, and the names from it."""
    tree = ast.parse(Path(file).read_bytes(), file)
    package = Path(os.path.relpath(file, folder)).parent.parts
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            for each in node.names:
                yield node.lineno, each.name, []
        elif isinstance(node, ast.ImportFrom):
            names = [each.name for each in node.names]
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *([node.module] if node.module else ())))
            yield node.lineno, module, names
        waiting.extend(ast.iter_child_nodes(node))


def _beside(module: str, names: list[str], folder: str) -> Iterator[str]:
    """Yield the files below ``folder`` that an import of a module executes."""
    parts = module.split(".") if module else []
    for name in ["", *names]:
        path = Path(folder, *parts, *([name] if name else []))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file != Path(folder, "__init__.py") and file.is_file():
                yield str(file.resolve())
    for end in range(1, len(parts)):
        outer = Path(folder, *parts[:end], "__init__.py")
        if outer.is_file():
            yield str(outer.resolve())


def _distribution_of(package: str, installed: Mapping[str, Sequence[str]]) -> str:
    """Return the distribution that a package is of; empty: none is known.

    One that is installed in place lists no packages: it is known by its own name.
    """
    if package == "axil":  # another distribution has the name of the package
        return KERNEL
    for name in installed.get(package, ())[:1]:
        return canonical_name(name)
    try:
        return canonical_name(distribution(package).name)
    except (PackageNotFoundError, ValueError):
        return ""


__all__ = ["Imports", "imports_of"]

"""Each ``Any`` in the signatures of public names."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tests.house.stubs import ROOT, public_modules
from tests.internals import internal

module_of_each = internal("module_of_each")
KITS = {"axil_testing.kit"}
"""Packages that try components of any kind."""
SEVERAL = {"Sequence", "Iterable", "Iterator", "Collection", "list", "tuple"}
"""Generics whose elements are called by the name of the whole."""


class PublicAny(NamedTuple):
    """An ``Any`` in a signature."""

    where: str
    """The module and the line."""
    name: str
    """The name of the parameter or field; of a result, its function's."""
    form: str
    """``value``: alone, or an element of several; ``mapping``: values of a mapping; ``parameter``:
    of another generic.
    """


def public_anys() -> list[PublicAny]:
    """Return every ``Any`` of the public names, once."""
    packages = (file.parent.name for file in ROOT.glob("plugins/*/src/*/__init__.py"))
    doors = {*public_modules(), *packages} - KITS
    names = {each for door in doors for each in _sources(importlib.import_module(door))}
    return sorted({each for source, name in names for each in _of(source, name)})


def _sources(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each public name."""
    if hasattr(module, "_SUBJECTS"):
        made = module_of_each(module._SUBJECTS, module.__package__)
        yield from ((source, name) for name, source in made.items())
    else:
        given = ((getattr(module, name), name) for name in getattr(module, "__all__", ()))
        yield from ((each.__module__, name) for each, name in given if hasattr(each, "__module__"))


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(importlib.import_module(module).__file__ or "").read_text("utf-8"))


def _of(module: str, name: str) -> Iterator[PublicAny]:
    for each in _seen(_tree(module)):
        if getattr(each, "name", "") == name or _target(each) == name:
            for called, annotation in _annotations(each):
                where = f"{module}:{annotation.lineno}"
                yield from (PublicAny(where, called, form) for form in _forms(annotation))


def _seen(body: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that type checkers see from outside: of an overloaded function not what
    implements it.
    """
    several = list(_statements(body))
    overloaded = {getattr(each, "name", "") for each in several if _is_overload(each)}
    yield from (
        each
        for each in several
        if _is_overload(each) or getattr(each, "name", None) not in overloaded
    )


def _is_overload(statement: ast.stmt) -> bool:
    made = getattr(statement, "decorator_list", [])
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in made)


def _statements(body: ast.AST) -> Iterator[ast.stmt]:
    for each in ast.iter_child_nodes(body):
        if isinstance(each, ast.If):
            yield from _statements(each)
        elif isinstance(each, ast.stmt):
            yield each


def _target(statement: ast.stmt) -> str:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    target = statement.target if isinstance(statement, ast.AnnAssign) else [*targets, None][0]
    return target.id if isinstance(target, ast.Name) else ""


def _annotations(each: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names and the types of what a statement makes public."""
    if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = each.args
        several = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        yield from ((one.arg, one.annotation) for one in several if one and one.annotation)
        if each.returns is not None:
            yield each.name, each.returns
    elif isinstance(each, ast.ClassDef):
        yield from ((each.name, base) for base in each.bases)
        for inner in _seen(each):
            name = getattr(inner, "name", "") or _target(inner)
            if not name.startswith("_") or name in ("__init__", "__call__", "__getitem__"):
                yield from _annotations(inner)
    elif isinstance(each, ast.AnnAssign):
        alias = ast.unparse(each.annotation) == "TypeAlias"
        if (given := each.value if alias else each.annotation) is not None:
            yield _target(each), given
    elif isinstance(each, ast.Assign) and isinstance(each.value, (ast.Subscript, ast.BinOp)):
        yield _target(each), each.value


def _forms(annotation: ast.expr, form: str = "value") -> Iterator[str]:
    """Yield the form of each ``Any`` in a type."""
    if isinstance(annotation, ast.Name) and annotation.id == "Any":
        yield form
    elif isinstance(annotation, ast.BinOp):
        yield from _forms(annotation.left, form)
        yield from _forms(annotation.right, form)
    elif isinstance(annotation, ast.List):
        for each in annotation.elts:
            yield from _forms(each, form)
    elif isinstance(annotation, ast.Subscript):
        name = ast.unparse(annotation.value)
        inner = annotation.slice
        within = form if name in SEVERAL else "parameter"
        if name in ("Mapping", "dict") and isinstance(inner, ast.Tuple):
            yield from _forms(inner.elts[0], "parameter")
            yield from _forms(inner.elts[1], "mapping")
        elif name != "Literal":
            several = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            for each in several[:1] if name == "Annotated" else several:
                yield from _forms(each, form if name == "Annotated" else within)

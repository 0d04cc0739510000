"""Public modules that import each name from its module at its first use.

A table of names by subject is a module's ``__all__``; ``make manifests`` writes from it the stub
that type checkers read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Subjects = Mapping[str, Mapping[str, str]]
"""Subject → module, named from below the package → the names that it defines."""
_IMPORTS = "importlib._bootstrap"
Accessors = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def module_of_each(subjects: Subjects, package: str) -> dict[str, str]:
    """Return the module of each name.

    >>> module_of_each({"Graphs": {"spec.graph": "Limits GraphSpec"}}, "axil")
    {'Limits': 'axil.spec.graph', 'GraphSpec': 'axil.spec.graph'}
    """
    return {
        name: f"{package}.{module}"
        for modules in subjects.values()
        for module, names in modules.items()
        for name in names.split()
    }


def _with_place(message: str, name: str) -> str:
    """Return the message with where an installed plugin has the name, if one has.

    Raises: ImportError: it is asked for by ``from … import``, which shows no other error's text.
    """
    import dis
    import inspect

    frame = inspect.currentframe()
    asks = frame and frame.f_back and frame.f_back.f_back
    if asks is None or asks.f_globals.get("__name__") == _IMPORTS:  # which looks for a submodule
        return message
    if elsewhere := _elsewhere(name):
        message += f"; {elsewhere}"
        if asks.f_code.co_code[asks.f_lasti] == dis.opmap["IMPORT_FROM"]:
            raise ImportError(f"{message}.", name=name)
    return message


def _elsewhere(name: str) -> str:
    """Return where an installed plugin has a public name; empty: nowhere. Nothing is imported."""
    from importlib.metadata import entry_points

    packages = sorted({each.value.partition(":")[0] for each in entry_points(group="axil.plugin")})
    found = next((package for package in packages if name in _public(package)), "")
    return f"it is in {found}: from {found} import {name}" if found else ""


def _public(package: str) -> set[str]:
    """Return the names that the source of a package's ``__init__`` offers."""
    import ast
    from importlib.util import find_spec
    from pathlib import Path

    try:
        spec = find_spec(package)
        tree = ast.parse(Path(spec.origin).read_bytes() if spec and spec.origin else b"")
    except (ImportError, OSError, SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()  # of ``__all__``, or of a table of lazy names
            names |= set(words) if all(map(str.isidentifier, words)) else set()
    return names


def lazy_names(
    namespace: dict[str, Any], subjects: Subjects, renamed: Mapping[str, str] | None = None
) -> Accessors:
    """Return the ``__getattr__``, the ``__dir__`` and the ``__all__`` of a public module.

    Args:
        namespace: its ``globals()``.
        renamed: old name → new name. An old one works with a ``DeprecationWarning``; it is not
            listed.
    """
    table = module_of_each(subjects, namespace["__package__"])
    old_names = renamed or {}

    def load(name: str) -> object:
        if name in old_names:
            import warnings

            public, new = namespace["__name__"], old_names[name]
            message = f"{public}.{name} is now called {public}.{new}; the old name will be removed."
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return namespace[new] if new in namespace else load(new)
        if name not in table:
            message = f"module {namespace['__name__']!r} has no attribute {name!r}"
            if not name.startswith("_"):
                message = _with_place(message, name)
            raise AttributeError(message)
        import importlib

        value = getattr(importlib.import_module(table[name]), name)
        namespace[name] = value
        return value

    names = sorted(table)
    return load, lambda: names, names

"""Public modules that import each name from its module at its first use.

A table of names by subject is a module's ``__all__``; ``make manifests`` writes from it the stub
that type checkers read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Subjects = Mapping[str, Mapping[str, str]]
"""Subject → module, named from below the package → the names that it defines."""
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

    def load(name: str) -> Any:
        if name in old_names:
            import warnings

            public, new = namespace["__name__"], old_names[name]
            message = f"{public}.{name} is now called {public}.{new}; the old name will be removed."
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return namespace[new] if new in namespace else load(new)
        if name not in table:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(table[name]), name)
        namespace[name] = value
        return value

    names = sorted(table)
    return load, lambda: names, names

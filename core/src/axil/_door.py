"""Lazy public modules: each name is imported from the module that defines it, at its first use.

``axil``, ``axil.plugin`` and ``axil.driver`` are such modules, called doors. A door has a table of
its names by subject, which is its ``__all__``. Type checkers and editors read the stub beside it,
which ``make manifests`` writes of the table; a test holds the two in step.

A name may be defined in a package of another distribution, listed in ``PROVIDED_BY``. Where that
distribution is not installed, using the name raises ``NotInstalled``. Modules of core use what
other distributions provide in the same way, by ``provided``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

PROVIDED_BY: Final = {
    "axil_budget": "axil-budget",
    "axil_cli": "axil-cli",
    "axil_config": "axil-config",
    "axil_control": "axil-control",
    "axil_dependencies": "axil-dependencies",
    "axil_engine": "axil-engine",
    "axil_files": "axil-files",
    "axil_formatters": "axil-formatters",
    "axil_inspection": "axil-inspection",
    "axil_journals": "axil-journals",
    "axil_patterns": "axil-patterns",
    "axil_process": "axil-process",
    "axil_typed": "axil-typed",
}
"""Package outside core that core or a door may use → the distribution to install for it."""

Subjects = Mapping[str, Mapping[str, str]]
"""Subject → module → names; ``name=other`` where the module says ``other``.

A module is named from below ``axil``, or in full where it is in a package of ``PROVIDED_BY``.
"""
Accessors = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def full_name(module: str) -> str:
    """Return the full name of a module in a door's table.

    >>> full_name("spec.graph"), full_name("axil_engine.engine")
    ('axil.spec.graph', 'axil_engine.engine')
    """
    return module if module.partition(".")[0] in PROVIDED_BY else f"axil.{module}"


def table_of(subjects: Subjects) -> dict[str, tuple[str, str]]:
    """Return for each name the module that defines it, and what it is called there.

    >>> table_of({"Graphs": {"spec": "Limits"}, "Engines": {"axil_engine.engine": "LocalEngine"}})
    {'Limits': ('axil.spec', 'Limits'), 'LocalEngine': ('axil_engine.engine', 'LocalEngine')}
    """
    return {
        name: (full_name(module), inner or name)
        for modules in subjects.values()
        for module, names in modules.items()
        for name, _, inner in (each.partition("=") for each in names.split())
    }


def provided(module: str, attribute: str, *, wanted: str) -> Any:
    """Return an attribute of a module, which may be in a package of another distribution.

    Args:
        wanted: what needs it, for the message: ``axil.load``.
    Raises: NotInstalled (AX306): the distribution that provides the module is not installed.
    """
    import importlib

    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package or package not in PROVIDED_BY:
            raise
        from axil._installing import install_advice
        from axil.errors import NotInstalled

        distribution = PROVIDED_BY[package]
        message = f"{wanted} needs {distribution}, which is not installed."
        hint = f"Install it: {install_advice(distribution)}"
        raise NotInstalled(message, hint=hint, distribution=distribution) from error
    return getattr(found, attribute)


def lazy(
    namespace: dict[str, Any], subjects: Subjects, renamed: Mapping[str, str] | None = None
) -> Accessors:
    """Return the ``__getattr__``, the ``__dir__`` and the ``__all__`` of a door.

    Args:
        namespace: the door's ``globals()``, where a name is kept from its first use.
        renamed: old name → new name. An old name still works, with a ``DeprecationWarning`` at
            each use; it is not listed.
    """
    table = table_of(subjects)
    old_names = renamed or {}

    def load(name: str) -> Any:
        if name in old_names:
            import warnings

            door, new = namespace["__name__"], old_names[name]
            message = f"{door}.{name} is now called {door}.{new}; the old name will be removed."
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return namespace[new] if new in namespace else load(new)
        if name not in table:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        module, inner = table[name]
        value = provided(module, inner, wanted=f"{namespace['__name__']}.{name}")
        namespace[name] = value
        return value

    names = sorted(table)
    return load, lambda: names, names

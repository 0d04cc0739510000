"""Functions in the Python files of a folder, as tools, conditions and processors.

What a file's functions are is told by its place: in a folder or a file called ``conditions`` they
are conditions, ``processors`` and ``tools`` likewise; those of all others are whatever the workflow
takes them for. Names that begin with ``_`` are the file's own business; ``__all__`` says it better.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from axil import ConfigError, Problem
from axil.plugin import ComponentConflict, Registry, format_names
from axil_files.modules import module_from

ANY: Final = ("tools", "conditions", "processors")
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{kind: (kind,) for kind in ANY},
    # as DevAll's folders are called
    **{"function_calling": ("tools",), "edge": ("conditions",), "edge_processor": ("processors",)},
}


def with_functions(registry: Registry, folder: str | os.PathLike[str]) -> Registry:
    """Return a registry that has what ``registry`` has, and the functions of ``folder``.

    Its files are executed: the caller has leave for that. Raises: ConfigError: AX700 it is no
    folder, or has no functions; AX884 a file fails, or a name is taken.
    """
    named = os.fspath(folder)
    home = Path(named).resolve()
    if not home.is_dir():
        told = f"{named} is no folder."
        raise ConfigError(Problem("AX700", "functions", told, "Give a folder with Python files."))
    known = registry.child()
    places: dict[tuple[str, str], str] = {}
    for kinds, file, name in _files(home):
        shown = f"{named.rstrip('/')}/{file.relative_to(home).as_posix()}"
        module = _loaded(file, name, shown)
        for public, found in _public(module):
            where = f"{shown}:{_line(found)}"
            for kind in kinds:
                if (kind, public) in places:
                    told = f'"{public}" is defined in {places[kind, public]} already.'
                    raise ConfigError(Problem("AX884", where, told, "Rename one."))
                places[kind, public] = where
                try:
                    known.register(kind, public, found)
                except ComponentConflict as error:
                    hint = (
                        f"Rename the function, or put it into a folder called {format_names(ANY)}."
                    )
                    raise ConfigError(Problem("AX884", where, error.message, hint)) from error
    if not places:
        told = f"there is no function in a .py file of {named}."
        hint = "Give the folder that the files are in."
        raise ConfigError(Problem("AX700", "functions", told, hint))
    return known


def _files(home: Path) -> Iterator[tuple[tuple[str, ...], Path, str]]:
    """Kinds, file and the private name of its module, sorted."""
    package = _package(
        "_axil_functions_" + hashlib.sha256(str(home).encode()).hexdigest()[:12], home
    )
    for entry in sorted(home.iterdir()):
        if entry.is_dir() and entry.name in KINDS:
            inner = _package(f"{package}.{entry.name}", entry)
            for file in sorted(entry.glob("*.py")):
                if not file.name.startswith("_"):
                    yield KINDS[entry.name], file, f"{inner}.{file.stem}"
        elif entry.suffix == ".py" and not entry.name.startswith("_"):
            yield KINDS.get(entry.stem, ANY), entry, f"{package}.{entry.stem}"


def _package(name: str, folder: Path) -> str:
    """A package, so that files can import each other: ``from .shared import …``."""
    for known in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[known]  # what an earlier run in this process loaded is not this run's
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
    return name


def _loaded(file: Path, name: str, shown: str) -> ModuleType:
    """The file's module. Raises: ConfigError (AX884), with the line that failed."""
    if name in sys.modules:  # another file imported it
        return sys.modules[name]
    return module_from(file, name, shown, id="AX884")


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    chosen = getattr(module, "__all__", None)
    if chosen is not None:
        yield from ((str(name), getattr(module, name)) for name in chosen)
        return
    for name, found in vars(module).items():
        if (
            inspect.isfunction(found)
            and found.__module__ == module.__name__
            and not name.startswith("_")
        ):
            yield name, found


def _line(found: Any) -> int:
    code = getattr(inspect.unwrap(found) if callable(found) else found, "__code__", None)
    return int(getattr(code, "co_firstlineno", 1))

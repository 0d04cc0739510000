"""Functions in the Python files of a folder, as tools, conditions and processors.

The kind of a file's functions follows from its place: in a folder or a file called ``conditions``
they are conditions, ``processors`` and ``tools`` likewise; others are whatever the workflow takes
them for. Names that begin with ``_``, or that ``__all__`` lacks, are left out. The folder
``functions`` of DevAll is read as it is.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from axil import ConfigError, Problem
from axil.plugin import Registry, format_names
from axil_files.calls import adapted, as_processor
from axil_files.checkout import Checkout
from axil_files.modules import failed_to_load

ANY: Final = ("tools", "conditions", "processors")
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{kind: (kind,) for kind in ANY},
    # as DevAll's folders are called
    **{"function_calling": ("tools",), "edge": ("conditions",), "edge_processor": ("processors",)},
}


def with_functions(
    registry: Registry,
    folder: str | os.PathLike[str],
    tell: Callable[[str], None] | None = None,
) -> Registry:
    """Return ``registry`` with the functions of ``folder``, which are taken instead of components
    of their names; ``tell`` is given a note of these. The files are executed.

    Raises: ConfigError: AX700 it is no folder, or has no functions; AX884 a file fails, or two
    functions have one name.
    """
    named = os.fspath(folder)
    home = Path(named).resolve()
    if not home.is_dir():
        hint = "Give a folder with Python files."
        raise ConfigError(Problem("AX700", "functions", f"{named} is not a folder.", hint))
    known = registry.child()
    checkout = Checkout(home)
    places: dict[tuple[str, str], str] = {}
    instead: dict[str, list[str]] = {}
    for kinds, file, name in _files(home, checkout):
        shown = f"{named.rstrip('/')}/{file.relative_to(home).as_posix()}"
        module = _loaded(checkout, file, name, shown)
        for public, found in _public(module):
            where = f"{shown}:{_line(found)}"
            for kind in kinds:
                if (kind, public) in places:
                    message = f'"{public}" is defined in {places[kind, public]} already.'
                    raise ConfigError(Problem("AX884", where, message, "Rename one."))
                places[kind, public] = where
                if kind == "processors" and public in registry.names("wrappers"):
                    continue  # it waits, which a processor may not: the wrapper of that name does
                if public in registry.names(kind):
                    instead.setdefault(kind, []).append(public)
                made = (
                    adapted(found, checkout)
                    if kind == "tools"
                    else as_processor(found)
                    if kind == "processors"
                    else found
                )
                known.register(kind, public, made, instead=True)
    if not places:
        message = f"there is no function in a .py file of {named}."
        hint = "Give the folder that the files are in."
        raise ConfigError(Problem("AX700", "functions", message, hint))
    if tell is not None:
        for kind, names in instead.items():
            tell(
                f"note: {kind} of {named} are taken instead of installed ones: "
                f"{format_names(sorted(names), 20)}"
            )
    return known


def _files(home: Path, checkout: Checkout) -> Iterator[tuple[tuple[str, ...], Path, str]]:
    """Yield kinds, each file and the private name of its module, sorted."""
    for entry in sorted(home.iterdir()):
        if entry.is_dir() and entry.name in KINDS:
            for file in sorted(entry.glob("*.py")):
                if not file.name.startswith("_"):
                    yield KINDS[entry.name], file, f"{checkout.package}.{entry.name}.{file.stem}"
        elif entry.suffix == ".py" and not entry.name.startswith("_"):
            yield KINDS.get(entry.stem, ANY), entry, f"{checkout.package}.{entry.stem}"


def _loaded(checkout: Checkout, file: Path, name: str, shown: str) -> ModuleType:
    """Return the file's module. Raises: ConfigError (AX884), with the line that failed."""
    try:
        return checkout.load(name, file)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # SystemExit included
        raise failed_to_load(error, str(file), shown, id="AX884") from error


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

"""Modules of a folder under private names, and of the packages beside it that they import.

Theory of operation
-------------------
A module is loaded with an ``__import__`` of its own, in its own builtins. That one looks at each
absolute import: a package or a module that lies beside the folder is taken from there, under a
private name; all others are Python's. So nothing is put on ``sys.path`` or ``sys.meta_path``, no
public name in ``sys.modules`` is touched, and an import inside a function finds the same modules
when it is called, long after the load. ``sys.modules`` holds the private names alone, where
dataclasses and annotations look for their module.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

_DEVALL: Final = frozenset({"function_calling", "edge", "edge_processor"})
"""Folders of DevAll: where one of them is, the packages beside are what its files import."""


class Checkout:
    """The modules of ``home``, and of the packages beside it where it is a folder of DevAll's."""

    def __init__(self, home: Path) -> None:
        digest = hashlib.sha256(str(home).encode()).hexdigest()[:12]
        self._root = f"_axil_functions_{digest}"
        self.package = f"{self._root}.{re.sub(r'[^0-9A-Za-z_]', '_', home.name)}"
        """The private name of ``home``; its files are below it."""
        self._beside = frozenset(_packages_beside(home))
        for known in [*sys.modules]:
            if known == self._root or known.startswith(f"{self._root}."):
                del sys.modules[known]  # of an earlier run in this process
        self._folder(self._root, home.parent)
        self._folder(self.package, home)

    def load(self, name: str, file: Path | None = None) -> ModuleType:
        """Return the module of a private name, loaded now if it was not before.

        ``file``: where it is; without it, it is looked for in its package's folder. Raises:
        ModuleNotFoundError: there is none; whatever the file raises.
        """
        if name in sys.modules:
            return sys.modules[name]
        parent, _, last = name.rpartition(".")
        package = self.load(parent)
        if name in sys.modules:  # its package imported it
            return sys.modules[name]
        folder = Path(next(iter(getattr(package, "__path__", ())), "."))
        found = file or next(
            (
                each
                for each in (folder / last / "__init__.py", folder / f"{last}.py")
                if each.is_file()
            ),
            None,
        )
        if found is None and hasattr(package, "__path__") and (folder / last).is_dir():
            module = self._folder(name, folder / last)
        elif found is None or not hasattr(package, "__path__"):
            shown = name.removeprefix(f"{self._root}.")
            raise ModuleNotFoundError(f"No module named {shown!r}", name=shown)
        else:
            module = self._executed(name, found)
        setattr(package, last, module)
        return module

    def _folder(self, name: str, folder: Path) -> ModuleType:
        """Return a package without a file of its own."""
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
        return package

    def _executed(self, name: str, file: Path) -> ModuleType:
        inner = [str(file.parent)] if file.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(
            name, file, loader=_Loader(name, str(file)), submodule_search_locations=inner
        )
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"{file} cannot be loaded", name=name)
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return sys.modules.get(name, module)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """``__import__`` for the modules of this checkout."""
        if level:
            package = str((globals or {}).get("__package__") or "")
            private = importlib.util.resolve_name("." * level + name, package)
            if private != self._root and not private.startswith(f"{self._root}."):
                raise ImportError("attempted relative import beyond top-level package")
        elif name.partition(".")[0] in self._beside:
            private = f"{self._root}.{name}"
        else:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = self.load(private)
        if not fromlist:
            return self.load(f"{self._root}.{name.partition('.')[0]}")
        for each in fromlist:
            if each != "*" and not hasattr(module, each) and hasattr(module, "__path__"):
                try:
                    self.load(f"{private}.{each}")
                except ModuleNotFoundError as error:
                    if error.name != f"{private}.{each}".removeprefix(f"{self._root}."):
                        raise
        return module

    def beside(self, name: str) -> ModuleType | None:
        """Return a module of a package beside the folder; None: there is none."""
        if name.partition(".")[0] not in self._beside:
            return None
        try:
            return self.load(f"{self._root}.{name}")
        except ImportError:
            return None


class _Loader(SourceFileLoader):
    """A loader of source files that leaves no compiled files beside them."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Write nothing: the folder is the user's."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the file as it is now; a compiled file may be another's."""
        return self.source_to_code(self.get_data(self.path), self.path)


def _packages_beside(home: Path) -> list[str]:
    """Return the names of packages and modules in the folder that holds ``home``, where ``home``
    is laid out as DevAll's; those of Python itself are not taken.
    """
    if not any((home / name).is_dir() for name in _DEVALL):
        return []
    found = {home.name}
    for each in home.parent.iterdir():
        if each.suffix == ".py" and each.is_file():
            found.add(each.stem)
        elif each.is_dir() and next(each.glob("*.py"), None) is not None:
            found.add(each.name)
    return [
        name
        for name in found
        if name.isidentifier() and name not in sys.stdlib_module_names and name != "axil"
    ]

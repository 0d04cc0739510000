"""Graphs that are made in Python, named as ``module:graph`` or ``file.py:graph``.

Loading one executes its module: to name it is to give leave for that. A name in a journal or in a
file that somebody else wrote is no such leave, so what reads one from there asks for leave first.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from axil import AxilError, ConfigError, Problem, RootGraph, Workflow
from axil.plugin import NotBuilt, did_you_mean, format_names
from axil_files.modules import failed_to_load, module_from

_NAMED: Final = re.compile(r"(?P<place>.+):(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTarget:
    """A graph in a Python module."""

    text: str
    """As it was named."""
    name: str
    """Of the graph in the module, or of a function that makes it; empty: none was named."""
    module: str = ""
    """Its import path; empty: a file."""
    file: str = ""
    """Its real path; empty: a module."""
    folder: str
    """The folder at which imports begin: the file's, or the current one."""

    @property
    def kept(self) -> str:
        """The same name, from whatever folder."""
        return f"{self.file or self.module}:{self.name}"

    @property
    def sources(self) -> dict[str, str]:
        """The file with a digest of its text, for a comparison later on; nothing of a module."""
        if not self.file or not os.path.isfile(self.file):
            return {}
        return {self.file: hashlib.sha256(Path(self.file).read_bytes()).hexdigest()}

    def load(self) -> Workflow:
        """Execute the module and return the graph, built or not.

        What the module prints goes to standard error. ``folder`` is put in front of ``sys.path``
        and stays there, for what is imported while the graph runs.

        Raises: ConfigError (AX701): the module fails, or has no graph of that name. SpecError and
        its kin, as the module raises them.
        """
        module = self._imported()
        found: Any = module
        for part in self.name.split(".") if self.name else ():
            if not hasattr(found, part):
                raise self._unfit(f'there is no "{self.name}" in it.', module)
            found = getattr(found, part)
        if callable(found) and not isinstance(found, (type, Workflow)):
            found = self._made(found)
        if not isinstance(found, Workflow):
            named = _unlike(self.name, found) if self.name else "name a graph in it."
            raise self._unfit(named, module)
        return _described(cast("Workflow", found))

    def _made(self, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except AxilError:
            raise
        except Exception as error:
            raise failed_to_load(error, self.file, self.text, id="AX701") from error

    def _imported(self) -> ModuleType:
        if self.file and not os.path.isfile(self.file):
            raise ConfigError(Problem("AX701", self.text, "no such file.", "Check the path."))
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        try:
            with redirect_stdout(sys.stderr):
                if self.file:
                    return module_from(Path(self.file), self._module_name(), self.text, id="AX701")
                return importlib.import_module(self.module)
        except ConfigError as error:
            cause = error.__cause__
            raise cause if isinstance(cause, AxilError) else error  # noqa: B904  # its own words
        except (AxilError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise failed_to_load(error, "", self.module, id="AX701") from error

    def _module_name(self) -> str:
        """Return the name under which other modules would import the file, if it is free."""
        stem = Path(self.file).stem
        known = sys.modules.get(stem)
        is_free = known is None or getattr(known, "__file__", None) == self.file
        return stem if stem.isidentifier() and is_free else "_axil_" + re.sub(r"\W", "_", stem)

    def _unfit(self, message: str, module: ModuleType) -> ConfigError:
        graphs = [name for name, value in vars(module).items() if isinstance(value, Workflow)]
        place = (self.file and os.path.relpath(self.file)) or self.module
        hint = (
            did_you_mean(self.name, graphs)
            or (f"It has {format_names(graphs)}: {place}:{graphs[0]}" if graphs else "")
            or "Name a RootGraph, or a function without parameters that returns one."
        )
        return ConfigError(Problem("AX701", self.text, message, hint))


def python_target(text: str, *, folder: str = "") -> PythonTarget | None:
    """Return the graph in Python that ``text`` names; None: it names a workflow file.

    Args:
        folder: where imports of a module begin; empty: the current folder.
    """
    if text.endswith(".py"):
        place, name = text, ""
    else:
        found = _NAMED.fullmatch(text)
        if found is None:
            return None
        place, name = found["place"], found["name"]
    if place.endswith(".py"):
        file = os.path.realpath(place)
        return PythonTarget(text=text, name=name, file=file, folder=os.path.dirname(file))
    is_drive = os.name == "nt" and len(place) == 1
    if not _MODULE.fullmatch(place) or is_drive or os.path.exists(text):
        return None
    start = os.path.realpath(folder or os.curdir)
    return PythonTarget(text=text, name=name, module=place, folder=start)


def _unlike(name: str, found: Any) -> str:
    return f'"{name}" is of the type {type(found).__name__}; expected a RootGraph.'


def _described(found: Workflow) -> Workflow:
    """Return a graph that has a spec: one that is not built, as it is."""
    try:
        found.spec  # noqa: B018  # asked whether there is one
    except NotBuilt:
        return Workflow(cast("RootGraph", found).to_spec(), found.setting)
    return found


__all__ = ["PythonTarget", "python_target"]

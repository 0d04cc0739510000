"""``--functions DIR``: Python functions of a folder, for workflows that name them as tools, conditions or processors."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from axil.errors import ComponentConflict
from axil_cli.command import Session, misuse

KINDS = ("tools", "conditions", "processors")
"""What a function can be; which of these it is, the workflow says."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--functions``."""
    told = "a folder with .py files, whose functions the file may name as tools, conditions and processors; needs --allow-code"
    parser.add_argument("--functions", action="append", default=[], metavar="DIR", help=told)


def provide(options: argparse.Namespace, session: Session) -> None:
    """Make the functions components of the session's registry, by their names; what is installed under a name stays.

    Raises: ConfigError (AX700): code is not allowed, a folder has no functions, or a file cannot be imported.
    """
    if options.functions and not options.allow_code:
        raise misuse("--functions", "the functions of a folder are code.", "Add --allow-code if you trust them.")
    for folder in options.functions:
        found = list(_functions(Path(folder)))
        if not found:
            raise misuse("--functions", f"there is no function in a .py file of {folder}.", "Name the folder that the files are in.")
        taken: set[str] = set()
        for name, function in found:
            taken |= _registered(name, function, session)
        for told in sorted(taken):
            session.tell(f"warning: {told}")


def _registered(name: str, function: Any, session: Session) -> set[str]:
    told: set[str] = set()
    for kind in KINDS:
        try:
            session.registry.register(kind, name, function)
        except ComponentConflict as conflict:
            told.add(f"{conflict.problem.message} The function of {inspect.getfile(function)} is not used for it.")
    return told


def _functions(folder: Path) -> Iterator[tuple[str, Any]]:
    """Names and public functions of the files in a folder, and in folders below."""
    if not folder.is_dir():
        raise misuse("--functions", f"{folder} is no folder.", "Name a folder with .py files.")
    home = os.path.realpath(folder)
    if home not in sys.path:
        sys.path.append(home)  # so that the files can import each other
    for number, file in enumerate(sorted(folder.rglob("*.py"))):
        if any(part.startswith((".", "_")) for part in file.relative_to(folder).parts):
            continue
        module = _imported(file, f"axil_functions_{zlib.crc32(os.fsencode(home)):08x}_{number}_{file.stem}")
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                yield name, value


def _imported(file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a file of somebody's does while it is imported
        del sys.modules[name]
        raise misuse("--functions", f"{file} cannot be imported ({type(error).__name__}: {error}).", "Mend it, or move it away.") from error
    return module

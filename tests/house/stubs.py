"""Stubs of public modules: what type checkers and editors read in place of a table of names.

`make manifests` writes them, and a test holds them current.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from pathlib import Path

from tests.internals import internal

module_of_each = internal("module_of_each")

ROOT = Path(__file__).resolve().parents[2]
DOORS = ("axil", "axil.plugin", "axil.driver")
WIDTH = 100


def public_modules() -> list[str]:
    """Return the modules that have a table of names: those of core, and packages of members."""
    packages = (
        ".".join(file.parent.relative_to(folder).parts)
        for folder in sorted(ROOT.glob("*/*/src"))
        for file in sorted(folder.rglob("__init__.py"))
        if "lazy_names" in file.read_text("utf-8")
    )
    return [*DOORS, *packages]


def stubs() -> dict[str, str]:
    """Return the text of each module's stub, by its path."""
    return {path_of(name): stub_of(name) for name in public_modules()}


def path_of(name: str) -> str:
    """Return the path of a module's stub, beside it."""
    file = Path(importlib.import_module(name).__file__ or "").resolve()
    return file.with_suffix(".pyi").relative_to(ROOT).as_posix()


def stub_of(name: str) -> str:
    """Return the stub of a module: each name as ``name as name``, which says that it is public; an
    old one is assigned.
    """
    module = importlib.import_module(name)
    imported: dict[str, set[str]] = defaultdict(set)
    for each, source in module_of_each(module._SUBJECTS, module.__package__).items():
        imported[source].add(f"{each} as {each}")
    lines = [f'"""Names of ``{name}`` for type checkers; written by ``make manifests``."""', ""]
    for source in sorted(imported):
        names = sorted(imported[source], key=_place)
        line = f"from {source} import {', '.join(names)}"
        several = [f"from {source} import (", *(f"    {name}," for name in names), ")"]
        lines += [line] if len(line) <= WIDTH else several
    renamed = getattr(module, "_RENAMED", {})
    lines += ["", *(f"{old} = {new}" for old, new in sorted(renamed.items()))]
    return "\n".join(lines).rstrip() + "\n"


def _place(name: str) -> tuple[int, str, str]:
    """Return where a name stands in an import: constants, classes, functions."""
    word = name.partition(" ")[0]
    kind = 0 if word.isupper() and len(word) > 1 else 1 if word[0].isupper() else 2
    return kind, word.lower(), name

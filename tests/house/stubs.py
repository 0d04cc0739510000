"""Stubs of the doors of axil: what type checkers and editors read in place of a door's table.

`make manifests` writes them, and a test holds them current.
"""

from __future__ import annotations

import importlib
from collections import defaultdict

DOORS = ("axil", "axil.plugin", "axil.driver")
WIDTH = 100


def stubs() -> dict[str, str]:
    """Return the text of each door's stub, by its path."""
    return {path_of(door): stub_of(door) for door in DOORS}


def path_of(door: str) -> str:
    """Return the path of a door's stub, beside its module."""
    name = door.partition(".")[2] or "__init__"
    return f"core/src/axil/{name}.pyi"


def stub_of(door: str) -> str:
    """Return the stub of a door: each name as ``name as name``, which says that it is public; one
    that its module calls otherwise, or an old one, is assigned.
    """
    module = importlib.import_module(door)
    imported: dict[str, set[str]] = defaultdict(set)
    assigned: dict[str, str] = {}
    tables = (table for modules in module._SUBJECTS.values() for table in modules.items())
    for source, names in tables:
        full = source if source.startswith("axil_") else f"axil.{source}"
        for name, _, inner in (each.partition("=") for each in names.split()):
            imported[full].add(inner or f"{name} as {name}")
            if inner:
                assigned[name] = inner
    assigned |= {old: assigned.get(new, new) for old, new in module._RENAMED.items()}
    lines = [f'"""Names of ``{door}`` for type checkers; written by ``make manifests``."""', ""]
    for source in sorted(imported):
        names = sorted(imported[source], key=_place)
        line = f"from {source} import {', '.join(names)}"
        several = [f"from {source} import (", *(f"    {name}," for name in names), ")"]
        lines += [line] if len(line) <= WIDTH else several
    lines += ["", *(f"{name} = {inner}" for name, inner in sorted(assigned.items()))]
    return "\n".join(lines).rstrip() + "\n"


def _place(name: str) -> tuple[int, str]:
    """Return where a name stands in an import: constants, classes, functions."""
    word = name.partition(" ")[0]
    return (0 if word.isupper() and len(word) > 1 else 1 if word[0].isupper() else 2), name

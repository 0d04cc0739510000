"""The kernel is sealed: it imports nothing that could do, and nothing else of axil."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import axil.kernel

PURE = {
    "__future__", "bisect", "collections", "copy", "dataclasses", "functools", "hashlib", "heapq",
    "itertools", "json", "math",
    "operator", "types", "typing",
}  # fmt: skip
"""Modules of the standard library that compute, and neither wait, read, write, start nor log
anything.
"""

MODULES = sorted(Path(axil.kernel.__file__).parent.glob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a name comes from"
            yield node.module or ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_of_the_kernel_imports_pure_modules_the_kernel_and_errors(path: Path):
    strange = {
        name
        for name in imports(path)
        if name != "axil.errors"
        and not name.startswith("axil.kernel.")
        and name.split(".")[0] not in PURE
    }
    assert not strange
    assert sys.stdlib_module_names | {"__future__"} >= PURE


def test_errors_import_the_standard_library_and_what_takes_secrets_out():
    core = Path(axil.kernel.__file__).parent.parent
    for file, others in (("errors.py", {"axil.secrecy"}), ("secrecy.py", set[str]())):
        strange = {name for name in imports(core / file) if name not in others}
        assert {name.split(".")[0] for name in strange} <= sys.stdlib_module_names


def test_no_code_of_the_kernel_calls_what_is_not_pure():
    """``open``, ``print``, ``input``, ``exec``, ``eval`` and ``__import__`` need no import."""
    for path in MODULES:
        names = {
            node.id
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Name)
        }
        assert names.isdisjoint(
            {"open", "print", "input", "exec", "eval", "compile", "__import__"}
        ), path.stem

"""Rules of CONVENTIONS.md that a machine can hold, and that a linter does not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

BUDGETS = {
    "kernel": (3720, 13),
    "spec": (810, 5),
    "compiler": (2320, 7),  # folding is here, too
    "contract": (1900, 12),
    "runtime": (2240, 9),
    "builder": (1300, 4),
    "registry": (2050, 8),  # grants: what files may do is decided where settings are decoded
}
"""Lines and modules that a package of core may have.

They are a wish about readers: raise one with a reason, in the same commit.
"""
UNSAFE_CALLS = {"eval", "exec"}
UNSAFE_MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
UNFINISHED = re.compile(
    "|".join(rf"\b{a}{b}\b" for a, b in (("TO", "DO"), ("FIX", "ME"), ("XX", "X")))
)

# Folders in which people and build machines keep their checkouts: a path that begins with one means
# something on one machine only.
OWN_FOLDERS = ("home", "Users", "root", "work", "workspace", "farm", "builds")
OWN_PATH = re.compile(rf"(?<![\w.$}}:/-])/(?:{'|'.join(OWN_FOLDERS)})/[\w.-]")

# Where packages come from is the business of whoever installs them (written in halves: this file is
# searched, too).
REGISTRY = re.compile(
    "|".join(
        re.escape(left + right)
        for left, right in (
            ("pypi", ".org"),
            ("pypi", ".python.org"),
            ("python", "hosted.org"),
            ("registry", ".npmjs"),
            ("conda", ".anaconda"),
            ("--index", "-url"),
            ("--extra-index", "-url"),
            ("PIP_INDEX", "_URL"),
            ("UV_INDEX", "_URL"),
            ("--trusted", "-host"),
        )
    ),
    re.IGNORECASE,
)


def found(pattern: re.Pattern[str], file: Path) -> list[str]:
    lines = file.read_text("utf-8").splitlines()
    return [
        f"{number}: {line.strip()}" for number, line in enumerate(lines, 1) if pattern.search(line)
    ]


def test_a_package_of_core_keeps_its_budget(root):
    packages = {
        path.parent.name: path.parent for path in (root / "core/src/axil").glob("*/__init__.py")
    }
    assert packages.keys() == BUDGETS.keys()
    for name, folder in packages.items():
        modules = sorted(folder.glob("*.py"))
        lines = sum(len(module.read_text("utf-8").splitlines()) for module in modules)
        assert lines <= BUDGETS[name][0], f"{name}: {lines} lines"
        assert len(modules) <= BUDGETS[name][1], f"{name}: {len(modules)} modules"


def test_a_module_says_what_it_gives(source):
    assert ast.get_docstring(ast.parse(source.read_text("utf-8")))


def test_a_library_never_prints_and_never_runs_text(source):
    refused = UNSAFE_CALLS if "axil_cli" in source.parts else UNSAFE_CALLS | {"print"}
    calls = [
        f"{node.lineno}: {node.func.id}"
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in refused
    ]
    assert calls == []


def test_nothing_is_unpickled(source):
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported & UNSAFE_MODULES == set()


def test_no_handler_catches_without_naming(source):
    bare = [
        node.lineno
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]
    assert bare == []


def test_library_code_is_finished(source):
    assert found(UNFINISHED, source) == []


def test_no_text_holds_a_path_of_one_machine(text, root):
    here = re.compile(rf"(?<![\w.]){re.escape(str(root))}/")
    assert found(OWN_PATH, text) + found(here, text) == []


def test_no_text_names_a_package_registry(text):
    assert found(REGISTRY, text) == []

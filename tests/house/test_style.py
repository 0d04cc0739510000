"""Rules of CONVENTIONS.md that a machine can hold, and that a linter does not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.house.checkout import faults, nodes_of, text_of, tree_of

BUDGETS = {
    "kernel": (4090, 12),  # reports of what edges carry, bounds of sizes, components for checks
    "spec": (946, 6),  # limits inside of others, and changed ones; digests; kinds; quick data
    "patterns": (515, 5),  # a bounded engine, schemas that use it, and types of settings
    "settings": (2270, 12),  # decoding, secrets, callers' own, grants and enforcement, policy
    "registry": (
        923,
        5,
    ),  # types; deprecations; metadata; extras; stray groups; joins
    "contract": (2123, 12),  # secrets; what observers receive; unfit hook plugins and questions
    "typed": (1450, 5),  # schemas of models, reducers, views of a typed state, known messages
    "compiler": (2804, 11),  # types; folding; fields of states and ends; formatters; shared bodies
    "dependencies": (470, 4),  # from graph to graph; settings that name components; versions
    "runtime": (
        2521,
        10,
    ),  # types; deadlines; kept limits; effects before another request
    "builder": (1490, 4),  # signatures, types; templates; state shared inside; unfit arguments
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
    """Return the lines of a file in which a pattern is found, with their numbers."""
    text = text_of(file)
    if not pattern.search(text):
        return []
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
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


def test_a_module_has_a_docstring(sources):
    assert [file for file in sources if not ast.get_docstring(tree_of(file))] == []


def calls_refused(source: Path) -> list[str]:
    refused = UNSAFE_CALLS if "axil_cli" in source.parts else UNSAFE_CALLS | {"print"}
    return [
        f"{node.lineno}: {node.func.id}"
        for node in nodes_of(source)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in refused
    ]


def test_a_library_never_prints_and_never_runs_text(sources):
    assert faults(sources, calls_refused) == {}


def imports_refused(source: Path) -> set[str]:
    names = {
        name
        for node in nodes_of(source)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    return {name.partition(".")[0] for name in names} & UNSAFE_MODULES


def test_nothing_is_unpickled(sources):
    assert faults(sources, imports_refused) == {}


def bare_handlers(source: Path) -> list[int]:
    return [
        node.lineno
        for node in nodes_of(source)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]


def test_no_handler_catches_without_naming(sources):
    assert faults(sources, bare_handlers) == {}


def test_library_code_is_finished(sources):
    assert faults(sources, lambda file: found(UNFINISHED, file)) == {}


def test_no_line_of_code_has_more_than_100_columns(texts):
    """The linter passes over lines that end with a mark for it."""

    def long(file: Path) -> list[int]:
        lines = text_of(file).splitlines() if file.suffix == ".py" else []
        return [number for number, line in enumerate(lines, 1) if len(line) > 100]

    assert faults(texts, long) == {}


def test_no_text_holds_a_path_of_one_machine(texts, root):
    here = re.compile(rf"(?<![\w.]){re.escape(str(root))}/")
    assert faults(texts, lambda file: found(OWN_PATH, file) + found(here, file)) == {}


def test_no_text_names_a_package_registry(texts):
    assert faults(texts, lambda file: found(REGISTRY, file)) == {}

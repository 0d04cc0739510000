"""Imports: between the packages of core, between members, and of axil's doors.

Outside core nothing imports any module of axil but its doors.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.checkout import faults, imports_of, text_of, tree_of

DOORS = {"axil", "axil.plugin", "axil.driver"}
FOLDERS = ("plugins", "contrib", "examples", "tests", "benchmarks")
FENCE = re.compile(r"^( *)(`{3,})(python[^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^[ >]*(?:from|import) +axil[.\w]*.*$", re.MULTILINE)
"""A statement inside a text: a doctest, a program for another process, a template."""


IMPORTED_BY = {
    "axil_agent": {
        "axil_devall",
        "axil_evals",
        "axil_wrappers",
        "axil_mcp",
        "axil_teams",
        "axil_testing",
    },
    "axil_models": {
        "axil_agent",
        "axil_anthropic",
        "axil_chroma",
        "axil_devall",
        "axil_evals",
        "axil_gemini",
        "axil_lancedb",
        "axil_mcp",
        "axil_context",
        "axil_openai",
        "axil_pgvector",
        "axil_qdrant",
        "axil_sqlite_vec",
        "axil_teams",
        "axil_testing",
        "axil_wordllama",
        "fern_glossary",
    },
    "axil_evals": {"axil_testing", "axil_evals"},
    "axil_context": {"axil_chroma"},
    "axil_context": {"axil_chroma", "axil_context"},
    "axil_process": {
        "axil_control",
        "axil_mcp",
        "axil_process",
        "axil_workspace",
    },
    "axil_wrappers": {"axil_wrappers"},
}
"""The members that others may import, and by which; all else meets in axil's doors."""
FACADES = {"evofabric", "masfactory"}
"""Members that give other names to what all others have."""


def packages_of(statement: ast.AST) -> set[str]:
    """Return the packages that a statement imports."""
    if isinstance(statement, ast.Import):
        return {alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom) and not statement.level:
        return {(statement.module or "").partition(".")[0]}
    return set()


def only_for_types(tree: ast.AST) -> set[ast.AST]:
    """Return the statements of a module that only type checkers read."""
    blocks = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {inner for block in blocks for node in block.body for inner in ast.walk(node)}


def test_members_import_each_other_as_agreed(members):
    packages = {member.import_name for member in members if member.has_code} - {"axil"}
    found = [
        f"{file.relative_to(member.folder)}: {package}"
        for member in members
        if member.import_name not in FACADES | {"axil"}
        for file in sorted((member.folder / "src").rglob("*.py"))
        for statement in imports_of(file)
        for package in packages_of(statement) & packages - {member.import_name}
        if member.import_name not in IMPORTED_BY.get(package, ())
    ]
    assert found == []


def test_core_imports_no_member_but_for_type_checkers(root, members):
    packages = {member.import_name for member in members if member.has_code} - {"axil"}
    for file in sorted((root / "core/src/axil").rglob("*.py")):
        tree = tree_of(file)
        typed = only_for_types(tree)
        found = {name for node in ast.walk(tree) if node not in typed for name in packages_of(node)}
        assert found & packages == set(), file


def test_interfaces_of_models_are_imported_from_their_package(root):
    found = [
        f"{file}: {node.module}"
        for folder in FOLDERS
        for file in sorted((root / folder).rglob("*.py"))
        if "axil-models" not in file.parts and "axil_models." in text_of(file)
        for node in imports_of(file)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("axil_models.")
    ]
    assert found == []


def test_the_layers_of_core_are_kept(root):
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"], cwd=root, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_layers_name_every_module_of_core(root):
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    named = {
        name.strip(" ()")
        for line in settings["contracts"][0]["layers"]
        for name in line.replace(":", "|").split("|")
    }
    entries = (root / "core/src/axil").iterdir()
    modules = {
        entry.stem
        for entry in entries
        if entry.suffix == ".py" or (entry / "__init__.py").is_file()
    }
    assert modules - {"__init__", "__main__"} <= named


# ------------------------------------------------------------------------------------------- doors


def is_axil(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "axil"


def modules_of(tree: ast.AST, inside: set[str]) -> Iterator[str]:
    """Yield the modules of axil that code uses; ``inside``: names of those in core."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "axil")
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module == "axil":
                names = {alias.name for alias in node.names} & inside
                yield from (f"axil.{name}" for name in sorted(names))
            if (node.module or "").split(".")[0] == "axil":
                yield node.module or ""
        elif isinstance(node, ast.Attribute) and node.attr in inside and is_axil(node.value):
            yield f"axil.{node.attr}"


def named_in(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of axil that code imports by a text."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        if called in ("import_module", "__import__"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and str(first.value).split(".")[0] == "axil":
                yield str(first.value)


def written_in(text: str, inside: set[str]) -> Iterator[str]:
    """Yield the modules of axil that statements inside a text import."""
    for statement in IMPORT.findall(text):
        try:
            tree = ast.parse(statement.lstrip(" >"))
        except SyntaxError:  # prose, or a statement of several lines: its first word is enough
            found = re.search(r"from +(axil[.\w]*) +import", statement)
            yield from [found[1]] if found else []
        else:
            yield from modules_of(tree, inside)


@pytest.fixture(scope="module")
def inside(root):
    return {file.stem for file in (root / "core/src/axil").iterdir()}


@pytest.fixture(scope="module")
def doors_only(inside):
    def check(tree: ast.AST) -> set[str]:
        found = {*modules_of(tree, inside), *named_in(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(written_in(node.value, inside))
        return found - DOORS

    return check


def outside_core(root: Path) -> list[Path]:
    return [file for folder in FOLDERS for file in sorted((root / folder).rglob("*.py"))]


def test_outside_core_only_doors_are_imported(root, doors_only):
    found = {file: doors_only(tree_of(file)) for file in outside_core(root)}
    assert {file: modules for file, modules in found.items() if modules} == {}


def test_the_examples_of_a_page_import_only_doors(pages, inside):
    def beyond(page: Path) -> set[str]:
        blocks = [match[4] for match in FENCE.finditer(text_of(page))]
        return {name for block in blocks for name in written_in(block, inside)} - DOORS

    assert faults(pages, beyond) == {}


def test_templates_import_only_doors(root, inside):
    for file in sorted((root / "plugins").rglob("src/**/*.txt")):
        assert set(written_in(file.read_text("utf-8"), inside)) - DOORS == set(), file


def test_the_rule_of_doors_finds_every_way_around_it(doors_only):
    ways = (
        "import AXIL.spec",
        "import AXIL\nAXIL.kernel.spec.ComponentRef",
        "from AXIL.spec import ComponentRef",
        "from AXIL import registry",
        "def f():\n    from AXIL import registry as known",
        "import importlib\nimportlib.import_module('AXIL.spec')",
        "from importlib import import_module\nimport_module('AXIL.spec')",
        'PROGRAM = """\nfrom AXIL.spec import ComponentRef\n"""',
        'def f():\n    """Doctest.\n\n    >>> from AXIL.spec import ComponentRef\n    """',
    )
    trees = [ast.parse(way.replace("AXIL", "axil")) for way in ways]  # or this file would be found
    assert [way for way, tree in zip(ways, trees, strict=True) if not doors_only(tree)] == []
    kept = "import axil\nfrom axil import ComponentRef; from axil_files import load\nfrom axil.plugin import Task"
    assert doors_only(ast.parse(kept)) == set()

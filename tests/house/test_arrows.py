"""Imports: of core, between members, and between the packages of core.

Core names no package of a plugin. A member uses another one by its face, the names that its package
gives, and depends on what its pyproject.toml declares; what depends on what has no circles.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.house.checkout import Member, all_members, faults, imports_of, nodes_of, shown, text_of

FOLDERS = ("core", "plugins", "contrib", "examples", "tests", "benchmarks")
FENCE = re.compile(r"^( *)(`{3,})(python[^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^[ >]*(?:from|import) +[a-z][.\w]*.*$", re.MULTILINE)
"""A statement inside a text: a doctest, a program for another process, a template."""
TARGET = re.compile(r"([a-z]\w*)(?:\.\w+)*(?::\w+)?")
"""A text that may be imported: a module, or the target of an entry point."""

DOORS = {"axil", "axil.plugin", "axil.driver"}
FURTHER_FACES = {
    "axil_cli.main": "the program, for other processes",
    "axil_testing.agents": "agents for tests",
    "axil_testing.fixtures": "fixtures, which pytest asks for by this name",
    "axil_testing.graphs": "strategies, which need hypothesis",
    "axil_testing.kit": "the laws of components, which need pytest",
    "axil_testing.members": "what the tests of a member begin with",
    "axil_testing.specs": "graphs of functions",
    "axil_testing.stub": "a model service",
    "axil_testing.versions": "versions of one workflow",
}
"""Modules that are used by their own names beside the packages, and what they are."""
FACADES = {"evofabric", "masfactory"}
"""Members whose modules have the names that another project gave them."""
FOUND_BY_NAME = {
    "axil-devall": {
        "axil-context": "an embedder, where a memory names none",
        "axil-control": "most nodes of its files",
    },
    "axil-teams": {"axil-control": "the wrapper `map`"},
}
"""Distributions that a member requires for their components alone, and for which of them."""


def names_of(requirements: list[str]) -> set[str]:
    """Return the members among what is required."""
    return {Requirement(each).name for each in requirements} & {one.name for one in all_members()}


def required_by(member: Member) -> set[str]:
    """Return the members that one of them requires, extras left out."""
    return names_of(member.project.get("dependencies", []))


def imported_by(member: Member) -> set[str]:
    """Return the other members whose packages the sources of one import."""
    packages = {each.import_name: each.name for each in all_members() if each.has_code}
    statements = [
        statement
        for file in sorted((member.folder / "src").rglob("*.py"))
        for statement in imports_of(file)
    ]
    modules = {
        name
        for each in statements
        for name in (
            [alias.name for alias in each.names]
            if isinstance(each, ast.Import)
            else [each.module or ""]
        )
    }
    found = {packages.get(name.partition(".")[0], member.name) for name in modules}
    return found - {member.name}


def test_a_member_declares_what_its_sources_import_or_find_by_name(member):
    if member.has_code:
        unused = required_by(member) - imported_by(member) - {"axil-core"}
        assert unused == FOUND_BY_NAME.get(member.name, {}).keys()


def test_what_members_require_has_no_circles(members):
    order = list(
        TopologicalSorter({each.name: required_by(each) for each in members}).static_order()
    )
    assert order[0] == "axil-core"


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


# ------------------------------------------------------------------------------------------- faces

Inside = Mapping[str, AbstractSet[str]]
"""Package → the modules directly in it, less those that its face has a name for."""


def package_of(module: str) -> str:
    return module.partition(".")[0]


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def modules_of(nodes: Iterable[ast.AST], inside: Inside) -> Iterator[str]:
    """Yield the modules of members that code uses."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if package_of(alias.name) in inside)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            if package_of(module) in inside:
                yield module
            names = {alias.name for alias in node.names} & inside.get(module, set())
            yield from (f"{module}.{name}" for name in sorted(names))
        elif isinstance(node, ast.Attribute) and node.attr in inside.get(name_of(node.value), ()):
            yield f"{name_of(node.value)}.{node.attr}"


def named_in(nodes: Iterable[ast.AST], inside: Inside) -> Iterator[str]:
    """Yield the modules of members that code imports by a text."""
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        if called in ("import_module", "__import__"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and package_of(str(first.value)) in inside:
                yield str(first.value)


def written_in(text: str, inside: Inside) -> Iterator[str]:
    """Yield the modules of members that statements inside a text import."""
    for statement in IMPORT.findall(text):
        try:
            tree = ast.parse(statement.lstrip(" >"))
        except SyntaxError:  # prose, or a statement of several lines: its first word is enough
            found = re.search(r"from +([.\w]+) +import", statement)
            yield from [found[1]] if found and package_of(found[1]) in inside else []
        else:
            yield from modules_of(ast.walk(tree), inside)


def texts_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def used_by(nodes: list[ast.AST], inside: Inside) -> set[str]:
    """Return the modules of members that a file imports in any way."""
    written = {name for text in texts_of(nodes) for name in written_in(text, inside)}
    return {*modules_of(nodes, inside), *named_in(nodes, inside), *written}


def beyond_faces(modules: AbstractSet[str], own: str = "") -> set[str]:
    """Return those modules that are the inside of a member, for users other than itself."""
    return {
        module
        for module in modules
        if package_of(module) not in {own, *FACADES}
        and module not in {package_of(module), *DOORS, *FURTHER_FACES}
    }


@pytest.fixture(scope="module")
def inside(members) -> Inside:
    found: dict[str, set[str]] = {}
    for member in members:
        if member.has_code:
            face = getattr(import_module(member.import_name), "__all__", ())
            modules = {file.stem for file in member.package.iterdir()}
            found[member.import_name] = modules - {*face}
    return found


@pytest.fixture(scope="module")
def used(root, inside) -> dict[Path, set[str]]:
    """The modules of members that each file uses."""
    files = (file for folder in FOLDERS for file in sorted((root / folder).rglob("*.py")))
    return {file: used_by(nodes_of(file), inside) for file in files}


def owner_of(file: Path) -> str:
    """Return the package of the member in whose folder a file is."""
    owners = (each.import_name for each in all_members() if each.folder in file.parents)
    return next(owners, "")


def test_core_names_no_package_of_a_plugin(root, inside):
    plugins = inside.keys() - {"axil"}

    def named(file: Path) -> set[str]:
        nodes = nodes_of(file)
        targets = {text for text in texts_of(nodes) if TARGET.fullmatch(text)}
        names = {*used_by(nodes, inside), *targets}
        return {name for name in names if re.split(r"[.:]", name)[0] in plugins}

    assert faults(sorted((root / "core/src").rglob("*.py")), named) == {}


def test_members_are_used_by_their_faces(used):
    found = {shown(file): beyond_faces(modules, owner_of(file)) for file, modules in used.items()}
    assert {file: modules for file, modules in found.items() if modules} == {}


def test_the_examples_of_a_page_use_faces(pages, inside):
    def beyond(page: Path) -> set[str]:
        blocks = [match[4] for match in FENCE.finditer(text_of(page))]
        return beyond_faces({name for block in blocks for name in written_in(block, inside)})

    assert faults(pages, beyond) == {}


def test_templates_use_faces(root, inside):
    templates = sorted((root / "plugins").rglob("src/**/*.txt"))
    assert templates
    assert (
        faults(templates, lambda file: beyond_faces(set(written_in(text_of(file), inside)))) == {}
    )


def test_a_further_face_is_a_module_that_others_use(used):
    by_others = {
        module
        for file, modules in used.items()
        for module in modules
        if package_of(module) != owner_of(file)
    }
    left = FURTHER_FACES.keys() - by_others
    files = [file for file in used if any(name in text_of(file) for name in left)]
    named = {text for file in files for text in texts_of(nodes_of(file))}
    assert left - named == set()


def test_the_rule_of_faces_finds_every_way_around_it(inside):
    ways = (
        "import AXIL.spec",
        "import AXIL\nAXIL.spec.ComponentRef",
        "from AXIL.spec import ComponentRef",
        "from AXIL import registry",
        "def f():\n    from AXIL import registry as known",
        "import importlib\nimportlib.import_module('AXIL.spec')",
        "from importlib import import_module\nimport_module('AXIL.spec')",
        'PROGRAM = """\nfrom AXIL.spec import ComponentRef\n"""',
        'def f():\n    """Doctest.\n\n    >>> from AXIL.spec import ComponentRef\n    """',
        "from AXIL_journals.memory import MemoryJournal",
        "from AXIL_journals import memory",
        "import AXIL_journals\nAXIL_journals.memory.MemoryJournal",
        "from AXIL_testing.kit.nodes import NodeKit",
    )
    trees = [ast.parse(way.replace("AXIL", "axil")) for way in ways]  # or this file would be found
    kept = """
import axil
from axil import ComponentRef
from axil.plugin import Task
from axil_files import load
from axil_testing.kit import NodeKit
from masfactory.core.node import Node
"""
    assert [
        way
        for way, tree in zip(ways, trees, strict=True)
        if not beyond_faces(used_by([*ast.walk(tree)], inside))
    ] == []
    assert beyond_faces(used_by([*ast.walk(ast.parse(kept))], inside)) == set()

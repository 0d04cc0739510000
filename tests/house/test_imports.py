"""Costs of imports; and everything imported is declared."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from tests.house.checkout import text_of, tree_of

LOADED = """
import sys
from collections.abc import Iterator
before = set(sys.modules)
import axil
import json
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""

IMPORTED = """
import importlib, json, os, sys, tempfile
import asyncio, axil.driver, axil.plugin, pydantic
found = {}
for name in sys.argv[1:]:
    with tempfile.TemporaryFile() as output:
        if not (child := os.fork()):
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            importlib.import_module(name)
            sys.exit()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        found[name] = [code, output.read().decode()]
print(json.dumps(found))
"""
"""Forks of a process that has imported what members import: each imports one of them."""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The packages that `import axil` loads."""
    printed = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, check=True, text=True, timeout=600
    ).stdout
    return set(json.loads(printed))


def test_importing_axil_loads_the_standard_library_pluggy_and_itself(loaded):
    assert "axil" in loaded
    assert loaded - sys.stdlib_module_names == {"axil"} | (loaded & {"pluggy"})


def test_importing_axil_starts_no_event_loop_machinery(loaded):
    """asyncio is most of what an import would cost; it is loaded when a run starts."""
    assert "asyncio" not in loaded


@pytest.fixture(scope="module")
def printed(members) -> dict[str, list[object]]:
    """The exit codes and the output of processes that each import one member."""
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    names = [member.import_name for member in members if member.has_code]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORTED, *names],
        capture_output=True,
        check=True,
        text=True,
        timeout=600,
    )
    return json.loads(done.stdout)


def test_importing_a_member_prints_nothing(member, printed):
    if not member.has_code:
        assert "entry-points" not in member.project
        return
    assert printed[member.import_name] == [0, ""]


# Where the import name is not the distribution's name with underscores.
IMPORTED_AS = {
    "a2a-sdk": "a2a",
    "axil-core": "axil",
    "google-genai": "google",
    "markdown-it-py": "markdown_it",
    "opentelemetry-api": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
    "protobuf": "google",
    "pyyaml": "yaml",
}


def test_every_import_is_declared(member):
    """A plugin that leans on what another distribution happens to install breaks on the day that
    one changes.
    """
    needed = [
        *member.project.get("dependencies", []),
        *(
            each
            for extra in member.project.get("optional-dependencies", {}).values()
            for each in extra
        ),
    ]
    names = [re.match(r"[\w.-]+", each)[0].lower() for each in needed]
    declared = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names} | {
        member.import_name
    }
    imported = {
        name.partition(".")[0]
        for file in sorted((member.folder / "src").rglob("*.py"))
        for node in walk(tree_of(file))
        for name in names_of(node)
    }
    assert imported - declared - sys.stdlib_module_names - NEWER == set()


NEWER = {"annotationlib"}
"""Modules of the standard library that Python has since 3.14."""
KEPT = {"axil-journals": {"tzdata"}}
"""Requirements that no code names: data that the standard library reads."""


def test_every_requirement_is_used(member):
    text = "".join(text_of(file) for file in (member.folder / "src").rglob("*.py"))
    names = {re.match(r"[\w.-]+", each)[0].lower() for each in member.project["dependencies"]}
    unused = {
        name
        for name in names - KEPT.get(member.name, set())
        if not re.search(rf"\b{IMPORTED_AS.get(name, name.replace('-', '_'))}\b", text)
    }
    assert {name for name in unused if not name.startswith("axil")} == set()


def test_a_member_asks_for_nothing_older_than_what_it_needs_does(member, members):
    """Else its floor is a version that cannot be installed beside it."""
    by_name = {each.name: each for each in members}
    for name in required_by(member, by_name) & set(by_name):
        theirs, own = floors_of(by_name[name]), floors_of(member)
        lower = {each for each in theirs.keys() & own.keys() if own[each] < theirs[each]}
        assert dict.fromkeys(lower, name) == {}


def test_adapters_leave_room_for_the_frameworks_beside_them(members):
    """CrewAI, LlamaIndex and Semantic Kernel hold openai below 3."""
    [openai] = [
        Requirement(each)
        for member in members
        if member.name == "axil-openai"
        for each in member.project["dependencies"]
        if each.startswith("openai")
    ]
    assert openai.specifier.contains("2.8")
    assert openai.specifier.contains("4.0")


def floors_of(member) -> dict[str, Version]:
    """Return the lowest version of each distribution that a member requires."""
    asked = [Requirement(each) for each in member.project.get("dependencies", [])]
    return {
        each.name: Version(version.version)
        for each in asked
        for version in each.specifier
        if version.operator in (">=", "==", "~=")
    }


def walk(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all nodes but imports of ``typing_extensions`` for type checkers: they bring it."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
        if names_of(inner) == ["typing_extensions"]
    }
    return (node for node in ast.walk(tree) if id(node) not in skipped)


def required_by(member, members) -> set[str]:
    """Return the distributions that are installed with a member, itself left out."""
    found, waiting = set[str](), [member.name]
    while waiting:
        project = members[waiting.pop()].project
        names = {re.match(r"[\w.-]+", each)[0] for each in project.get("dependencies", [])}
        waiting += [name for name in names - found if name in members]
        found |= names
    return found


def names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module or ""]
    return []

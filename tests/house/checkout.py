"""The checkout, as the house tests see it: members, source files, text files and pages.

Everything is found by looking, so a new plugin, module or page is under the rules from its first
day. Files are read and parsed once in a process.
"""

from __future__ import annotations

import ast
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TEXT = {".md", ".py", ".toml", ".yaml", ".yml", ".json", ".cfg", ".ini", ".txt", ".sh", ""}
SKIPPED = {
    ".git",
    ".venv",
    "dist",
    "build",
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    ".import_linter_cache",
    ".hypothesis",
}


IMPORTED_AS = {"axil-core": "axil", "axil-evofabric": "evofabric", "axil-masfactory": "masfactory"}
"""Members that bring another project's import name."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One distribution of the workspace."""

    folder: Path
    project: dict[str, Any]
    """The `[project]` table of its pyproject.toml."""

    @property
    def name(self) -> str:
        return self.project["name"]

    @property
    def import_name(self) -> str:
        return IMPORTED_AS.get(self.name) or self.name.replace("-", "_")

    @property
    def package(self) -> Path:
        return self.folder / "src" / self.import_name

    @property
    def has_code(self) -> bool:
        return (self.folder / "src").is_dir()

    @property
    def entry_points(self) -> dict[str, dict[str, str]]:
        return {
            group: table
            for group, table in self.project.get("entry-points", {}).items()
            if group.startswith("axil.")
        }


@cache
def all_members() -> tuple[Member, ...]:
    files = [
        ROOT / "core/pyproject.toml",
        *sorted(ROOT.glob("plugins/*/pyproject.toml")),
        *sorted(ROOT.glob("contrib/*/pyproject.toml")),
    ]
    return tuple(
        Member(folder=file.parent, project=tomllib.loads(file.read_text("utf-8"))["project"])
        for file in files
    )


@cache
def all_sources() -> tuple[Path, ...]:
    """Return the library code: what ends up in a wheel."""
    return tuple(
        file for member in all_members() for file in sorted((member.folder / "src").rglob("*.py"))
    )


def all_modules() -> list[str]:
    """Return the names of all modules of the members, those of packages and mains left out."""
    return [
        ".".join(file.relative_to(member.folder / "src").with_suffix("").parts)
        for member in all_members()
        for file in all_sources()
        if member.package in file.parents and not file.name.startswith("__")
    ]


@cache
def all_texts() -> tuple[Path, ...]:
    """Return the text files of the project: what git tracks or would track; without git,
    everything but the known caches.
    """
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = list(walk(ROOT))
    files = {ROOT / name for name in listed if name}
    return tuple(sorted(file for file in files if file.suffix in TEXT and file.is_file()))


def walk(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name not in SKIPPED:
                yield from walk(entry)
        else:
            yield str(entry.relative_to(ROOT))


def all_pages() -> tuple[Path, ...]:
    """Return the pages for readers: the READMEs, docs/, and the Markdown files at the top."""
    return tuple(file for file in all_texts() if file.suffix == ".md")


def shown(file: Path) -> str:
    return str(file.relative_to(ROOT))


@cache
def text_of(file: Path) -> str:
    return file.read_text("utf-8")


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(text_of(file))


@cache
def nodes_of(file: Path) -> list[ast.AST]:
    """Return all nodes of a file."""
    return list(ast.walk(tree_of(file)))


@cache
def imports_of(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return the statements of a file that import something."""
    return [node for node in nodes_of(file) if isinstance(node, (ast.Import, ast.ImportFrom))]


def faults(files: Iterable[Path], look: Callable[[Path], object]) -> dict[str, object]:
    """Return what ``look`` finds in each file, without the files in which it finds nothing."""
    return {shown(file): found for file in files if (found := look(file))}

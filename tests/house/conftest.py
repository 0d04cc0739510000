"""What the house tests look at: the members of the workspace, their source files, the text files of
the checkout.

A test that takes `member`, `source`, `text` or `page` runs once for each of them. Everything is
found by looking, so a new plugin, module or page is under the rules from its first day.
"""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

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


IMPORTED_AS = {"axil-evofabric": "evofabric", "axil-masfactory": "masfactory"}
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
    """Library code: what ends up in a wheel."""
    return tuple(
        file for member in all_members() for file in sorted((member.folder / "src").rglob("*.py"))
    )


@cache
def all_texts() -> tuple[Path, ...]:
    """Text files that belong to the project: what git tracks or would track; without git,
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
    """Pages for readers: the READMEs, docs/ and the other Markdown files at the top."""
    return tuple(file for file in all_texts() if file.suffix == ".md")


def shown(file: Path) -> str:
    return str(file.relative_to(ROOT))


KINDS = {
    "member": (all_members, lambda m: m.name),
    "source": (all_sources, shown),
    "text": (all_texts, shown),
    "page": (all_pages, shown),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for argument, (find, name) in KINDS.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, find(), ids=name)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def members() -> tuple[Member, ...]:
    return all_members()


@pytest.fixture(scope="session")
def sources() -> tuple[Path, ...]:
    return all_sources()

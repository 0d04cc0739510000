"""A world of metadata: distributions that are folders with entry points, and the command run in
this process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import Policy, Registry, use_registry
from axil_cli.main import main
from axil_testing.members import command_runner


class World:
    """Distributions in a folder of their own, in front of the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def distribution(
        self,
        name: str,
        version: str = "1.0",
        *,
        requires: tuple[str, ...] = (),
        **groups: dict[str, str],
    ) -> None:
        """Make a distribution's metadata; groups are given without ``axil.``."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = [f"Requires-Dist: {each}\n" for each in requires]
        head = (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: fake "
            f"{name}\nRequires-Python: >=3.11\nLicense: MIT\n"
        )
        (info / "METADATA").write_text(head + "".join(lines))
        points = [
            f"[axil.{group}]\n" + "".join(f"{key} = {value}\n" for key, value in table.items())
            for group, table in groups.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(points))
        (info / "RECORD").write_text("")

    def package(self, name: str, code: str = "", manifest: Any = None) -> None:
        """Make a package that can be imported, with a manifest."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "__init__.py").write_text(code or "raise SystemExit('it must not be imported')\n")
        if manifest is not None:
            (folder / "axil-plugin.json").write_text(
                manifest if isinstance(manifest, str) else json.dumps(manifest)
            )


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Distributions that only this test has; nothing of them may be imported unless the test says
    so.
    """
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in __import__("os").environ if name.startswith("AXIL_")]:
        monkeypatch.delenv(name)
    before = set(sys.modules)
    yield World(folder)
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def axil(world, capsys, monkeypatch):
    """``axil("plugins", "list")``: the exit code and what was printed, by a process that has not
    looked yet.
    """

    def afresh(arguments: list[str]) -> int:
        with use_registry(Registry(Policy.in_force())):
            return main(arguments)

    return command_runner(afresh, capsys)


@pytest.fixture
def flow(tmp_path):
    """Writes a workflow file and gives its path."""

    def write(text: str, name: str = "flow.yaml") -> str:
        file = tmp_path / name
        file.write_text(text)
        return str(file)

    return write

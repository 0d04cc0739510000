"""The map names every package of core, and no module that is not there."""

from __future__ import annotations

import re

NAMED = re.compile(r"`([a-z_]+(?:\.[a-z_]+)?)`")


def test_the_map_names_every_package_of_core(root):
    page = (root / "docs/map.md").read_text("utf-8")
    packages = {path.parent.name for path in (root / "core/src/axil").glob("*/__init__.py")}
    assert packages <= set(NAMED.findall(page))


def test_every_module_that_the_map_names_is_there(root):
    folder = root / "core/src/axil"
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    named = [
        name.split(".")
        for name in NAMED.findall((root / "docs/map.md").read_text("utf-8"))
        if "." in name
    ]
    missing = [
        ".".join(name)
        for name in named
        if name[0] in packages and not (folder / name[0] / f"{name[1]}.py").is_file()
    ]
    assert named
    assert not missing

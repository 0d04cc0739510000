"""Arrows only go down: the contracts of import-linter hold, and they cover every member."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def settings(root):
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]


def contract(settings, kind):
    return next(each for each in settings["contracts"] if each["type"] == kind)


def test_every_contract_is_kept(root):
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_contracts_cover_every_member_with_code(settings, members):
    packages = {member.import_name for member in members if member.has_code}
    assert set(settings["root_packages"]) == packages
    assert set(contract(settings, "forbidden")["forbidden_modules"]) == packages - {"axil"}


def test_the_layers_name_every_kernel_module(settings, root):
    named = {name.strip(" ()") for line in contract(settings, "layers")["layers"] for name in line.replace(":", "|").split("|")}
    entries = (root / "core/src/axil").iterdir()
    modules = {entry.stem for entry in entries if entry.suffix == ".py" or (entry / "__init__.py").is_file()}
    assert modules - {"__init__", "__main__"} <= named

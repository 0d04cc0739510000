"""What the README says of settings is what the components take."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
COMPONENTS = [
    (name, value)
    for group, table in PROJECT["entry-points"].items()
    if group != "axil.plugin"
    for name, value in table.items()
]


def rows(text: str) -> set[str]:
    return {
        name
        for line in text.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }


def section(title: str) -> str:
    found = re.search(rf"^###? {title}\n(.*?)(?=^##|\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def common() -> set[str]:
    """Settings that several components have: those of the sections that are not about one of
    them.
    """
    return {
        name
        for title in re.findall(r"^### (Settings .*)$", README, re.MULTILINE)
        for name in rows(section(title))
    }


@pytest.mark.parametrize(("name", "value"), COMPONENTS)
def test_every_setting_is_described_and_in_the_readmes_tables(name, value):
    module, _, kind = value.partition(":")
    config = getattr(importlib.import_module(module), kind).Config
    assert config.model_config["extra"] == "forbid"
    assert [field for field, info in config.model_fields.items() if not info.description] == []
    own = rows(section(f"`{name}`"))
    assert set(config.model_fields) - own - common() == set()
    assert own - set(config.model_fields) == set()


def test_every_error_id_is_in_the_readme():
    used = {
        each
        for file in (HOME / "src").rglob("*.py")
        for each in re.findall(r"AX\d{3}", file.read_text("utf-8"))
    }
    explained = set(re.findall(r"^\| (AX\d{3}) ", README, re.MULTILINE))
    # those of axil-models are explained there
    assert used - explained <= {"AX658", "AX802", "AX803", "AX892", "AX893"}

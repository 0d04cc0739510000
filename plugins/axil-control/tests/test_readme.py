"""What the README says of settings is what the components take."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
COMPONENTS = [
    (group.removeprefix("axil."), name, value)
    for group, table in PROJECT["entry-points"].items()
    if group not in ("axil.plugin", "axil.shorthands")
    for name, value in table.items()
]


def loaded(value: str) -> Any:
    module, _, name = value.partition(":")
    return getattr(importlib.import_module(module), name)


def test_every_shorthand_is_in_the_readme():
    section = README.partition("## Shorthands\n")[2].partition("\n## ")[0]
    names = PROJECT["entry-points"]["axil.shorthands"]
    assert [name for name in names if f"| `{name}`" not in section] == []


@pytest.mark.parametrize(("kind", "name", "value"), COMPONENTS)
def test_every_setting_is_described_and_unknown_ones_are_refused(kind, name, value):
    config = loaded(value).Config
    assert config.model_config["extra"] == "forbid"
    assert [field for field, info in config.model_fields.items() if not info.description] == []


@pytest.mark.parametrize(("kind", "name", "value"), COMPONENTS)
def test_every_setting_is_in_the_readmes_table(kind, name, value):
    sections = "\n".join(
        re.findall(rf"^### [^\n]*`{name}`[^\n]*\n(.*?)(?=^##|\Z)", README, re.MULTILINE | re.DOTALL)
    )
    assert sections, f"no section for {name}"
    assert [
        field for field in loaded(value).Config.model_fields if f"| `{field}`" not in sections
    ] == []

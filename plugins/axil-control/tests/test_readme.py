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


CONFIGURED = [each for each in COMPONENTS if each[1] != "loop"]
"""All but a graph that is built in Python, which has no settings of a file."""


@pytest.mark.parametrize(("kind", "name", "value"), CONFIGURED)
def test_every_setting_is_described_and_unknown_ones_are_refused(kind, name, value):
    config = loaded(value).Config
    assert config.model_config["extra"] == "forbid"
    assert [field for field, info in config.model_fields.items() if not info.description] == []


def sections_of(name: str) -> str:
    """The text of the README under the headings that name a component."""
    heading = rf"^### [^\n]*`{name}`[^\n]*\n(.*?)(?=^##|\Z)"
    return "\n".join(re.findall(heading, README, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize(("kind", "name", "value"), COMPONENTS)
def test_every_component_has_a_section_in_the_readme(kind, name, value):
    assert sections_of(name)


@pytest.mark.parametrize(("kind", "name", "value"), CONFIGURED)
def test_every_setting_is_in_the_readmes_table(kind, name, value):
    fields = loaded(value).Config.model_fields
    assert [field for field in fields if f"| `{field}`" not in sections_of(name)] == []

"""What the README says of settings is what the components take."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
GROUPS = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
COMPONENTS = {**GROUPS["axil.nodes"], **GROUPS["axil.tools"]}


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_setting_is_described_and_in_the_readmes_table(name):
    module, _, member = COMPONENTS[name].partition(":")
    fields = getattr(importlib.import_module(module), member).Config.model_fields
    section = re.search(rf"^### `{name}`\n(.*?)(?=^##|\Z)", README, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert [n for n, f in fields.items() if not f.description or f"| `{n}`" not in section[1]] == []

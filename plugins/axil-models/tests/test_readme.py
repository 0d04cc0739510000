"""The README names all that can be imported."""

from __future__ import annotations

import re
from pathlib import Path

import axil_models

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")


def test_every_name_in_the_tables_can_be_imported():
    table = README[README.index("## What is in it") : README.index("## Errors")]
    named = set(re.findall(r"`([A-Za-z]\w*)`", table)) - {"axil_models"}
    assert {name for name in named if not hasattr(axil_models, name)} == set()


def test_every_public_name_is_listed_once():
    text = (HOME / "src/axil_models/__init__.py").read_text("utf-8")
    names = re.findall(r"^    (\w+) as \1,$", text, re.MULTILINE)
    assert sorted(names) == sorted(set(names))
    assert {name for name in names if not hasattr(axil_models, name)} == set()

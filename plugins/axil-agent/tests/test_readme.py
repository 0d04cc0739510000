"""The README's tables have every argument of what is made in Python."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from axil_agent import Agent, HistoryMemory

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def rows(heading: str) -> set[str]:
    """Return the names in the tables under headings that name a component."""
    sections = rf"^##+ [^\n]*`{heading}`[^\n]*\n(.*?)(?=^##|\Z)"
    text = "\n".join(re.findall(sections, README, re.MULTILINE | re.DOTALL))
    cells = re.findall(r"^\| (`[^|]*)", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize(("name", "kind"), [("Agent", Agent), ("history", HistoryMemory)])
def test_every_argument_is_in_the_readmes_table(name, kind):
    assert set(inspect.signature(kind).parameters) - {"name"} - rows(name) == set()

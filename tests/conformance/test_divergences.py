"""Every row of the page about divergences names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/explanation/divergences.md"
ROWS = [
    line for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| .+ \| [MDE, ]+ \|", line)
]
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_divergence_is_pinned_by_a_test(row):
    links = LINK.findall(row.split("|")[-2])
    assert links
    for sentence, where in links:
        text = (PAGE.parent / where).resolve().read_text("utf-8")
        assert (
            f"def test_{sentence.replace(' ', '_')}(" in text or f'"sentence": "{sentence}"' in text
        )

"""Shared fixtures: a registry that knows this distribution, the formatters and the meter, and a
script for a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from axil_agent import Scripted
from axil_testing.members import own_components

FORMATTERS = {
    name.lower(): f"axil_models.formatters.{name.lower()}:{name}"
    for name in ("Json", "Paragraph", "Twins", "Tagged")
}


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, as its pyproject.toml names them, some formatters, the
    meter with limits, and JSON files.
    """
    others = {
        "axil.formatters": FORMATTERS,
        "axil.loaders": {"json": "axil_files.documents:parse_json"},
        "axil.meters": {"budget": "axil_models.budget.meter:BudgetMeter"},
    }
    with own_components(__file__, others) as made:
        yield made


@pytest.fixture
def script() -> Callable[..., Scripted]:
    """A model that gives these replies, in order."""
    return lambda *replies: Scripted(list(replies))

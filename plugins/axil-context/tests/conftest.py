"""A registry that knows this distribution, as its pyproject.toml names its components, and nothing
else that is installed.
"""

from __future__ import annotations

from typing import Any

import pytest

from axil_testing.members import own_components


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, and what agents need beside it."""
    forms = {"paragraph": "paragraph:Paragraph", "json": "json:Json", "twins": "twins:Twins"}
    places = {name: f"axil_models.formatters.{place}" for name, place in forms.items()}
    meters = {"budget": "axil_models.budget.meter:BudgetMeter"}
    others = {"axil.formatters": places, "axil.meters": meters}
    with own_components(__file__, others) as made:
        yield made

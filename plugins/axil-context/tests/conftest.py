"""A registry that knows this distribution, as its pyproject.toml names its components, and nothing
else that is installed.
"""

from __future__ import annotations

from typing import Any

import pytest

from axil_testing.members import own_components


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, and a formatter for agents."""
    others = {"axil.formatters": {"twins": "axil_models.formatters.twins:Twins"}}
    with own_components(__file__, others) as made:
        yield made

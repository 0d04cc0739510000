"""Laws of long prompts: a template that repeats a field makes no text beyond the bound."""

from __future__ import annotations

import pytest

from axil_agent.template import rendered


def test_a_template_that_repeats_a_long_field_is_an_error():
    with pytest.raises(ValueError, match="AX639"):
        rendered("{a} {a}" * 1000, {"a": "x" * 1_000_000})

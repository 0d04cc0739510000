"""The README's tables have every setting of retries."""

from __future__ import annotations

from pathlib import Path

from axil_models import Retry


def test_every_setting_of_retries_is_in_a_table():
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    assert [name for name in Retry.model_fields if f"\n| `{name}`" not in readme] == []
    assert [name for name, info in Retry.model_fields.items() if not info.description] == []

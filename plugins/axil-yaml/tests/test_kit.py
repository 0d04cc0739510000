"""Everything that this distribution registers passes the conformance kit."""

from __future__ import annotations

import pytest

from axil_testing.kit import LoaderKit, check
from axil_testing.kit.whole import kits_for
from axil_yaml import parse_yaml


@pytest.mark.parametrize(
    ("kit", "why"), [pytest.param(kit, why, id=about) for about, kit, why in kits_for("axil-yaml")]
)
def test_the_kit_is_passed(kit, why):
    if kit is None:
        pytest.skip(why)
    assert [(each.law, each.reason) for each in check(kit).failures] == []


class TestYaml(LoaderKit):
    """Settings that other formats do not have."""

    component = staticmethod(parse_yaml)
    has_lines = True

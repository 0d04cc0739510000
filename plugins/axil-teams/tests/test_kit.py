"""One team of each sort passes the conformance kit; `make kits` tries all of them."""

from __future__ import annotations

import pytest

from axil_testing.kit import check
from axil_testing.kit.whole import kits_for

TRIED = ("axil-teams", "nodes:generator_verifier", "nodes:horizontal", "tools:handoff")


@pytest.mark.parametrize(
    ("kit", "why"),
    [
        pytest.param(kit, why, id=about)
        for about, kit, why in kits_for("axil-teams")
        if about in TRIED
    ],
)
def test_the_kit_is_passed(kit, why):
    if kit is None:
        pytest.skip(why)
    assert [(each.law, each.reason) for each in check(kit).failures] == []

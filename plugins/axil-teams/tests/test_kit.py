"""One team of each sort passes the conformance kit; `make kits` tries all, and the distribution."""

from __future__ import annotations

import pytest

from axil_testing.members import kit_cases, pass_kit

TRIED = ("nodes:generator_verifier", "nodes:horizontal", "tools:handoff")


@pytest.mark.parametrize(("kit", "why"), kit_cases("axil-teams", *TRIED))
def test_the_kit_is_passed(kit, why):
    pass_kit(kit, why)

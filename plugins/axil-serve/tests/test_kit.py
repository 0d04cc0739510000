"""Everything that this distribution registers passes the conformance kit."""

from __future__ import annotations

import pytest

from axil_testing.members import kit_cases, pass_kit


@pytest.mark.parametrize(("kit", "why"), kit_cases("axil-serve"))
def test_the_kit_is_passed(kit, why):
    pass_kit(kit, why)

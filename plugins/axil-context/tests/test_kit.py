"""The distribution and what needs more than the kit has; `make kits` tries all."""

from __future__ import annotations

import pytest

from axil_testing.members import kit_cases, pass_kit

TRIED = ("axil-context", "context:reranked", "rerankers:model", "rerankers:service")


@pytest.mark.parametrize(("kit", "why"), kit_cases("axil-context", *TRIED))
def test_the_kit_is_passed(kit, why):
    pass_kit(kit, why)

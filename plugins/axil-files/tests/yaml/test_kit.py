"""Everything that this distribution registers passes the conformance kit."""

from __future__ import annotations

import pytest

from axil_files import parse_yaml
from axil_testing.kit import LoaderKit
from axil_testing.members import kit_cases, pass_kit


@pytest.mark.parametrize(("kit", "why"), kit_cases("axil-files"))
def test_the_kit_is_passed(kit, why):
    pass_kit(kit, why)


class TestYaml(LoaderKit):
    """Settings that other formats do not have."""

    component = staticmethod(parse_yaml)
    has_lines = True

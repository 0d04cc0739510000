"""The page of groups, hooks and protocols is what the code says."""

from __future__ import annotations

import importlib.util

from axil.kinds import KINDS


def test_the_page_of_plugins_is_current(root):
    spec = importlib.util.spec_from_file_location("axil_house_reference", root / "tests/house/reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert (root / reference.PAGE).read_text("utf-8") == reference.page(), "make manifests"
    assert set(reference.NAMED) == set(KINDS)

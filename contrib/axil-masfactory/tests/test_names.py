"""MASFactory's public names: each works, or says what to use instead."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from masfactory import Unsupported

LINES = (Path(__file__).parent / "names.txt").read_text("utf-8").splitlines()
NAMES = dict(line.split(": ", 1) for line in LINES if not line.startswith("#"))


@pytest.mark.parametrize("module", NAMES)
def test_every_public_name_works_or_says_what_to_use(module):
    works, _, refused = NAMES[module].partition("!")
    found = importlib.import_module(module)
    assert [name for name in works.split() if not hasattr(found, name)] == []
    for name in refused.split():
        with pytest.raises(Unsupported, match=name):
            getattr(found, name)

"""Fixtures of the tests that count calls."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator

import pytest
from tests.internals import internal


@pytest.fixture(scope="module", autouse=True)
def small_heap() -> None:
    """Hide from the garbage collector what earlier tests left: tests here collect often."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing makes calls that depend on time or on tests before.

    The kernel does not give way by the clock, which on a busy machine it does after every few
    firings, and the collector, whom other libraries may have asked to call them, is at work only
    where a test asks for it.
    """
    monkeypatch.setattr(internal("pool"), "SLICE", math.inf)
    monkeypatch.setattr(internal("run"), "SLICE", math.inf)
    gc.collect()
    gc.disable()
    yield
    gc.enable()

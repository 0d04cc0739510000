"""A scene for each hostile file."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import Scene

LONGEST_SECONDS = 60
"""Seconds of the processor after which a file hangs; what only waits, pytest's own limit ends."""


class HangError(BaseException):
    """A file that is not refused, and does not end."""


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """Fail where a file does not end, and not with the whole run of the tests."""

    def late(*given: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    monkeypatch.delitem(sys.modules, "strange_module", raising=False)  # of other tests
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PRIVATE_TOKEN", "canary-7714-of-the-environment")
    monkeypatch.chdir(made.flows)
    monkeypatch.syspath_prepend(made.modules)
    return made

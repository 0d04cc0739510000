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
"""Seconds after which a file hangs."""


class HangError(BaseException):
    """A file that is not refused, and does not end."""


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """Fail where a file does not end, and not with the whole run of the tests."""

    def late(*given: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    monkeypatch.delitem(sys.modules, "strange_module", raising=False)  # of other tests
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PRIVATE_TOKEN", "canary-7714-of-the-environment")
    monkeypatch.chdir(made.flows)
    monkeypatch.syspath_prepend(made.modules)
    return made

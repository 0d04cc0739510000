"""A scene for each hostile file."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import LONG, Scene

_SAMPLED = ("test_bounds", "test_secret_files", "test_secrets_leave_nowhere")
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out two thirds of the cases that start processes; ``make thorough`` has all."""
    if LONG:
        return
    own = [item for item in items if item.path.stem in _SAMPLED]
    left = {id(item) for position, item in enumerate(own) if position % 3}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left])
    items[:] = [item for item in items if id(item) not in left]

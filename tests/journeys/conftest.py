"""What the stories need: terminals, a browser, a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.person import Terminal, browser


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Return what opens terminals, each in a folder that it names."""
    opened: list[Terminal] = []

    def open_terminal(folder: str = "desk", **environment: str) -> Terminal:
        opened.append(Terminal(tmp_path / folder, **environment))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()


@pytest.fixture
def terminal(terminals: Callable[..., Terminal]) -> Terminal:
    """A terminal in an empty folder."""
    return terminals()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A Chromium for all stories; None: there is none."""
    with browser() as found:
        yield found

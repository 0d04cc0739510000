"""The equipment of the stories: terminals, a browser, a database."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.person import Terminal, browser

collect_ignore = ["pair_program.py"]
"""A program that tests start, with arguments."""


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


@pytest.fixture
def desk(terminal: Terminal) -> Terminal:
    """A terminal in the folder of the desk that reads contracts, with a contract in it."""
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    shutil.copytree(Path(__file__).parent / "desk", terminal.folder, dirs_exist_ok=True)
    page = canvas.Canvas(str(terminal.folder / "contract.pdf"))
    page.drawString(72, 700, "From 2026-01-01 to 2026-12-31, at 1200 a year.")
    page.save()
    return terminal


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A Chromium for the stories of a module; None: there is none."""
    with browser() as found:
        yield found

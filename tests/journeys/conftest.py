"""The equipment of the stories: terminals, a browser, a database."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.person import LONG, ROOT, Terminal, browser


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


@contextmanager
def postgres() -> Iterator[str]:
    """Start a PostgreSQL server, as the tests of axil-postgres do, and yield its address."""
    path = ROOT / "plugins/axil-postgres/tests/server.py"
    spec = importlib.util.spec_from_file_location("postgres_server_of_journeys", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.start_server()
    if server is None:
        pytest.skip("there is no PostgreSQL server to start")
    try:
        yield server.url
    finally:
        server.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A Chromium for the stories of a module; None: there is none."""
    with browser() as found:
        yield found


_SAMPLED = (
    "test_a_hint_is_followed_as_it_is_printed_and_cures",
    "test_a_row_ends_as_it_has_to_by_the_words_of_all",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out two thirds of the hints and of the rows; ``make thorough`` has all."""
    if LONG:
        return
    own = [item for item in items if item.name.partition("[")[0] in _SAMPLED]
    left = {id(item) for position, item in enumerate(own) if position % 3}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left])
    items[:] = [item for item in items if id(item) not in left]

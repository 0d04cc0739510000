"""Settings of all tests, here and in members: a member's tests alone find this file, too."""

from __future__ import annotations

import gc
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

with suppress(ImportError):  # not all members have random tests
    from hypothesis import HealthCheck, settings

    # Laws are not about seconds: a slow machine is no counterexample. A failure prints how to
    # repeat it.
    settings.register_profile(
        "axil", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("axil")


# Tests make many objects that stay, and collecting looks at them: not after every 700.
gc.set_threshold(50_000, 20, 20)

# Not the key of the person who runs the tests; processes that tests start have the same.
os.environ.setdefault(
    "AXIL_LEAVE_KEY_FILE", os.path.join(tempfile.gettempdir(), "axil-tests", "leave.key")
)

_HAS_ALL = os.environ.get("AXIL_HYPOTHESIS") == "thorough"


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark ``third``."""
    config.addinivalue_line(
        "markers", "third: make test runs every third of the cases, make thorough all"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Any:
    """Look for examples in modules whose text has one: the rest need not be imported for that."""
    found = yield
    examples = [each for each in found if isinstance(each, DoctestModule)]
    if examples and ">>>" not in file_path.read_text("utf-8"):
        return [each for each in found if each not in examples]
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out two of three cases with the mark ``third``, by their names: the same each time."""
    if _HAS_ALL:
        return
    left = {
        id(item)
        for item in items
        if item.get_closest_marker("third") and zlib.crc32(item.name.encode()) % 3
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left])
    items[:] = [item for item in items if id(item) not in left]


def pytest_collection_finish() -> None:
    """Hide from the garbage collector what collecting made: it stays to the end.

    Many tests collect garbage, and each would look at all of it again.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def secrets_of_a_module() -> Iterator[None]:
    """Let the process forget the secrets of a module's tests: others would print without them.

    What a module has left stays, too: it is not looked at by the collections of the next ones.
    """
    yield
    with suppress(ImportError):
        from axil import secrecy

        secrecy.forget_secrets()
    gc.collect()
    gc.freeze()

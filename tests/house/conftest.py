"""Fixtures of the house tests: what `checkout` finds.

A test that takes `member` runs once for each member; one that takes `sources`, `texts` or `pages`
gets them all, and says in which of them it found something.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.house import checkout


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "member" in metafunc.fixturenames:
        metafunc.parametrize("member", checkout.all_members(), ids=lambda member: member.name)


@pytest.fixture(scope="session")
def root() -> Path:
    return checkout.ROOT


@pytest.fixture(scope="session")
def members() -> tuple[checkout.Member, ...]:
    return checkout.all_members()


@pytest.fixture(scope="session")
def sources() -> tuple[Path, ...]:
    return checkout.all_sources()


@pytest.fixture(scope="session")
def texts() -> tuple[Path, ...]:
    return checkout.all_texts()


@pytest.fixture(scope="session")
def pages() -> tuple[Path, ...]:
    return checkout.all_pages()

"""What all tests of this member share."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from axil_sqlite import SqliteJournal

# Laws are not about seconds: a slow machine is no counterexample. A failure prints how to repeat
# it.
settings.register_profile(
    "axil", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("axil")


@pytest.fixture(params=["full", "normal"])
def journal(request: pytest.FixtureRequest, tmp_path) -> Iterator[SqliteJournal]:
    made = SqliteJournal(tmp_path / "journal", sync=request.param)
    yield made
    made.close()

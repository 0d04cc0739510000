"""Settings of all tests, here and in members: a member's tests alone find this file, too."""

from __future__ import annotations

import gc
from contextlib import suppress

with suppress(ImportError):  # not all members have random tests
    from hypothesis import HealthCheck, settings

    # Laws are not about seconds: a slow machine is no counterexample. A failure prints how to
    # repeat it.
    settings.register_profile(
        "axil", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("axil")


def pytest_collection_finish() -> None:
    """Hide from the garbage collector what collecting made: it stays to the end.

    Many tests collect garbage, and each would look at all of it again.
    """
    gc.collect()
    gc.freeze()

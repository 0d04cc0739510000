"""The number of examples of a law, and choices out of a seed."""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, Phase, settings, strategies as st

ALL = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
QUICK = (Phase.explicit, Phase.generate)
THOROUGH = os.environ.get("AXIL_HYPOTHESIS") == "thorough"


def law(examples: int, times: int = 150) -> settings:
    """So many examples, and times as many where time does not matter; a failure prints how to
    repeat it.
    """
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=examples * times if THOROUGH else examples,
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        phases=QUICK if os.environ.get("AXIL_HYPOTHESIS") == "quick" else ALL,
        suppress_health_check=slow,
    )


seeds = st.integers(0, 2**32 - 1).map(random.Random)

"""Wrappers: what stands around a node's body and sees to it that it is done again, in time, once,
cheaply, or otherwise.
"""

from __future__ import annotations

from axil_wrappers.budget import Budget
from axil_wrappers.cache import Cache
from axil_wrappers.errors import LimiterConflict, TimeoutReached, WrapperError
from axil_wrappers.fallback import Fallback
from axil_wrappers.fields import Collect, Write
from axil_wrappers.inside import Around, Settings, Wrapper
from axil_wrappers.limit import Limit
from axil_wrappers.models import FallbackModel
from axil_wrappers.retry import Retry
from axil_wrappers.timeout import Timeout

__all__ = [
    "Around",
    "Budget",
    "Cache",
    "Collect",
    "Fallback",
    "FallbackModel",
    "Limit",
    "LimiterConflict",
    "Retry",
    "Settings",
    "Timeout",
    "TimeoutReached",
    "Wrapper",
    "WrapperError",
    "Write",
]

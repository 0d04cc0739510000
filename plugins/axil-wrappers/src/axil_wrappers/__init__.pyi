"""Names of ``axil_wrappers`` for type checkers; written by ``make manifests``."""

from axil_wrappers.budget import Budget as Budget
from axil_wrappers.cache import Cache as Cache
from axil_wrappers.errors import (
    LimiterConflict as LimiterConflict,
    TimeoutReached as TimeoutReached,
    WrapperError as WrapperError,
)
from axil_wrappers.fallback import Fallback as Fallback
from axil_wrappers.fields import Collect as Collect, Write as Write
from axil_wrappers.guards.errors import GuardTripped as GuardTripped
from axil_wrappers.guards.finding import Finding as Finding, Guard as Guard, Span as Span
from axil_wrappers.guards.wrapper import Guarded as Guarded
from axil_wrappers.inside import Around as Around, Settings as Settings, Wrapper as Wrapper
from axil_wrappers.limit import Limit as Limit
from axil_wrappers.models import FallbackModel as FallbackModel
from axil_wrappers.retry import Retry as Retry
from axil_wrappers.timeout import Timeout as Timeout

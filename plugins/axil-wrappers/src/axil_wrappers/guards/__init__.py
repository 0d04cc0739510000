"""Guards: what goes into a node, what comes out of it, and which tools it calls. See
``Guarded``.
"""

from __future__ import annotations

from axil_guards.errors import GuardTripped
from axil_guards.finding import Finding, Guard, Span
from axil_guards.wrapper import Guarded

__all__ = ["Finding", "Guard", "GuardTripped", "Guarded", "Span"]

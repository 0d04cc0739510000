"""Regular expressions within bounds of size and time."""

from axil_patterns.errors import PatternError, PatternFault, PatternLimit
from axil_patterns.patterns import Match, Pattern, compile_pattern

__all__ = [
    "Match",
    "Pattern",
    "PatternError",
    "PatternFault",
    "PatternLimit",
    "compile_pattern",
]

"""Regular expressions and JSON Schemas within bounds of size and time."""

from axil_patterns.errors import PatternError, PatternFault, PatternLimit
from axil_patterns.patterns import Match, Pattern, compile_pattern
from axil_patterns.schemas import BoundedSchema, SchemaFinding

__all__ = [
    "BoundedSchema",
    "Match",
    "Pattern",
    "PatternError",
    "PatternFault",
    "PatternLimit",
    "SchemaFinding",
    "compile_pattern",
]

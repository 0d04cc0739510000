"""Typed state: schemas from models, what their fields accept, and how fields take writes."""

from axil_typed.reducers import (
    APPEND_MESSAGES,
    MAXIMUM,
    MERGE,
    MINIMUM,
    SUM,
    UNION,
    as_reducer,
    reducer,
    register_strategy,
)
from axil_typed.schema import generate_state_schema, schema_of

__all__ = [
    "APPEND_MESSAGES",
    "MAXIMUM",
    "MERGE",
    "MINIMUM",
    "SUM",
    "UNION",
    "as_reducer",
    "generate_state_schema",
    "reducer",
    "register_strategy",
    "schema_of",
]

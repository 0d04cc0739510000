"""One workflow, run once for each row of a table."""

from __future__ import annotations

from axil_batch.batch import Batch, RowResult
from axil_batch.errors import BatchError
from axil_batch.statistics import Statistics
from axil_batch.tables import Row, read_table, write_table

__all__ = [
    "Batch",
    "BatchError",
    "Row",
    "RowResult",
    "Statistics",
    "read_table",
    "write_table",
]

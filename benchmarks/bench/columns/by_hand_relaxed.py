"""A commit of SQLite by hand for each step, which outlives the end of the process."""

from __future__ import annotations

from .by_hand_full import durable_in

TITLE = "SQLite by hand, relaxed"
KIND = "baseline"

durable = durable_in("normal")

"""axil with its SQLite journal, written so that every step outlives the end of the process."""

from __future__ import annotations

from .axil import durable_in, kept_agent_in

TITLE = "axil, relaxed"
KIND = "ours"
PACKAGE = "axil-sqlite"

durable = durable_in("normal")
kept_agent = kept_agent_in("normal")

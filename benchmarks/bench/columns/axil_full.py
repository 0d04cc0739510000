"""axil with its SQLite journal, synced so that every step outlives a power cut."""

from __future__ import annotations

from .axil import durable_in, kept_agent_in

TITLE = "axil, full sync"
KIND = "ours"
PACKAGE = "axil-sqlite"

durable = durable_in("full")
kept_agent = kept_agent_in("full")

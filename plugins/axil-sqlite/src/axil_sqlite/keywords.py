"""Settings of ``axil_sqlite`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from axil_sqlite.store import Sync


class SqliteJournalKeywords(TypedDict, total=False):
    """The settings of ``SqliteJournal``; see ``Settings``."""

    folder: Path | str
    """Where the database lies; made if need be."""

    sync: Sync
    """full: what a run waited for is on the disk, and outlives a power cut. normal: it outlives the
    process; a power cut may take the last moments, in order, never something from among them.
    """

    detail: int
    """Per run, how many superseded rows stay, for looking back; 0: none."""

"""Journals: recorded runs that are resumed, threads of runs, deadlines of questions."""

from axil_journals.journal import Entry, Journal, JournalWriter, MemoryJournal, RunInfo
from axil_journals.recorder import JournalRecorder
from axil_journals.replay import ReplayIndex

__all__ = [
    "Entry",
    "Journal",
    "JournalRecorder",
    "JournalWriter",
    "MemoryJournal",
    "ReplayIndex",
    "RunInfo",
]

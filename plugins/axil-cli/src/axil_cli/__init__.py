"""The ``axil`` command: a front end over the kernel and the installed plugins."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Commands": {
        "arguments": "add_shared_arguments",
        "command": "Command Exit Session equipped problems_of",
        "plain": "as_json table_lines",
        "progress": "Progress",
        "record": "find_run",
        "worker": "Submit Worker add_watched_arguments",
        "wants": "opened_for_many",
        "logs": "log_as_json",
        "probes": "answered_probes",
    },
    "Servers of commands": {
        "connections": "HOST bounded_protocol",
    },
    "Batches": {
        "batch.batch": "Batch RowResult",
        "batch.errors": "BatchError",
        "batch.statistics": "Statistics",
        "batch.tables": "Row read_table write_table",
    },
    "Drafts": {
        "draft.errors": "DraftError",
        "draft.files": "Draft draft_of",
        "draft.record": "DraftRecord",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

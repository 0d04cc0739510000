"""The files, programs and pages of a run: a workspace that nothing leads out of, and tools for
agents to work in it.
"""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Workspaces": {
        "entries": "Entry",
        "workspace": "Limits Workspace",
    },
    "Tools": {
        "code": "Code",
        "files": "Files",
    },
    "Programs": {
        "process": "Bounds run_bounded",
    },
    "Errors": {
        "errors": """
            AddressRefused FetchFault FileFault LimitExceeded NotAllowed NothingThere PathRefused
            ProgramFault TextFault WorkspaceError
        """,
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

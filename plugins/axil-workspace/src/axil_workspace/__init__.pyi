"""Names of ``axil_workspace`` for type checkers; written by ``make manifests``."""

from axil_workspace.code import Code as Code
from axil_workspace.entries import Entry as Entry
from axil_workspace.errors import (
    AddressRefused as AddressRefused,
    FetchFault as FetchFault,
    FileFault as FileFault,
    LimitExceeded as LimitExceeded,
    NotAllowed as NotAllowed,
    NothingThere as NothingThere,
    PathRefused as PathRefused,
    ProgramFault as ProgramFault,
    TextFault as TextFault,
    WorkspaceError as WorkspaceError,
)
from axil_workspace.files import Files as Files
from axil_workspace.process import Bounds as Bounds, run_bounded as run_bounded
from axil_workspace.workspace import Limits as Limits, Workspace as Workspace

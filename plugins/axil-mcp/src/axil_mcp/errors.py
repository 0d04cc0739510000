"""Errors of MCP servers.

AxilError
└── McpFault             a sentence with an id
    ├── Unreachable      the server did not start or answer; says its last words (ConnectionError)
    ├── ListingRefused   what it offers is not what was agreed, or unusable      (ValueError)
    ├── CallFailed       one call failed: the server died, was slow, refused it  (RuntimeError)
    ├── ToolFailed       the tool itself says that it failed                     (RuntimeError)
    └── Unserved         a workflow that is no tool, or a call it cannot take    (ValueError)
"""

from __future__ import annotations

from axil.plugin import ProblemError


class McpFault(ProblemError):
    """One sentence with an id; ``hint`` says what to do next."""


class Unreachable(McpFault, ConnectionError):
    """The server did not start, or did not answer."""


class ListingRefused(McpFault, ValueError):
    """The tools of the server differ from those that were agreed, or cannot be used."""


class CallFailed(McpFault, RuntimeError):
    """One call failed; the next one may not."""


class ToolFailed(McpFault, RuntimeError):
    """The tool says that it failed; what it says is for the model."""

    def __str__(self) -> str:
        return self.message


class Unserved(McpFault, ValueError):
    """A workflow that cannot be a tool, or a call that it cannot take."""

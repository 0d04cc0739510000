"""Errors for missing or wrong parts of a DevAll file.

AxilError
├── SpecError             what a file names and nothing provides, with the place
└── AgentError
    └── StoreError           a memory's file or service cannot be used
"""

from __future__ import annotations

from axil_models import AgentError


class StoreError(AgentError, RuntimeError):
    """A memory's file or service cannot be used."""

"""Errors for missing or wrong parts of a DevAll file.

AxilError
├── SpecError             a file names what nothing provides
└── AgentError
    └── StoreError           a memory's file or service cannot be used
"""

from __future__ import annotations

from axil_models import AgentError


class StoreError(AgentError, RuntimeError):
    """A memory's file or service cannot be used."""

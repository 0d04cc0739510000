"""Errors of agents.

AxilError
└── AgentError           a sentence with an id
    ├── PromptError          a prompt asks for a field that is not there            (KeyError)
    ├── ReplyError           the model's replies could not be used                  (ValueError)
    ├── TurnLimit            the model asked for tools once too often               (RuntimeError)
    ├── ModelError           a model could not answer: status, retry_after_seconds  (RuntimeError)
    ├── ModelContract        the object given as a model, or its reply, is not one  (TypeError)
    ├── PartError            a content part is malformed, too large, or not taken   (ValueError)
    ├── ToolError            what was given as a tool cannot be one                 (ValueError)
    ├── ContextError         a context provider failed; the original is the cause   (RuntimeError)
    ├── ReplayMiss           a recording does not hold the request                  (LookupError)
    └── WiringError          a node does not fit its edges or its settings          (ValueError)

Those of models and of what they are given are from axil-models.
"""

from __future__ import annotations

from axil_models import AgentError


class PromptError(AgentError, KeyError):
    """A prompt asks for a field that is not there."""


class ReplyError(AgentError, ValueError):
    """A model asked again and again without a usable reply; the last fault is the cause."""


class TurnLimit(AgentError, RuntimeError):
    """The model asked for tools more often than it may."""


class ReplayMiss(AgentError, LookupError):
    """A recording does not hold the request; the message shows the nearest one."""


class WiringError(AgentError, ValueError):
    """A node does not fit its edges or its settings."""

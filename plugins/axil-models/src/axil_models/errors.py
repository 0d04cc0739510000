"""Errors of models and of the values they are given.

AxilError
└── AgentError           a sentence with an id
    ├── ModelError           a model could not answer: status, retry_after_seconds  (RuntimeError)
    ├── ModelContract        the object given as a model, or its reply, is not one  (TypeError)
    ├── PartError            a content part is malformed, too large, or not taken   (ValueError)
    ├── ToolError            what was given as a tool cannot be one                 (ValueError)
    └── ContextError         a context provider failed; the original is the cause   (RuntimeError)
"""

from __future__ import annotations

from axil.plugin import ProblemError


class AgentError(ProblemError):
    """One sentence with an id; ``hint`` says what to do next."""


class ModelError(AgentError, RuntimeError):
    """A model could not answer.

    Adapters raise it, so that retries and budgets know what happened.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_seconds: float | None = None,
        transient: bool | None = None,
        hint: str = "",
        where: str = "",
    ) -> None:
        """``transient``: asking again may help; None: as ``status`` says (408, 409, 425, 429 and
        5xx may, others not).
        """
        super().__init__("AX660", message, hint, where)
        self.status, self.retry_after_seconds = status, retry_after_seconds
        self.transient = _may_pass(status) if transient is None else transient


def _may_pass(status: int | None) -> bool:
    return status is not None and (status in (408, 409, 425, 429) or status >= 500)


class ModelContract(AgentError, TypeError):
    """An object given as a model, or a model's reply, breaks the model interface."""


class PartError(AgentError, ValueError):
    """A content part is malformed, too large, out of reach, or of a kind that the model
    does not take.
    """


class ToolError(AgentError, ValueError):
    """An object given as a tool cannot be one."""


class ContextError(AgentError, RuntimeError):
    """A context provider failed; the original is ``__cause__``."""

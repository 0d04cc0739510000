"""AML: graphs as XML."""

from __future__ import annotations

from masfactory.aml.conditions import condition_of
from masfactory.aml.document import AmlError, compile_aml

__all__ = ["AmlError", "compile_aml", "condition_of"]

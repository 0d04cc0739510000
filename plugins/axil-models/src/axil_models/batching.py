"""The present collector of calls of models, without the module that makes it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from axil.driver import STEPS_ELSEWHERE

if TYPE_CHECKING:
    from axil_models.batches import ModelBatches

_BATCHES: ContextVar[ModelBatches | None] = ContextVar("axil_models_batches", default=None)


def current_batches() -> ModelBatches | None:
    """Return what collects calls of models at present; None: they are made at once."""
    return _BATCHES.get()


@contextmanager
def use_batches(batches: ModelBatches) -> Generator[None]:
    """Within the ``with``, and in tasks that begin there, calls of models are collected."""
    token, elsewhere = _BATCHES.set(batches), STEPS_ELSEWHERE.set(batches.refuse_elsewhere)
    try:
        yield
    finally:
        _BATCHES.reset(token)
        STEPS_ELSEWHERE.reset(elsewhere)

"""The run, the firing and the step that ask a model: equal requests differ by them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple


class Asker(NamedTuple):
    """One firing of a node, the step in which it asks, and its run; empty: none is known."""

    activation: str = ""
    step: str = ""
    run: str = ""


_NONE: Final = Asker()
_ASKER: ContextVar[Asker] = ContextVar("axil_models_asker", default=_NONE)


def asker() -> Asker:
    """Return who asks at present."""
    return _ASKER.get()


@contextmanager
def asked_by(ctx: object, step: str) -> Generator[None]:
    """Within the ``with``, the firing of ``ctx`` asks."""
    names = (str(getattr(ctx, "activation", "")), step, str(getattr(ctx, "run_id", "")))
    token = _ASKER.set(Asker(*names))
    try:
        yield
    finally:
        _ASKER.reset(token)

"""The firing and the step that ask a model: recordings tell equal requests apart by them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple


class Asker(NamedTuple):
    """One firing of a node, and the step in which it asks; empty: none is known."""

    activation: str = ""
    step: str = ""


_NONE: Final = Asker()
_ASKER: ContextVar[Asker] = ContextVar("axil_agent_asker", default=_NONE)


def asker() -> Asker:
    """Return who asks at present."""
    return _ASKER.get()


@contextmanager
def asked_by(ctx: Any, step: str) -> Generator[None]:
    """Within the ``with``, the firing of ``ctx`` asks."""
    token = _ASKER.set(Asker(str(getattr(ctx, "activation", "")), step))
    try:
        yield
    finally:
        _ASKER.reset(token)

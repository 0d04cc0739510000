"""Grants in force: what the workflow file may do whose components are being made or run.

A specification that was read from a file carries its grants (``GraphSpec.extras["grants"]``). The
compiler puts them in force while it makes the file's components (``granted``); what is made then
asks for them (``current_grants``). Where none are in force nothing is refused: what Python code
names has the leave of that code. Grants themselves, and what files want, are axil's.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from axil.settings.grants import Grants

_in_force: ContextVar[Grants | None] = ContextVar("axil.grants", default=None)


def current_grants() -> Grants | None:
    """Return the grants of the file whose components are being made or run; None: Python code's,
    which is not confined.
    """
    return _in_force.get()


@contextmanager
def granted(grants: Grants | None) -> Generator[None]:
    """Put grants in force."""
    token = _in_force.set(grants)
    try:
        yield
    finally:
        _in_force.reset(token)

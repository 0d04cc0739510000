"""Grants in force: what the workflow file may do whose components are being made or run.

A specification that was read from a file carries its grants (``GraphSpec.extras["grants"]``). The
compiler puts them in force while it makes the file's components (``granted``); what is made then
asks for them (``current_grants``). Where none are in force nothing is refused: what Python code
names has the leave of that code. Grants themselves are axil-config's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from axil_config.grants import Grants

_WIDER: Final = {
    "net": ("network",),
    "import": ("code",),
    "program": ("code",),
    "mcp": ("code",),
}
"""Words that grant the whole of a kind, beside the kind itself."""


def is_granted(words: Collection[str], what: str) -> bool:
    """Return whether ``what`` is among the granted words, itself or by a wider one.

    >>> given = {"env:API_KEY", "network"}
    >>> [is_granted(given, what) for what in ("env:API_KEY", "env:HOME", "net:example.org")]
    [True, False, True]
    """
    kind, _, name = what.partition(":")
    if what in words or kind in words:
        return True
    return bool(name or kind in ("mcp", "program", "import")) and any(
        wider in words for wider in _WIDER.get(kind, ())
    )


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


def one_line(text: str) -> str:
    """Return a text of a file as messages show it: on one line, of at most 400 characters.

    >>> one_line("a\\nb")
    'a?b'
    """
    return re.sub(r"[^\x20-\x7e\u00a0-\ud7ff\ue000-\uffff]", "?", text)[:400]

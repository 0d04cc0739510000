"""The signatures of callables, also where annotations name what only type checkers know.

Since Python 3.14 annotations are computed when they are asked for, and ``inspect.signature`` asks.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable


def signature_of(call: Callable[..., object]) -> inspect.Signature:
    """Return the signature of a callable; what its annotations name need not exist.

    >>> [*signature_of(lambda ctx, *, name="": None).parameters]
    ['ctx', 'name']

    Raises: TypeError, ValueError: it has none, as some that are written in C.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(call, annotation_format=Format.FORWARDREF)
    return inspect.signature(call)

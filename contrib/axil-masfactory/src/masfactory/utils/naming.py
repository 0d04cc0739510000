"""Names of nodes."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9_-]+")


def is_valid_name(name: object) -> bool:
    """Say whether a text can be a name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def validate_name(name: object, *, kind: str = "name") -> str:
    """Give the name. Raises: ValueError: it cannot be one."""
    if not isinstance(name, str) or not is_valid_name(name):
        raise ValueError(
            f"{kind}: found {name!r}, expected letters, digits, - and _. Choose another name."
        )
    return name

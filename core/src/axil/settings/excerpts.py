"""Values as messages show them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from axil.errors import with_article


def format_value(value: object) -> str:
    """``value`` as messages show it: short, and never what the environment holds or containers
    contain.

    >>> format_value("2m"), format_value(True), format_value([1]), format_value({})
    ('"2m"', 'true', 'a list', 'a mapping')
    """
    from axil.spec.graph import FromEnvironment  # all of specs, which few commands need

    if isinstance(value, FromEnvironment):
        return value.template
    if value is None:
        return "nothing"
    if isinstance(value, (str, bool, int, float)):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= 60 else text[:57] + '…"'
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) else f"{with_article(type(value).__name__)}"

"""n8n's expressions as paths and texts of axil. What is JavaScript is not run, and said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from axil_importers.draft import Step, literal

Resolve = Callable[[str, str], str]
"""From the name of a node (empty: the one before) and a path inside it to the path of a field."""

_NODE: Final = r"""(?:\$\(\s*["'](?P<node>[^"']+)["']\s*\)|\$node\[["'](?P<old>[^"']+)["']\])"""
_PATH: Final = re.compile(
    r"(?:\$json|\$input(?:\.item|\.first\(\)|\.last\(\))?\.json"
    + "|"
    + _NODE
    + r"(?:\.item|\.first\(\)|\.last\(\)|\.all\(\)\[0\])?\.json)"
    + r"""(?P<rest>(?:\??\.[A-Za-z_]\w*(?!\w*\()|\??\.?\[["'][^"'\]]+["']\]|\[\d+\])*)"""
)
_STEP: Final = re.compile(r"""\.([A-Za-z_]\w*)|\[["']([^"'\]]+)["']\]|\[(\d+)\]""")
_PLACE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def is_expression(given: Any) -> bool:
    """Return whether a parameter is an expression."""
    return isinstance(given, str) and given.startswith("=")


def text_of(given: Any, resolve: Resolve, step: Step) -> str:
    """Return a parameter as a text with places."""
    if not isinstance(given, str):
        return literal("" if given is None else json.dumps(given, ensure_ascii=False))
    if not is_expression(given):
        return literal(given)
    parts: list[str] = []
    end = 1
    for place in _PLACE.finditer(given, 1):
        path = path_of(place[1], resolve, step)
        parts += [literal(given[end : place.start()]), "{" + path + "}" if path else ""]
        end = place.end()
    return "".join(parts) + literal(given[end:])


def value_of(given: Any, resolve: Resolve, step: Step) -> Any:
    """Return a parameter as a value of ``assign``."""
    if is_expression(given):
        whole = _PLACE.fullmatch(given[1:].strip())
        if whole and "{{" not in whole[1]:
            path = path_of(whole[1], resolve, step)
            return {"path": path} if path else {"value": ""}
    if isinstance(given, str):
        return text_of(given, resolve, step)
    if isinstance(given, Mapping):
        inner = cast("Mapping[str, Any]", given)
        return {"object": {k: value_of(v, resolve, step) for k, v in inner.items()}}
    return {"value": given}


def path_of(text: str, resolve: Resolve, step: Step) -> str:
    """Return the path of a field, if the JavaScript is one, or begins with one; else nothing."""
    found = _PATH.search(text)
    if found is None:
        step.approximate(
            f"JavaScript in an expression is left out: {_short(text)}",
            "Make the value with a script or an assign.",
        )
        return ""
    if found[0] != text.strip():
        step.approximate(
            f"of the JavaScript {_short(text)} only {found[0]} is taken",
            "Make the value with a script or an assign.",
        )
    keys = [next(key for key in each if key) for each in _STEP.findall(found["rest"])]
    return resolve(found["node"] or found["old"] or "", ".".join(keys))


def nodes_in(code: str) -> list[str]:
    """Return the names of the nodes that a program reads."""
    return list(dict.fromkeys(m["node"] or m["old"] for m in re.finditer(_NODE, code)))


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 60 else f"{plain[:57]}..."

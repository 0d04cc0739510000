"""Digests of graphs: a stable hash of all that a file could say."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from axil.errors import Problem, SpecError
from axil.spec.graph import SURROUNDINGS, FromEnvironment, GraphSpec, Place


def digest_of(spec: GraphSpec) -> str:
    """See ``GraphSpec.digest``. Graphs inside it count by their own digests; depth costs no
    recursion.
    """
    order: list[tuple[GraphSpec, int]] = []
    stack = [(spec, 0)]
    while stack:
        outer, body = stack.pop()
        order.append((outer, body))
        stack.extend(
            (node.body.to_spec(), id(node.body))
            for node in outer.nodes
            if hasattr(node.body, "to_spec")
        )

    digest, inner = "", dict[int, str]()
    for outer, body in reversed(order):
        own = replace(
            outer, extras={k: v for k, v in outer.extras.items() if k not in SURROUNDINGS}
        )
        text = json.dumps(_plain(own, 0, inner), sort_keys=True, separators=(",", ":"))
        digest = inner[body] = hashlib.sha256(text.encode()).hexdigest()
    return digest


_MOVED = {
    "axil.compiler.formatted": "axil.builder.graph",
    "axil.compiler.nodes": "axil.nodes",
    "axil.kernel.state": "axil.fields",
    "axil.settings.secrets": "axil.registry.config",
    "axil.typed.checks": "axil.typed",
    "axil.typed.reducers": "axil.reducers",
    "axil.typed.schema": "axil.schema",
    "axil.typed.views": "axil.contract.views",
}
"""Module or package of axil → its earlier name, in digests of recorded runs; ``module:Class`` for a
renamed class. Another package may have such a table, too.
"""
_TOO_DEEP = 200
_EARLIER_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "GraphSpec": {"flow": "carried"},
    "Limits": {"estimate": {"characters_per_token": 4.0, "output_tokens": 1000}},
}
"""Earlier default values of fields, in digests of recorded runs."""
_UNCOUNTED = ("place", "made", "migrations", "meet")
"""Fields that are no part of a graph's content, or later than the first recorded runs."""


def _plain(value: object, depth: int, inner: Mapping[int, str]) -> Any:
    if depth > _TOO_DEEP:
        message = f"nested deeper than {_TOO_DEEP} levels."
        raise SpecError(Problem("AX110", "", message, "Flatten the configuration."))
    if isinstance(value, FromEnvironment):
        return value.template
    if id(value) in inner:
        return inner[id(value)]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, Place):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        names = [
            f.name
            for f in fields(value)
            if f.name not in _UNCOUNTED
            # later than the first recorded runs, and not set
            and not ("later" in f.metadata and getattr(value, f.name) == f.default)
        ]
        plain: dict[str, Any] = {
            name: _plain(getattr(value, name), depth + 1, inner) for name in names
        }
        if plain.get("state_version") == 1:
            del plain["state_version"]  # as if it had not been set
        for name, stated in _EARLIER_DEFAULTS.get(type(value).__name__, {}).items():
            plain[name] = stated if plain.get(name) is None else plain[name]
        return plain
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        items = [[str(k), _plain(v, depth + 1, inner)] for k, v in pairs]
        return sorted(items, key=lambda item: item[0])
    if isinstance(value, (list, tuple)):
        return [_plain(v, depth + 1, inner) for v in cast("Sequence[Any]", value)]
    kind: Any = value if isinstance(value, type) or callable(value) else type(value)
    module: str = getattr(kind, "__module__", "") or ""
    return _recorded_name(module, getattr(kind, "__qualname__", type(kind).__qualname__))


def _recorded_name(module: str, qualname: str) -> str:
    """Return ``module:qualname`` as runs were first recorded."""
    top = module.partition(".")[0]
    moved = _MOVED if top == "axil" else getattr(sys.modules.get(top), "_MOVED", {})
    if (whole := f"{module}:{qualname}") in moved:
        return moved[whole]
    package, inside = module, ""
    while package:
        if package in moved:
            return f"{moved[package]}{inside}:{qualname}"
        package, dot, last = package.rpartition(".")
        inside = f"{dot}{last}{inside}"
    return whole

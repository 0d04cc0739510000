"""Conditions and processors that a component's config names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from axil.plugin import EdgeInput, edge_function

if TYPE_CHECKING:
    from axil.plugin import CompileOptions


def component(
    kind: str,
    name: str,
    config: Mapping[str, object] | None = None,
    *,
    where: str = "",
    setting: CompileOptions | None = None,
) -> object:
    """Return a registered component, configured.

    Raises: UnknownComponent, ComponentBlocked, PluginLoadError, ConfigError.
    """
    from axil.plugin import CompileOptions, make_component

    found = (setting or CompileOptions()).resolve(kind, name, where)
    if is_plain(found):
        return found
    return make_component(found, config or {}, where)


def is_plain(found: object) -> bool:
    """Return whether a component is a plain function of the text."""
    return callable(found) and not isinstance(found, type) and not hasattr(type(found), "Config")


def as_condition(found: Any) -> Callable[[EdgeInput], bool]:
    """Return a condition, or a plain ``function(text[, state]) -> bool``, as a condition."""
    if not is_plain(found):
        return found
    ask = edge_function(found)
    return lambda seen: bool(ask(seen))


def as_processor(found: Any) -> Callable[[EdgeInput], Any]:
    """Return a processor, or a plain ``function(text[, state])``, as a processor."""
    return edge_function(found) if is_plain(found) else found

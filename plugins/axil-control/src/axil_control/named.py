"""Components that a component's config names: conditions and processors, found where every
component is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from axil import MISSING
from axil.plugin import EdgeInput, StateView, parameters_of

if TYPE_CHECKING:
    from axil.plugin import CompileOptions


def component(
    kind: str,
    name: str,
    config: Mapping[str, Any] | None = None,
    *,
    where: str = "",
    setting: CompileOptions | None = None,
) -> Any:
    """Return the component that ``kind`` and ``name`` lead to, configured.

    Policy holds: nothing but registered names is found.

    Raises: UnknownComponent, ComponentBlocked, PluginLoadError, ConfigError.
    """
    from axil.plugin import CompileOptions, make_component

    found = (setting or CompileOptions()).resolve(kind, name, where)
    if is_plain(found):
        return found
    return make_component(found, config or {}, where)


def is_plain(found: Any) -> bool:
    """Return whether a component is a plain function of the text, as DevAll's are."""
    return callable(found) and not isinstance(found, type) and not hasattr(type(found), "Config")


def as_condition(found: Any) -> Callable[[EdgeInput], bool]:
    """Return a condition, or a plain ``function(text[, state]) -> bool``, as a condition."""
    if not is_plain(found):
        return found
    second = [*parameters_of(found).items()][1:2]
    if any(required or name == "_context" for name, required in second):
        return lambda seen: bool(found(seen.text, StateView(seen.state)))
    return lambda seen: bool(found(seen.text))


def as_processor(found: Any) -> Callable[[EdgeInput], Any]:
    """Return a processor, or a plain ``function(text[, state])``, as a processor.

    A plain function may also give ``{"content": …, "metadata": …, "drop": …}``.
    """
    if not is_plain(found):
        return found
    wants_state = len(parameters_of(found)) > 1

    def process(seen: EdgeInput) -> Any:
        new = found(seen.text, dict(seen.state)) if wants_state else found(seen.text)
        if not isinstance(new, Mapping) or not {"content", "metadata", "drop"} & set(
            cast("Mapping[str, Any]", new)
        ):
            return cast("Any", new)
        data = cast("Mapping[str, Any]", new)
        if data.get("drop"):
            return None
        before: Mapping[str, Any] = (
            cast("Any", seen).payload if isinstance(seen.payload, Mapping) else {}
        )
        content = data.get("content", MISSING)
        metadata: Mapping[str, Any] = data.get("metadata") or {}
        return {**before, **metadata, "content": seen.text if content is MISSING else content}

    return process

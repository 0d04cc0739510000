"""Formatters on edges of graphs in Python. Digests of recorded graphs name the functions that are
processors (``axil.spec.digests``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axil.compiler.planner import CompileOptions
from axil.contract.messages import text_of
from axil.errors import MissingKeys, format_names
from axil.registry.components import make_component


def on_edge(
    given: object, keys: Sequence[str] | None, setting: CompileOptions, where: str
) -> Callable[[Any], object]:
    """Return the processor of an edge with a formatter.

    Args:
        given: the formatter, its class, or the name of an installed one.
        keys: the fields that it reads from the message; None: it writes the message.
        where: the place of the graph, for messages.
    """
    if isinstance(given, str):
        given = make_component(setting.resolve("formatters", given, where), {}, where)
    elif isinstance(given, type):
        given = given()
    return _formatted(given) if keys is None else _parsed(given, keys)


def _formatted(formatter: Any) -> Any:
    if not hasattr(formatter, "dump"):
        return formatter

    def dump(payload: Any) -> dict[str, object]:
        return {"message": formatter.dump(payload)}

    return dump


def _parsed(formatter: Any, keys: Sequence[str]) -> Any:
    parse = getattr(formatter, "parse", None)

    def read(payload: Any) -> dict[str, Any]:
        text = text_of(payload)
        found = dict(parse(text, keys) if parse is not None else formatter.format(text))
        missing = [key for key in keys if key not in found]
        if missing:
            raise MissingKeys(
                f"the parser found no {format_names(missing)} in {text!r:.80}; "
                f"it found {format_names(sorted(found)) or 'no fields'}.",
                hint="Ask for the fields where the text is written.",
            )
        return {key: found[key] for key in keys} if keys else found

    return read

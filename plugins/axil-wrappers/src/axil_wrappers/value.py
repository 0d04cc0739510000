"""A value that a node gives without having worked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil import Out, Problem, SpecError
from axil.plugin import NodeInfo, Task, is_messages, isolate, result_reader


class Value:
    """A user's statement of a node's result: fields, messages or a text, written and pushed as if
    the node had given it.
    """

    def __init__(self, value: Any, node: NodeInfo) -> None:
        """Raises: SpecError (AX830): a node of this graph cannot give such a value."""
        if node.rules.payload == "messages":
            fits = value is None or isinstance(value, (str, Mapping)) or is_messages(value)
        else:
            fits = isinstance(value, Mapping)
        if isinstance(value, str) and node.rules.payload == "fields":
            value, fits = {"message": value}, True
        if not fits:
            expected = (
                "fields, messages or a text"
                if node.rules.payload == "messages"
                else "a mapping of fields"
            )
            raise SpecError(
                Problem(
                    "AX830",
                    node.where,
                    f"{value!r:.60} cannot be a node's output; expected {expected}.",
                )
            )
        self._value: Any = value
        self._read = result_reader(node.rules)

    def __call__(self, task: Task) -> Out:
        return self._read(isolate(self._value), task, None, None)

"""A value that stands for a node's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil import Out, Problem, SpecError
from axil.plugin import NodeInfo, Task, is_messages, isolate, result_reader


class Value:
    """A value given in place of a node's result: fields, messages or a text."""

    def __init__(self, value: Any, node: NodeInfo) -> None:
        """Raises: SpecError (AX830): a node of this graph cannot give such a value."""
        if isinstance(value, str) and node.rules.payload == "fields":
            value = {"message": value}
        fits, expected = isinstance(value, Mapping), "a mapping of fields"
        if node.rules.payload == "messages":
            fits = fits or value is None or isinstance(value, str) or is_messages(value)
            expected = "fields, messages or a text"
        if not fits:
            message = f"{value!r:.60} cannot be a node's output; expected {expected}."
            raise SpecError(Problem("AX830", node.where, message))
        self._value: Any = value
        self._read = result_reader(node.rules)

    def __call__(self, task: Task) -> Out:
        return self._read(isolate(self._value), task, None, None)

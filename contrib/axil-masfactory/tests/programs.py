"""Programs in MASFactory's vocabulary, by name, and what they have in common.

Each gives what came of it, as plain data; ``programs.json`` holds what MASFactory gives.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from masfactory import Model, RootGraph
from masfactory.adapters.model import ModelResponseType

PROGRAMS: dict[str, Callable[[], Any]] = {}
TITLES = ("MESSAGE TO YOU", "RESPONSE FORMAT", "REQUIRED OUTPUT", "CONTEXT", "role_name")


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    """Enter a program into the table."""
    PROGRAMS[function.__name__] = function
    return function


class Says(Model):
    """Says one reply after the other, the last one for ever, and keeps what it was asked."""

    def __init__(self, *replies: Any) -> None:
        super().__init__("says")
        self.replies, self.asked, self.settings = list(replies), [], []

    def invoke(self, messages: Any, tools: Any = None, settings: Any = None, **more: Any) -> Any:
        self.asked.append([dict(each) for each in messages])
        self.settings.append(settings)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, list):
            return {"type": ModelResponseType.TOOL_CALL, "content": reply}
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return {"type": ModelResponseType.CONTENT, "content": text}


def single(kind: Any, into: Any, out: Any, name: str = "node", **settings: Any) -> RootGraph:
    """Give a built graph around one node."""
    graph = RootGraph("g")
    node = graph.create_node(kind, name=name, **settings)
    graph.edge_from_entry(node, dict.fromkeys(into, ""))
    graph.edge_to_exit(node, dict.fromkeys(out, ""))
    graph.build()
    return graph


def ran(graph: RootGraph, *inputs: dict[str, Any]) -> list[Any]:
    """Give output and attributes of each invoke."""
    return [json.loads(json.dumps(graph.invoke(each), default=str)) for each in inputs]


def order(prompt: str) -> list[str]:
    """Give the titles of a prompt in their order."""
    found = [(prompt.find(title), title) for title in TITLES]
    return [title for place, title in sorted(found) if place >= 0]


def add(amount: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Give a function that adds to ``n``."""
    return lambda message: {"n": message["n"] + amount}


def giving(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Give a function that gives fields."""
    return lambda message: dict(fields)


def saying(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Give a function that gives a list of a name."""
    return lambda message: {"say": [name]}


def noting(name: str, field: str = "text") -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Give a function that puts a name behind a text."""
    return lambda message: {field: f"{message[field]}{name}"}

"""``devall.subgraph``: a graph inside a node that gets and gives an empty message in place of none,
as in DevAll, so that what follows is triggered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from axil.plugin import Body, NodeInfo, message


class Subgraphs:
    """``devall.subgraph``: an empty message in place of none, on the way in and on the way out."""

    class Config(BaseModel, extra="forbid", frozen=True):
        """``devall.subgraph`` has no settings."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Return a graph whose payloads are never none; a body that is no graph as it is."""
        inner: Any = body
        if inner.mode != "scope":
            return body
        graph = replace(inner.plan.graph, payloads=_Answering(inner.plan.graph.payloads))
        return type(inner)(replace(inner.plan, graph=graph), inner.pull, inner.push)


class _Answering:
    """Messages, and an empty one where there are none."""

    def __init__(self, kind: Any) -> None:
        self._kind, self.by_level = kind, kind.by_level

    def gather(self, tokens: Sequence[Any]) -> Any:
        return self._kind.gather(tokens) or [message("")]

    def output(self, left: Sequence[Any], end: Sequence[str], fired: bool) -> Any:
        return self._kind.output(left, end, fired) or [message("", "assistant")]

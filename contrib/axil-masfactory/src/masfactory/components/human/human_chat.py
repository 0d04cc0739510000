"""``HumanChat``: a person answers."""

from __future__ import annotations

from typing import Any

from axil_agent import HumanNode
from masfactory.core.node import Node


class HumanChat(Node):
    """A person gives each field that the out-edges carry or that is pushed.

    ``RootGraph.invoke`` asks on the console; runs of ``RootGraph.axil`` ask the channel that they
    are given, or pause.
    """

    keeps_attributes = False

    def component(self) -> Any:
        return HumanNode()

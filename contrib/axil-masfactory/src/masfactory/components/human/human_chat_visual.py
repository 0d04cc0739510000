"""``HumanChatVisual``: a person answers, on the console."""

from __future__ import annotations

from typing import Any

from masfactory.components.human.human_chat import HumanChat


class HumanChatVisual(HumanChat):
    """``HumanChat``: there is no editor to ask in, which is what MASFactory does without one."""

    def __init__(self, name: str, *args: Any, connect_timeout_s: float = 2.0, **settings: Any):
        super().__init__(name, *args, **settings)
        self.connect_timeout_s = connect_timeout_s

"""``LogicSwitch``: a switch of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from masfactory.components.controls.base_switch import BaseSwitch
from masfactory.core.node import count_of


class LogicSwitch(BaseSwitch[Callable[..., Any]]):
    """A switch whose conditions are functions ``(message, attributes) -> bool``."""

    def _evaluate_condition(self, condition: Callable[..., Any], message: dict[str, Any]) -> bool:
        count = count_of(condition, 2, f'switch "{self.name}"', "message, attributes")
        return bool(condition(*(message, self.attributes)[:count]))

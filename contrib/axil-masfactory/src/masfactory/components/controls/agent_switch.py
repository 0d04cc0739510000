"""``AgentSwitch``: a switch of sentences, which a model judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import axil_agent
from masfactory.adapters.model.chosen import askable
from masfactory.components.controls.base_switch import BaseSwitch, receiver_name
from masfactory.core.node import Keys


class AgentSwitch(BaseSwitch[str]):
    """A switch whose conditions are sentences; a model is asked about each."""

    keeps_attributes = False

    def __init__(
        self,
        name: str,
        model: Any,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        routes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, pull_keys, push_keys, attributes, routes)
        self.model = model

    def component(self) -> Any:
        switch = axil_agent.AgentSwitch(askable(self.model))
        conditions = self.conditions()
        for edge in self.out_edges:
            name = receiver_name(edge)
            if name in conditions:
                switch.condition_binding(conditions[name], _Spoken(switch, name))
        return switch


class _Spoken:
    """An edge as axil's switch takes it: where it begins, and the name of where it leads."""

    def __init__(self, sender: Any, receiver: str) -> None:
        self.sender, self.receiver = sender, receiver

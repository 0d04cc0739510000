"""``Edge``: a connection of two nodes and the fields that it carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from masfactory.core.gate import Gate
from masfactory.core.multimodal import FieldModality, FieldSpec, field_specs, modality_of
from masfactory.errors import Unsupported
from masfactory.utils.hook import HookManager
from masfactory.utils.selector import Selector, build_selector

if TYPE_CHECKING:
    from masfactory.core.node import Node


class Edge:
    """A connection of two nodes; ``keys`` are the fields that it carries, with descriptions."""

    class Hook:
        """Keys of the hooks of an edge, which get ``(sender, receiver, message)``."""

        SEND_MESSAGE = "send_message"
        RECEIVE_MESSAGE = "receive_message"

    def __init__(self, sender: Node, receiver: Node, keys: Mapping[str, Any] | None = None) -> None:
        """Without ``keys`` it carries ``message``; with ``{}`` nothing."""
        self.sender, self.receiver = sender, receiver
        self.keys: dict[str, Any] = {"message": ""} if keys is None else dict(keys)
        self.field_specs: dict[str, FieldSpec] = field_specs(self.keys)
        self.hooks = HookManager()

    @property
    def gate(self) -> Gate:
        """``Gate.OPEN``: axil knows of each run for itself which edges carry nothing."""
        return Gate.OPEN

    def reset(self) -> None:
        """Do nothing: each run of axil begins with empty edges."""

    reset_gate = open = reset

    def close(self) -> None:
        """Raise ``Unsupported``."""
        raise Unsupported("Edge.close", "Put a LogicSwitch before the edge.")

    @property
    def is_congested(self) -> bool:
        """Raise ``Unsupported``."""
        raise Unsupported("Edge.is_congested", "graph.axil.stream tells what nodes are given.")

    def send_message(self, message: dict[str, Any]) -> None:
        """Raise ``Unsupported``."""
        raise Unsupported("Edge.send_message", "Return the message from the node before the edge.")

    def receive_message(self) -> dict[str, Any]:
        """Raise ``Unsupported``."""
        raise Unsupported("Edge.receive_message", "The node behind the edge is given the message.")

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.sender.name}->{self.receiver.name}"

    def hook_register(
        self,
        hook_key: Any,
        func: Callable[..., Any],
        recursion: bool = False,
        target_type: Any = None,
        target_names: Any = None,
        target_filter: Callable[[Any], bool] | None = None,
        selector: Selector | None = None,
    ) -> None:
        """Add a hook, if the edge is chosen."""
        chosen = build_selector(selector, type_filter=target_type, name_filter=target_names)
        if chosen.match(self) and (target_filter is None or target_filter(self)):
            self.hooks.register(hook_key, func)
            self.sender.changed()

    def carried(self) -> Callable[[Any], Any] | None:
        """Give what is done with each message: hooks, and modalities that are checked.

        None: nothing.
        """
        hooks, kinds = self.hooks, (FieldModality.IMAGE, FieldModality.PDF)
        checked = [spec for spec in self.field_specs.values() if spec.modality in kinds]
        if not checked and not hooks.has_any(self.Hook.SEND_MESSAGE, self.Hook.RECEIVE_MESSAGE):
            return None

        def carry(payload: Any) -> Any:
            for spec in checked:
                value = payload.get(spec.name)
                several = cast("list[Any]", value) if isinstance(value, list) else [value]
                for each in several:
                    found = modality_of(each)
                    if found is not spec.modality:
                        raise ValueError(
                            f'edge {self.name}: the field "{spec.name}" holds {found.value}, '
                            f"expected {spec.modality.value}. Send an ImageAsset or a PdfAsset."
                        )
            message = dict(payload)
            hooks.dispatch(self.Hook.SEND_MESSAGE, self.sender, self.receiver, message)
            hooks.dispatch(self.Hook.RECEIVE_MESSAGE, self.sender, self.receiver, message)
            return message

        return carry

    def __repr__(self) -> str:
        return f"<Edge {self.name}: {', '.join(self.keys) or 'no fields'}>"

"""``Node``: what graphs are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from axil import CustomNode
from masfactory.core.multimodal import FieldSpec, descriptions, field_specs
from masfactory.utils.hook import HookManager, HookStage, masf_hook
from masfactory.utils.naming import validate_name
from masfactory.utils.selector import Selector, build_selector

if TYPE_CHECKING:
    from masfactory.core.edge import Edge

Keys = Mapping[str, Any]

_seen: ContextVar[dict[int, Any]] = ContextVar("masfactory_attributes")
"""The attributes of the firings that are under way here, by the identity of their nodes."""


class Node:
    """A node of a graph: subclasses say in ``_forward`` what it does.

    Outside a run ``attributes`` are its own; while it works, they are those that it sees, and what
    it sets of them is written.
    """

    class Hook:
        """Stages of a node's work."""

        EXECUTE = HookStage("execute")
        FORWARD = HookStage("forward")
        BUILD = HookStage("build")
        MESSAGE_AGGREGATE_IN = HookStage("message_aggregate_in")
        MESSAGE_DISPATCH_OUT = HookStage("message_dispatch_out")

    root_only = False

    def __init__(
        self,
        name: str,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """``pull_keys``, ``push_keys``: attributes that it sees and writes; None: as axil has it.

        Raises: ValueError: the name cannot be one.
        """
        self.name = validate_name(name, kind=f"the name of a {type(self).__name__}")
        self.owner: Any = None
        self.in_edges: list[Edge] = []
        self.out_edges: list[Edge] = []
        self._pull_keys = None if pull_keys is None else dict(pull_keys)
        self._push_keys = None if push_keys is None else dict(push_keys)
        self._attributes: dict[str, Any] = dict(attributes or {})
        self._first_attributes = dict(self._attributes)
        self._hooks = HookManager()
        self._is_built = False

    # -- what it is

    @property
    def pull_keys(self) -> dict[str, Any] | None:
        """Attributes that it sees."""
        return self._pull_keys

    @property
    def push_keys(self) -> dict[str, Any] | None:
        """Attributes that it writes."""
        return self._push_keys

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes: while it works, those that it sees."""
        return _seen.get({}).get(id(self), self._attributes)

    @property
    def _attributes_store(self) -> dict[str, Any]:
        """The attributes, by the name that subclasses know."""
        return self.attributes

    @property
    def hooks(self) -> HookManager:
        """Its hooks."""
        return self._hooks

    @property
    def input_keys(self) -> dict[str, Any]:
        """Fields that its in-edges carry."""
        return {name: reported for edge in self.in_edges for name, reported in edge.keys.items()}

    @property
    def output_keys(self) -> dict[str, Any]:
        """Fields that its out-edges carry."""
        return {name: reported for edge in self.out_edges for name, reported in edge.keys.items()}

    @property
    def input_field_specs(self) -> dict[str, FieldSpec]:
        """The descriptions of its in-edges' fields."""
        return field_specs(self.input_keys)

    @property
    def output_field_specs(self) -> dict[str, FieldSpec]:
        """The descriptions of its out-edges' fields."""
        return field_specs(self.output_keys)

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the graphs around it, and its own."""
        return (*(self.owner.path if self.owner is not None else ()), self.name)

    def set_pull_keys(self, pull_keys: Keys | None) -> None:
        """Change which attributes it sees."""
        self._pull_keys = None if pull_keys is None else dict(pull_keys)
        self.changed()

    def set_push_keys(self, push_keys: Keys | None) -> None:
        """Change which attributes it writes."""
        self._push_keys = None if push_keys is None else dict(push_keys)
        self.changed()

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes of its own."""
        self._attributes.update(attributes)
        self.changed()

    def reset_attributes(self) -> None:
        """Go back to the attributes that it was made with."""
        self._attributes = dict(self._first_attributes)
        self.changed()

    def reset(self) -> None:
        """Go back to how it was made."""
        self.reset_attributes()

    def changed(self) -> None:
        """Say that the graph around it has to be put together again."""
        if self.owner is not None:
            self.owner.changed()

    # -- what it does

    def _forward(self, input: dict[str, Any]) -> Any:  # MASFactory's name
        """Give the output fields for the input fields."""
        return input

    @masf_hook(Hook.BUILD)
    def build(self) -> None:
        """Get ready."""
        self._is_built = True

    def check_built(self) -> None:
        """Raise a RuntimeError unless it is built."""
        if not self._is_built:
            raise RuntimeError(f'"{self.name}" is not built yet. Call build() first.')

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
        """Add a hook, if the node is chosen."""
        chosen = build_selector(selector, type_filter=target_type, name_filter=target_names)
        if chosen.match(self) and (target_filter is None or target_filter(self)):
            self._hooks.register(hook_key, func)
            self.changed()

    # -- for axil

    def calls_its_own(self, stage: str) -> bool:
        """Say whether its ``_forward`` is made to call the hooks of a stage."""
        return getattr(self._forward, "stage", "") == stage

    @property
    def pulled(self) -> dict[str, str] | None:
        """``pull_keys`` as axil takes them."""
        return descriptions(self._pull_keys)

    @property
    def pushed(self) -> dict[str, str] | None:
        """``push_keys`` as axil takes them."""
        return descriptions(self._push_keys)

    def component(self) -> Any:
        """Give the component of axil that works in its place."""
        return CustomNode(forward=self.body(self._forward))

    def body(self, function: Callable[..., Any], *more: Any) -> Callable[..., Any]:
        """Give ``function`` as a body of axil: called with the input and ``more``."""
        if inspect.iscoroutinefunction(function):

            async def waiting(inputs: Any, attributes: Any) -> Any:
                with self.seeing(attributes):
                    return self.checked(await function(inputs, *_given(more, attributes)))

            return waiting

        def working(inputs: Any, attributes: Any) -> Any:
            with self.seeing(attributes):
                return self.checked(function(inputs, *_given(more, attributes)))

        return working

    def checked(self, result: Any) -> dict[str, Any]:
        """Give a result of ``_forward``. Raises: TypeError: it is no mapping."""
        if not isinstance(result, Mapping):
            raise TypeError(
                f'node "{self.name}": the function gave a {type(result).__name__}, expected a '
                "dict. Return fields."
            )
        return dict(cast("Mapping[str, Any]", result))

    @contextmanager
    def seeing(self, attributes: Any) -> Generator[None]:
        """Take ``attributes`` for its own within."""
        token = _seen.set({**_seen.get({}), id(self): attributes})
        try:
            yield
        finally:
            _seen.reset(token)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


ATTRIBUTES: Any = object()
"""Stands for the attributes among what a body is called with."""


def _given(more: tuple[Any, ...], attributes: Any) -> list[Any]:
    return [attributes if each is ATTRIBUTES else each for each in more]


def count_of(function: Callable[..., Any], most: int, what: str, roles: str) -> int:
    """Count the parameters of a function that is called by position, those with defaults included.

    Raises: ValueError: none, or more than ``most``.
    """
    parameters = inspect.signature(function).parameters.values()
    count = sum(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters)
    if not 1 <= count <= most:
        raise ValueError(
            f"{what}: the function takes {count} arguments, expected 1 to {most}: {roles}. "
            "Take the first of them."
        )
    return count

"""``Node``: what graphs are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from axil import CustomNode
from axil.plugin import signature_of
from masfactory.core.gate import Gate
from masfactory.core.multimodal import FieldSpec, descriptions, field_specs
from masfactory.core.store import opened
from masfactory.errors import Unsupported
from masfactory.utils.hook import HookManager, HookStage, masf_hook
from masfactory.utils.naming import validate_name
from masfactory.utils.selector import Selector, build_selector

if TYPE_CHECKING:
    from masfactory.core.edge import Edge

Keys = Mapping[str, Any]

_seen: ContextVar[dict[int, Any]] = ContextVar("masfactory_attributes")
"""The attributes of the firings that are under way here, by the identity of their nodes."""

_inner: ContextVar[dict[int, Callable[[dict[str, Any]], dict[str, Any]]]] = ContextVar(
    "masfactory_inner"
)
"""The functions that run the inside of graphs under way here, by the identity of the graphs."""


@contextmanager
def inside(node: Node, run: Callable[[dict[str, Any]], dict[str, Any]]) -> Generator[None]:
    """Let ``_forward`` of a graph run what is inside by ``run``, within."""
    token = _inner.set({**_inner.get({}), id(node): run})
    try:
        yield
    finally:
        _inner.reset(token)


def inner_of(node: Node) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """Give what runs the inside of a graph that is under way here; None: it is not."""
    return _inner.get({}).get(id(node))


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
    keeps_attributes = True
    """True if its attributes stay in the object; False if axil keeps them for each run."""
    is_around_a_graph = False
    """True if ``_forward`` of a graph's subclass is called around the run of what is inside."""

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
        self._name = validate_name(name, kind=f"the name of a {type(self).__name__}")
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
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def gate(self) -> Gate:
        """``Gate.OPEN``: axil knows of each run for itself which nodes are skipped."""
        return Gate.OPEN

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

    @_attributes_store.setter
    def _attributes_store(self, attributes: Mapping[str, Any]) -> None:
        held, given = self.attributes, dict(attributes)
        held.clear()
        held.update(given)
        self.changed()

    @property
    def _in_edges(self) -> list[Edge]:
        return self.in_edges

    @property
    def _out_edges(self) -> list[Edge]:
        return self.out_edges

    @property
    def _owner(self) -> Any:
        return self.owner

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
    def pull_field_specs(self) -> dict[str, FieldSpec] | None:
        """The descriptions of the attributes that it sees."""
        return None if self._pull_keys is None else field_specs(self._pull_keys)

    @property
    def push_field_specs(self) -> dict[str, FieldSpec] | None:
        """The descriptions of the attributes that it writes."""
        return None if self._push_keys is None else field_specs(self._push_keys)

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

    def check_built(self) -> bool:
        """Say whether it is built."""
        return self._is_built

    def reset_gate(self) -> None:
        """Do nothing: each run of axil begins with all nodes open."""

    @property
    def is_ready(self) -> bool:
        """Raise ``Unsupported``."""
        raise Unsupported("Node.is_ready", "graph.axil.stream tells when nodes begin and end.")

    def execute(self, outer_env: dict[str, Any] | None = None) -> Any:
        """Raise ``Unsupported``."""
        raise Unsupported(f"{type(self).__name__}.execute", "Put the node into a RootGraph.")

    def add_in_edge(self, edge: Any) -> None:
        """Raise ``Unsupported``."""
        raise Unsupported("Node.add_in_edge", "Call create_edge of the graph.")

    def add_out_edge(self, edge: Any) -> None:
        """Raise ``Unsupported``."""
        raise Unsupported("Node.add_out_edge", "Call create_edge of the graph.")

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

    def refuse_scheduling(self) -> None:
        """Raise ``Unsupported`` if a subclass has methods of its own for what axil schedules."""
        for name, instead in _SCHEDULED.items():
            if getattr(type(self), name, None) is not getattr(Node, name, None):
                raise Unsupported(f"{type(self).__name__}.{name} of its own", instead)

    def body(self, function: Callable[..., Any], *more: Any) -> Callable[..., Any]:
        """Give ``function`` as a body of axil: called with the input and ``more``."""
        if inspect.iscoroutinefunction(function):

            async def waiting(inputs: Any, attributes: Any) -> Any:
                with self.seeing(attributes) as seen:
                    result = self.checked(await function(inputs, *_given(more, seen)))
                return self.retained(result, seen)

            return waiting

        def working(inputs: Any, attributes: Any) -> Any:
            with self.seeing(attributes) as seen:
                result = self.checked(function(inputs, *_given(more, seen)))
            return self.retained(result, seen)

        return working

    def retained(self, result: dict[str, Any], seen: Keys) -> dict[str, Any]:
        """Give a result; what it writes of attributes stays with the node, too."""
        named = self._pull_keys if self._push_keys is None else self._push_keys
        written = seen if named is None else named
        self._attributes.update({n: v for n, v in result.items() if n in written})
        return result

    def forwarded(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Give what ``_forward`` gives. Raises: TypeError: it is no mapping."""
        return self.checked(self._forward(fields))

    def checked(self, result: Any) -> dict[str, Any]:
        """Give a result of ``_forward``. Raises: TypeError: it is no mapping."""
        if not isinstance(result, Mapping):
            raise TypeError(
                f'node "{self.name}": the function gave a {type(result).__name__}, expected a '
                "dict. Return fields."
            )
        return dict(cast("Mapping[str, Any]", result))

    @contextmanager
    def seeing(self, attributes: Any) -> Generator[dict[str, Any]]:
        """Take ``attributes`` with its own for its attributes within; changes are written."""
        with opened(self._attributes, attributes, self._pull_keys, self._push_keys) as store:
            token = _seen.set({**_seen.get({}), id(self): store})
            try:
                yield store
            finally:
                _seen.reset(token)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


_SCHEDULED = {
    "execute": "Write what the node does as _forward.",
    "is_ready": "Give the node join=, or a LogicSwitch before it.",
    "_message_aggregate_in": "Change the input in _forward, or in a hook before it.",
    "_message_dispatch_out": "Put a LogicSwitch behind the node.",
    "_pull_attributes": "Name what the node sees in pull_keys.",
    "_attributes_push_local": "Name what the node writes in push_keys.",
    "_attributes_push_outer": "Name what the node writes in push_keys.",
}
"""Methods by which MASFactory schedules a node, and what to do instead of overriding them."""

ATTRIBUTES: Any = object()
"""Stands for the attributes among what a body is called with."""


def merge_message(input: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """Give the fields of two messages as one: lists and dicts are joined, others are listed."""
    joined = dict(input)
    for name, value in message.items():
        have = joined.get(name)
        if name not in joined:
            joined[name] = value
        elif isinstance(have, list):
            several = cast("list[Any]", have)
            joined[name] = [*several, *(value if isinstance(value, list) else [value])]
        elif isinstance(have, dict) and isinstance(value, dict):
            joined[name] = {**cast("dict[str, Any]", have), **cast("dict[str, Any]", value)}
        else:
            joined[name] = [have, value]
    return joined


def _given(more: tuple[Any, ...], attributes: Any) -> list[Any]:
    return [attributes if each is ATTRIBUTES else each for each in more]


def count_of(function: Callable[..., Any], most: int, what: str, roles: str) -> int:
    """Count the parameters of a function that is called by position, those with defaults included.

    Raises: ValueError: none, or more than ``most``.
    """
    parameters = signature_of(function).parameters.values()
    count = sum(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters)
    if not 1 <= count <= most:
        raise ValueError(
            f"{what}: the function takes {count} arguments, expected 1 to {most}: {roles}. "
            "Take the first of them."
        )
    return count

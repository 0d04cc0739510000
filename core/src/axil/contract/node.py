"""The contracts of nodes and edges: what a component may have, and what the compiler takes from it.

A node is a function, or an object with one method:

>>> class Shout:
...     def run(self, inputs):
...         return {"text": inputs["text"].upper()}

``NodeContract.of`` is where graphs, the compiler, and wrappers that compile look at a node
component. Everything beside ``run`` is optional; a component that has none of it is treated as the
table says.

================ ============================================ ====================================
attribute        what it says                                 without it
================ ============================================ ====================================
``run``          the body: a function of what it asks for     the component itself is called
``adapted``      a body of the compiler's own form            made of ``run``
``scope``        a graph that runs inside the node            it has a body
``bind``         is called with the edges that start there    not called
``given``        more values that ``run`` may ask for         ``node`` and its ``config`` only
``inline``       whether it is called without a thread        as its function says
``strict``       whether payloads are fields, not messages    as the graph says
``join``         when it fires                                ``gate``
``lane``         the lane whose room it takes                 none
``effects``      what running it again may do                 ``idempotent``
``name``         its name; empty: the graph sets it           ``create_node`` is given one
``pull_default`` what it sees of the state                    as ``NodeSpec.pull``
``push_default`` what it writes back to the state             as ``NodeSpec.push``
================ ============================================ ====================================

The last three are for graphs that are built in Python; there a class with ``root_only`` makes no
nodes. ``provision`` and ``close`` belong to every kind of component, not to nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Node(Protocol):
    """The least that a node has."""

    @property
    def run(self) -> Callable[..., object]:
        """The body: a function of the values that its parameters name, that returns the node's
        output, or an ``axil.Out``.
        """
        ...


@runtime_checkable
class Edge(Protocol):
    """A component that decides what an edge carries, in place of condition, keys and processor."""

    def carry(self, seen: Any, /) -> object:
        """Return the payload that continues; None: nothing.

        Args:
            seen: payload, text, fields, state (``axil.plugin.EdgeInput``).
        """
        ...


@dataclass(slots=True, eq=False, repr=False)
class NodeContract:
    """A node component, read once: see the table above."""

    component: Any
    call: Any
    adapted: Callable[[Any], Any] | None
    scope: Callable[[str, Any], Any] | None
    bind: Callable[..., object] | None
    given: Mapping[str, object]
    inline: bool
    strict: bool
    join: object
    lane: str | None
    effects: Any
    type: str
    name: str | None
    pull: Mapping[str, str] | None
    push: Mapping[str, str] | None

    @classmethod
    def of(cls, component: Any) -> NodeContract:
        """Return the contract of a component."""
        get = getattr
        call = get(component, "run", component)
        given = {"node": component, **get(component, "given", {})}
        if hasattr(component, "config"):
            given["config"] = component.config
        is_called = callable(component)
        return cls(
            component,
            call,
            get(component, "adapted", None),
            get(component, "scope", None),
            None if isinstance(component, type) else get(component, "bind", None),
            given,
            bool(get(component, "inline", get(call, "inline", None))),
            is_called or get(component, "strict", False),
            get(component, "join", None),
            get(component, "lane", None),
            get(component, "effects", None),
            get(component, "__name__", None) or type(component).__name__,
            get(component, "name", None),
            get(component, "pull_default", None),
            get(component, "push_default", None),
        )

    @property
    def is_node(self) -> bool:
        """True if there is a body to run."""
        return self.adapted is not None or self.scope is not None or callable(self.call)

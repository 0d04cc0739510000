"""The options of graphs, nodes, edges and runs, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from pathlib import Path

    import pluggy

    from axil.builder.graph import EdgeFunction, Keys
    from axil.contract.context import Channel, Clock
    from axil.contract.node import Edge
    from axil.kernel.joins import Join
    from axil.kernel.plan import CycleLimit
    from axil.kernel.tokens import Effects
    from axil.registry.registry import Registry
    from axil.runtime.recorder import RunJournal
    from axil.runtime.result import Prompts
    from axil.spec.graph import ComponentRef, Limits


class GraphOptions(TypedDict, total=False):
    """The options of every graph but its name and its state; see ``Graph``."""

    pull_keys: Keys
    push_keys: Keys
    attributes: Mapping[str, Any] | None
    nodes: Sequence[Any] | None
    edges: Sequence[Any] | None
    build_func: Callable[[Any], Any] | None
    cycles: Literal["allow", "forbid"]
    limits: Limits | None
    cycle_limits: Mapping[str, CycleLimit] | None
    keep: bool
    state_version: int
    migrations: Mapping[int, Callable[[dict[str, Any]], Mapping[str, Any]]] | None
    node_wrappers: Mapping[Any, Sequence[Any]] | Sequence[Any] | None


class RootOptions(GraphOptions, total=False):
    """The options of a graph that is run."""

    hooks: pluggy.PluginManager | None
    registry: Registry | None


class NodeOptions(TypedDict, total=False):
    """The options of a node in its graph; see ``Graph.create_node``."""

    name: str
    pull_keys: Keys
    push_keys: Keys
    attributes: Mapping[str, Any] | None
    join: str | ComponentRef | Join | Mapping[str, Any] | None
    merge: Any
    lane: str | None
    resources: Mapping[str, float] | None
    effects: Effects | None
    inline: bool
    wrappers: Sequence[Any]
    collect: str | Sequence[str]


class SubgraphOptions(GraphOptions, NodeOptions, total=False):
    """The options of a graph that ``create_node`` makes of a class."""

    state: Any


class EdgeOptions(TypedDict, total=False):
    """The options of an edge but its ends and its keys; see ``Graph.create_edge``."""

    when: EdgeFunction
    trigger: bool
    process: EdgeFunction
    formatter: object
    parser: object
    carry: Edge | None
    state_filter: Callable[..., Any] | None
    group: str


class ResumeOptions(TypedDict, total=False):
    """The options of a run that goes on; see ``Options``, which has the same names."""

    thread: str
    migrate: bool
    origin: Mapping[str, Any]
    pins: Mapping[str, Mapping[str, str]]
    prompts: Prompts
    channel: Channel | None
    observers: Sequence[Any]
    hooks: Any
    clock: Clock | None
    limits: Limits | None
    deps: Any
    workspace: Path | None
    allow: frozenset[str]
    executor: Any
    threads: int


class RunOptions(ResumeOptions, total=False):
    """The options of a run."""

    run_id: str
    resuming: bool
    journal: RunJournal | None
    answers: Mapping[str, Any]

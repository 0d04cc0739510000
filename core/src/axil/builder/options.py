"""The options of graphs, nodes, edges and runs, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from pathlib import Path

    import pluggy

    from axil.builder.graph import EdgeFunction, Keys
    from axil.compiler.migrations import Migration
    from axil.contract.context import Channel, Clock, Executor
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
    attributes: Mapping[str, object] | None
    nodes: Sequence[object] | None
    edges: Sequence[object] | None
    build_func: Callable[[Any], object] | None
    cycles: Literal["allow", "forbid"]
    limits: Limits | None
    cycle_limits: Mapping[str, CycleLimit] | None
    keep: bool
    state_version: int
    migrations: Mapping[int, Migration] | None
    node_wrappers: Mapping[Any, Sequence[object]] | Sequence[object] | None


class RootOptions(GraphOptions, total=False):
    """The options of a graph that is run."""

    hooks: pluggy.PluginManager | None
    registry: Registry | None


class NodeOptions(TypedDict, total=False):
    """The options of a node in its graph; see ``Graph.create_node``."""

    name: str
    pull_keys: Keys
    push_keys: Keys
    attributes: Mapping[str, object] | None
    join: str | ComponentRef | Join | Mapping[str, object] | None
    merge: object
    lane: str | None
    resources: Mapping[str, float] | None
    effects: Effects | None
    inline: bool
    wrappers: Sequence[object]
    collect: str | Sequence[str]


class SubgraphOptions(GraphOptions, NodeOptions, total=False):
    """The options of a graph that ``create_node`` makes of a class."""

    state: object


class EdgeOptions(TypedDict, total=False):
    """The options of an edge but its ends and its keys; see ``Graph.create_edge``."""

    when: EdgeFunction
    trigger: bool
    process: EdgeFunction
    formatter: object
    parser: object
    carry: Edge | None
    state_filter: Callable[..., object] | None
    group: str


class ResumeOptions(TypedDict, total=False):
    """The options of a run that goes on; see ``Options``, which has the same names."""

    thread: str
    migrate: bool
    origin: Mapping[str, object]
    pins: Mapping[str, Mapping[str, str]]
    prompts: Prompts
    channel: Channel | None
    observers: Sequence[object]
    hooks: pluggy.PluginManager | None
    clock: Clock | None
    limits: Limits | None
    deps: object
    workspace: str | Path | None
    allow: frozenset[str]
    executor: Executor | None
    threads: int


class RunOptions(ResumeOptions, total=False):
    """The options of a run."""

    run_id: str
    resuming: bool
    journal: RunJournal | None
    answers: Mapping[str, object]

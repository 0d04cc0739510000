"""``GraphBuilder`` and ``GraphEngine``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from axil import MISSING, Limits, Result, RootGraph, run_sync, safe_get_attr
from evofabric.absent import Unsupported
from evofabric.core.console import Console
from evofabric.core.graph.nodes import body_of
from evofabric.core.typing import DEFAULT_EDGE_GROUP, GraphMode, NodeActionMode, SpecialNode

_ENDS = (SpecialNode.START.value, SpecialNode.END.value)


class GraphBuilder:
    """Collects nodes and edges; ``build`` gives the graph that runs."""

    def __init__(self, state_schema: Any) -> None:
        self.state_schema = state_schema
        self._nodes: dict[str, dict[str, Any]] = {}
        self._edges: list[tuple[str, str, str, Any]] = []
        self._routers: list[tuple[str, Callable[..., Any], list[str], str]] = []
        self._entry = ""

    def add_node(
        self,
        name: str,
        node: Any,
        action_mode: NodeActionMode | str = "any",
        multi_input_merge_strategy: Mapping[str, Callable[[list[Any]], Any]] | None = None,
    ) -> None:
        """Add a node: a function of the state, an object that is called as one, or a graph.

        Args:
            name: its name.
            node: it gives the fields that it writes.
            action_mode: ``any``: it works for each predecessor; ``all``: once, for all of them.
            multi_input_merge_strategy: by the group of edges, how states that meet are merged.
        Raises: ValueError: the name or the mode cannot be.
        """
        if name in _ENDS:
            raise ValueError(f"Node {name!r} is preserved by GraphBuilder. Choose another name.")
        if name in self._nodes:
            raise ValueError(f"Node {name!r} already exists. Choose another name.")
        merge = {
            _group(group): function
            for group, function in (multi_input_merge_strategy or {}).items()
        }
        self._nodes[name] = {
            "node": node,
            "join": "each" if NodeActionMode(action_mode) is NodeActionMode.ANY else None,
            "merge": merge or None,
        }

    def add_edge(
        self,
        source: str,
        target: str,
        group: str = DEFAULT_EDGE_GROUP,
        state_filter: Callable[[Any], Any] | None = None,
    ) -> None:
        """Connect two nodes; ``state_filter`` gives the state that goes on along the edge.

        Raises: ValueError: one of them does not exist.
        """
        self._known(source, target)
        self._edges.append((source, target, group, state_filter))

    def add_condition_edge(
        self,
        source: str,
        router: Callable[..., Any],
        possible_targets: Iterable[str],
        group: str = DEFAULT_EDGE_GROUP,
    ) -> None:
        """Let ``router(state)`` choose among targets.

        Raises: ValueError: one of them does not exist; TypeError: a text is no list of targets.
        """
        if isinstance(possible_targets, str):
            raise TypeError(
                f"possible_targets: found {possible_targets!r}, expected several names. "
                "Write them as a list."
            )
        targets = sorted(possible_targets)
        self._known(source, *targets)
        self._routers.append((source, router, targets, group))

    def set_entry_point(self, entry_name: str) -> None:
        """Set where the graph begins."""
        self._entry = entry_name

    def build(
        self,
        auto_conn_end: bool = True,
        max_turn: int | None = None,
        timeout: int | None = None,
        graph_mode: GraphMode | str = "run",
        db_file_path: str = "",
        db_name: str = "",
    ) -> GraphEngine:
        """Give the graph that runs.

        Args:
            auto_conn_end: nodes without an edge lead to the end.
            max_turn: firings of nodes in a run, start and end included; a run that needs more
                gives its state so far.
            timeout: seconds for the whole run.
        Raises: ValueError: nothing begins; SpecError: all else that is wrong; Unsupported: the
        mode ``debug``.
        """
        del db_file_path, db_name
        if GraphMode(graph_mode) is GraphMode.DEBUG:
            raise Unsupported(
                "GraphBuilder.build(graph_mode='debug'): axil has no such mode. Run with a "
                "journal, and inspect the run with axil-journals."
            )
        starts = [edge[1] for edge in self._edges if edge[0] == "start"]
        if not self._entry and not starts:
            raise ValueError("Graph must have an entry point. Call set_entry_point.")
        if self._entry:
            self._known(self._entry)
        limits = Limits(firings=max(max_turn - 2, 0) if max_turn else None, seconds=timeout)
        graph = RootGraph("graph", state=self.state_schema, cycles="allow", limits=limits)
        for name, reported in self._nodes.items():
            node = (
                reported["node"].as_node()
                if isinstance(reported["node"], GraphEngine)
                else reported["node"]
            )
            graph.create_node(
                body_of(name, node), name=name, join=reported["join"], merge=reported["merge"]
            )
        if self._entry:
            graph.edge_from_entry(self._entry)
        for source, target, group, state_filter in self._edges:
            ends = {"start": "entry", "end": "exit"}
            graph.create_edge(
                ends.get(source, source),
                ends.get(target, target),
                state_filter=state_filter,
                group=_group(group),
            )
        for source, router, targets, group in self._routers:
            graph.create_router(source, router, targets, group=_group(group))
        leading = {edge[0] for edge in self._edges} | {router[0] for router in self._routers}
        for name in self._nodes:
            if auto_conn_end and name not in leading:
                graph.edge_to_exit(name)
        return GraphEngine(graph.build())

    def dumps(self, graph_name: str = "graph", version: str = "1.0") -> Any:
        """Raise ``Unsupported``."""
        raise Unsupported(
            "GraphBuilder.dumps: functions are not put into files. Write the graph as a workflow "
            "file of axil, whose nodes are installed components."
        )

    dump = dumps
    load = loads = dumps

    def _known(self, *names: str) -> None:
        for name in names:
            if name not in self._nodes and name not in _ENDS:
                raise ValueError(f"Node {name!r} not exists. Add it before its edges.")


class GraphEngine:
    """A graph that runs, as often and as concurrently as wanted.

    ``axil`` is the graph of axil: what it does beyond ``run`` (``stream``, journals, limits) begins
    there.
    """

    def __init__(self, graph: RootGraph) -> None:
        self.axil = graph

    async def run(self, inputs: Any = None) -> Any:
        """Run once: the state at the end.

        A person is asked on the console. Raises: NodeFailed, whose cause is what a node raised.
        """
        if hasattr(inputs, "model_dump"):
            inputs = {name: getattr(inputs, name) for name in inputs.model_fields_set}
        result: Result = await self.axil.run(inputs, channel=Console())
        if result.error is not None and result.status != "limited":
            raise result.error
        return result.state

    async def __call__(self, state: Any, stream_writer: Any = None) -> Any:
        """Run with a state, as a node of another graph does."""
        del stream_writer
        schema = self.axil.spec.schema
        names = [] if schema is None else list(schema.fields)
        given = {name: safe_get_attr(state, name) for name in names}
        after = await self.run({n: value for n, value in given.items() if value is not MISSING})
        return {name: safe_get_attr(after, name) for name in names}

    def as_node(self) -> Callable[..., Any]:
        """Give the graph as a node of another: its last state is the delta."""

        async def inside(state: Any) -> Any:
            return await self(state)

        return inside

    def run_sync(self, inputs: Any = None) -> Any:
        """Run once, where no event loop is running."""
        return run_sync(self.run(inputs))

    def reset(self) -> None:
        """Do nothing: runs share no state."""

    def draw_graph(self, save_path: str | None = None, auto_open: bool = True) -> Any:
        """Raise ``Unsupported``."""
        raise Unsupported(
            "GraphEngine.draw_graph: axil draws workflows by `axil graph`, and in Python by what "
            "axil-journals has."
        )


def _group(group: str) -> str:
    return "" if group == DEFAULT_EDGE_GROUP else group

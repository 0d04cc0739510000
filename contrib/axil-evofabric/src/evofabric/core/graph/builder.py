"""``GraphBuilder`` and ``GraphEngine``."""

from __future__ import annotations

import html
import warnings
import webbrowser
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, cast

from axil import MISSING, Limits, NodeFailed, Result, RootGraph, run_sync, safe_get_attr, schema_of
from evofabric.absent import Unsupported
from evofabric.core.console import Console
from evofabric.core.graph.nodes import body_of, fields_of, own_state, stamped
from evofabric.core.graph.staying import without_stale
from evofabric.core.graph.streaming import settled
from evofabric.core.typing import DEFAULT_EDGE_GROUP, GraphMode, NodeActionMode, SpecialNode

_ENDS = (SpecialNode.START.value, SpecialNode.END.value)
_TOO_LONG = "AX415"
"""The id of the error that a run took longer than its limit."""


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
        mode = NodeActionMode(action_mode)
        if mode is NodeActionMode.ANY and merge:
            warnings.warn(
                f"add_node({name!r}, multi_input_merge_strategy=…) has no effect with the action "
                "mode any: nothing meets there.",
                stacklevel=2,
            )
            merge = dict[str, Callable[[list[Any]], Any]]()
        self._nodes[name] = {"node": node, "mode": mode, "merge": merge or None}

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
                gives its state so far. None, 0: no limit.
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
        schema = schema_of(self.state_schema)
        own = _Functions(list(schema.fields))
        limits = Limits(firings=max_turn - 1 if max_turn else None, seconds=timeout)
        graph = RootGraph("graph", state=schema, cycles="allow", limits=limits)
        leading = {edge[0] for edge in self._edges} | {router[0] for router in self._routers}
        edges = [(s, t, _group(group), f) for s, t, group, f in self._edges]
        if self._entry:
            edges.insert(0, ("start", self._entry, "", None))
        if auto_conn_end:
            edges += [(name, "end", "", None) for name in self._nodes if name not in leading]
        routers = [(s, ask, t, _group(group)) for s, ask, t, group in self._routers]
        merging = {name for name, given in self._nodes.items() if given["merge"]}
        waiting = {n for n, given in self._nodes.items() if given["mode"] is NodeActionMode.ALL}
        edges = without_stale(edges, routers, waiting - merging)
        single = _with_single_sources(edges, routers)
        for name, given in self._nodes.items():
            each = given["mode"] is NodeActionMode.ANY or (name in single and not given["merge"])
            merge = {
                group: own.merge(f) for group, f in dict[str, Any](given["merge"] or ()).items()
            }
            graph.create_node(
                body_of(name, given["node"], own.fields),
                name=name,
                join="each" if each else None,
                merge=merge or None,
            )
            graph.set_cycle_limit(name, None)
        ends = {"start": "entry", "end": "exit"}
        if max_turn:  # the end counts, too
            graph.create_node(_nothing, name="end", join="each")
            graph.edge_to_exit("end")
            ends["end"] = "end"
        for source, target, group, keep in edges:
            graph.create_edge(
                ends.get(source, source),
                ends.get(target, target),
                state_filter=None if keep is None else own.filter(keep),
                group=group,
            )
        for source, ask, targets, group in routers:
            graph.create_router(source, own.router(source, ask), targets, group=group)
        return GraphEngine(graph.build(), self)

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


def _nothing() -> dict[str, Any]:
    return {}


def _with_single_sources(
    edges: Sequence[tuple[Any, ...]], routers: Sequence[tuple[Any, ...]]
) -> set[str]:
    """Give the nodes that have one source in each group: nothing meets there, so they work for each
    token.
    """
    sources: dict[str, dict[str, list[str]]] = {}
    for source, target, group, _ in edges:
        sources.setdefault(target, {}).setdefault(group, []).append(source)
    for source, _, targets, group in routers:
        for target in targets:
            sources.setdefault(target, {}).setdefault(group, []).append(source)
    return {
        target
        for target, groups in sources.items()
        if all(len(set(found)) == 1 for found in groups.values())
    }


class _Functions:
    """The functions of a program as axil calls them: they are given states of their own."""

    def __init__(self, fields: list[str]) -> None:
        self.fields = fields

    def filter(self, keep: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def kept(state: Any) -> dict[str, Any]:
            return stamped(fields_of(keep(own_state(state)), "a state_filter", self.fields), None)

        return kept

    def merge(self, function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        def merged(states: list[Any]) -> dict[str, Any]:
            found = function([own_state(each) for each in states])
            return stamped(fields_of(found, "a merge strategy", self.fields), None)

        return merged

    def router(self, source: str, ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def asked(state: Any) -> list[Any]:
            answer = ask(own_state(state))
            if answer is None:
                raise ValueError(
                    f"the router of {source!r} gave None, expected names of targets. "
                    "Return [] to send nothing."
                )
            one = isinstance(answer, str) or _is_filtered(answer)
            targets = cast("list[Any]", [answer] if one else list(answer))
            return [(t[0], self.filter(t[1])) if _is_filtered(t) else t for t in targets]

        return asked


def _is_filtered(answer: Any) -> bool:
    if not isinstance(answer, (tuple, list)) or len(cast("list[Any]", answer)) != 2:
        return False
    name, keep = cast("list[Any]", answer)
    return isinstance(name, str) and callable(keep)


class EngineError(RuntimeError):
    """A run that broke off at a node; ``__cause__`` is what the node raised."""


class GraphEngine:
    """A graph that runs, as often and as concurrently as wanted.

    ``axil`` is the graph of axil: what it does beyond ``run`` (``stream``, journals, limits) begins
    there.
    """

    def __init__(self, graph: RootGraph, builder: GraphBuilder) -> None:
        self.axil = graph
        self.state_schema = builder.state_schema
        self._fields = list(schema_of(builder.state_schema).fields)

    async def run(self, inputs: Any = None) -> Any:
        """Run once: the state at the end, or, where ``max_turn`` was met, so far.

        A person is asked on the console. Raises: EngineError, whose cause is what a node raised;
        TimeoutError; axil's own errors.
        """
        given = stamped(fields_of(inputs, "the input", self._fields), None)
        result: Result = await self.axil.run(given, channel=Console())
        await settled()
        if isinstance(result.error, NodeFailed) and result.error.__cause__ is not None:
            raise EngineError(
                f"GraphEngine encountered an error during processing node: {result.error}"
            ) from result.error.__cause__
        if result.error is not None and result.error.id == _TOO_LONG:
            raise TimeoutError(str(result.error)) from result.error
        if result.error is not None and result.status != "limited":
            raise result.error
        return own_state(result.state)

    async def __call__(self, state: Any, stream_writer: Any = None) -> Any:
        """Run with a state, as a node of another graph does."""
        del stream_writer
        given = {name: safe_get_attr(state, name) for name in self._fields}
        return await self.run({n: value for n, value in given.items() if value is not MISSING})

    def run_sync(self, inputs: Any = None) -> Any:
        """Run once, where no event loop is running."""
        return run_sync(self.run(inputs))

    def reset(self) -> None:
        """Do nothing: runs share no state."""

    async def get_output(self) -> Any:
        """Raise ``Unsupported``."""
        raise Unsupported(
            "GraphEngine.get_output: an engine holds no run. GraphEngine.run returns the state."
        )

    def draw_graph(self, save_path: str | None = None, auto_open: bool = True) -> None:
        """Draw the graph as a page of HTML that needs nothing else.

        Args:
            save_path: its file; None: a temporary one, if it is shown.
            auto_open: show it in the browser.
        """
        title = html.escape(self.axil.name)
        page = f"<!doctype html><title>{title}</title>{self.axil.draw('svg')}"
        if save_path is None and not auto_open:
            return
        if save_path is None:
            with NamedTemporaryFile("w", suffix=".html", delete=False) as file:
                save_path = file.name
        Path(save_path).write_text(page, encoding="utf-8")
        if auto_open:
            webbrowser.open(Path(save_path).absolute().as_uri())


def _group(group: str) -> str:
    return "" if group == DEFAULT_EDGE_GROUP else group

"""LangGraph's compiled graphs, by introspection: the same functions and the same state, in a graph
of axil. LangGraph itself is not imported here: the graph brings it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from axil import RootGraph
from axil_control import LogicSwitch
from axil_importers.draft import Draft
from axil_importers.errors import ImportProblem
from axil_importers.imported import Finding

_START: Final = "__start__"
_END: Final = "__end__"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedGraph:
    """A graph in Python, not yet built, and what became of each part of its source."""

    graph: RootGraph
    findings: Sequence[Finding]


def from_langgraph(compiled: object, name: str = "") -> ImportedGraph:
    """Return a compiled graph of LangGraph as a graph of axil.

    Nodes call the functions that they call there, with the state; branches ask the same functions.

    Raises: ImportProblem (AX988): it is no compiled graph with a state.
    """
    builder = getattr(compiled, "builder", None)
    if builder is None or not hasattr(builder, "branches"):
        fault = f"expected a compiled StateGraph, found {type(compiled).__name__}."
        raise ImportProblem("AX988", fault, "Give what StateGraph.compile() returns.")
    draft = Draft(name or str(getattr(compiled, "name", "") or "langgraph"))
    return _read(builder, draft)


def _read(builder: Any, draft: Draft) -> ImportedGraph:
    schema = getattr(builder, "state_schema", None) or builder.schema
    graph = RootGraph(draft.id, state=schema, cycles="allow")
    steps = {str(key): draft.step(f'nodes["{key}"]', "node") for key in builder.nodes}
    for key, spec in builder.nodes.items():
        step = steps[str(key)]
        step.became = f"node {key}"
        graph.create_node(_body(spec.runnable), name=str(key))
        if getattr(spec, "ends", ()):
            step.leave("where its Command leads is not followed", "Return fields, and add edges.")
        if getattr(spec, "retry_policy", None):
            step.approximate("its policy of retries is not taken", 'Add wrappers=["retry"].')
        if getattr(spec.runnable, "func_accepts", None):
            step.approximate(
                "it asks LangGraph for config, a store or a runtime, which are not there",
                "Take what it needs from the state.",
            )
    for source, target in sorted(builder.edges):
        _edge(graph, str(source), str(target))
    waiting = cast("set[tuple[tuple[str, ...], str]]", getattr(builder, "waiting_edges", None))
    for sources, target in sorted(waiting or ()):
        for source in sources:
            _edge(graph, str(source), str(target))
    for source, branches in builder.branches.items():
        for label, branch in branches.items():
            _branch(graph, draft, (str(source), str(label)), branch)
    return ImportedGraph(graph=graph, findings=draft.imported().findings)


def _body(runnable: Any) -> Callable[..., Any]:
    """Return a body that calls what a node of LangGraph calls."""
    function = getattr(runnable, "func", None)

    def body(state: Any) -> Any:
        return runnable.invoke(_plain(state))

    async def waiting(state: Any) -> Any:
        return await runnable.ainvoke(_plain(state))

    is_async = function is None and getattr(runnable, "afunc", None) is not None
    return waiting if is_async else body


def _plain(state: Any) -> Any:
    return dict(cast("Mapping[str, Any]", state)) if isinstance(state, Mapping) else state


def _edge(graph: RootGraph, source: str, target: str) -> None:
    if source == _START:
        graph.edge_from_entry(target)
    elif target == _END:
        graph.edge_to_exit(source)
    else:
        graph.create_edge(source, target)


def _branch(graph: RootGraph, draft: Draft, which: tuple[str, str], branch: Any) -> None:
    """Put a switch behind a node, which asks where the branch leads."""
    source, label = which
    step = draft.step(f'branches["{source}"]["{label}"]', "branch")
    ends = cast("Mapping[Any, str] | None", branch.ends)
    if not ends:
        step.leave("it does not say where it may lead", "Name its ends in add_conditional_edges.")
        return
    name = draft.name(f"{source}_{label}".replace(_START, "start"))
    receivers = {"exit" if end == _END else str(end) for end in ends.values()}
    routes = {each: _leads(branch.path, ends, each) for each in sorted(receivers)}
    graph.create_node(LogicSwitch(routes), name=name)
    _edge(graph, source, name)
    for each in routes:
        _edge(graph, name, _END if each == "exit" else each)
    step.became = f"LogicSwitch {name}"


def _leads(path: Any, ends: Mapping[Any, str], receiver: str) -> Callable[[Any], bool]:
    """Return whether a branch leads to a receiver, as a question to the state."""

    def asked(state: Any) -> bool:
        said: Any = path.invoke(_plain(state))
        several = cast("list[Any]", said) if isinstance(said, list) else [said]
        ways = [str(ends.get(each, each)) for each in several]
        return receiver in ["exit" if each == _END else each for each in ways]

    return asked

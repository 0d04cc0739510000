"""LangGraph's compiled graphs, by introspection: the same functions and the same state, in a graph
of axil. LangGraph itself is not imported here: the graph brings it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from types import CodeType
from typing import Any, Final, cast

from axil import Out, RootGraph
from axil.plugin import EXIT
from axil_importers.draft import Draft
from axil_importers.errors import ImportProblem
from axil_importers.imported import Finding

_START: Final = "__start__"
_END: Final = "__end__"
_SEND: Final = (
    'Give the node wrappers=[Map(over="…", item="…")], and an edge instead of the branch.'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedGraph:
    """A graph in Python, not yet built, and what became of each part of its source."""

    graph: RootGraph
    findings: Sequence[Finding]


def from_langgraph(compiled: object, name: str = "") -> ImportedGraph:
    """Return a compiled graph of LangGraph as a graph of axil.

    Nodes call the functions that they call there, with the state; behind a node that branches
    stands one that asks the same function.

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
        if "interrupt" in _named_in(spec.runnable):
            step.leave("its interrupt is not there", "Write it as an async function: ctx.ask asks.")
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
    """Put a node behind a node, which asks where the branch leads."""
    source, label = which
    step = draft.step(f'branches["{source}"]["{label}"]', "branch")
    ends = cast("Mapping[Any, str] | None", branch.ends)
    if not ends:
        step.leave("it does not say where it may lead", "Name its ends in add_conditional_edges.")
        return
    name = draft.name(f"{source}_{label}".replace(_START, "start"))
    graph.create_node(_asking(branch.path, ends, name), name=name)
    _edge(graph, source, name)
    for each in sorted(set(map(str, ends.values()))):
        _edge(graph, name, each)
    step.became = f"node {name}"
    if "Send" in _named_in(branch.path):
        step.leave("it sends nodes inputs of their own", _SEND)


def _asking(path: Any, ends: Mapping[Any, str], name: str) -> Callable[..., Any]:
    """Return a body that asks a branch, once, where it leads."""
    call = _body(path)

    def sent(said: Any) -> Out:
        several = cast("list[Any]", said) if isinstance(said, list) else [said]
        for each in several:
            if hasattr(each, "node"):
                fault = f'the branch {name} leads to "{each.node}" with an input of its own (Send).'
                raise ImportProblem("AX988", fault, _SEND)
        to = [str(ends.get(each, each)) for each in several]
        return Out({}, to=frozenset(EXIT if each == _END else each for each in to))

    def asked(state: Any) -> Out:
        return sent(call(state))

    async def waiting(state: Any) -> Out:
        return sent(await call(state))

    return waiting if iscoroutinefunction(call) else asked


def _named_in(runnable: Any) -> set[str]:
    """Return the global names and attributes that the function of a node or of a branch uses."""
    function = getattr(runnable, "func", None) or getattr(runnable, "afunc", None)
    names, codes = set[str](), [getattr(function, "__code__", None)]
    for code in codes:  # those of inner functions and comprehensions are among its constants
        if isinstance(code, CodeType):
            names.update(code.co_names)
            codes.extend(code.co_consts)
    return names

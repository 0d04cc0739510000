"""Targets of evaluations. Each makes a trial of a case."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

from axil import (
    Activation,
    EdgeSpec,
    Graph,
    GraphSpec,
    Limits,
    NodeFailed,
    Result,
    RootGraph,
    Workflow,
)
from axil.plugin import ENTRY, EXIT, RunUsage, did_you_mean, format_names, thaw
from axil_evals.errors import EvalError, OutOfBudget
from axil_evals.trials import Case, Trial
from axil_files import load
from axil_journals import Entry, Journal, ReplayIndex, decode_value
from axil_models import plain_data


class Target(Protocol):
    """The workflow, or anything else, that a dataset is tried on."""

    @property
    def name(self) -> str:
        """The name of the target in reports."""
        ...

    @property
    def digest(self) -> str:
        """Another text for another version: a resumed evaluation repeats the trials of others."""
        ...

    async def run(self, case: Case) -> Trial:
        """Return the trial of a case; what fails is a trial that says so."""
        ...


class _Watch:
    """An observer that notes which nodes fired and which tools were called."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.tools: list[str] = []

    def firing_finished(self, activation: Activation, kind: str) -> None:
        if kind == "node":
            self.nodes.append(activation.path)

    def step_started(self, request: Any, kind: str) -> None:
        if kind == "tool" and isinstance(request, Mapping):
            self.tools.append(str(cast("Mapping[str, Any]", request).get("name")))


class WorkflowTarget:
    """A workflow, or one node of it."""

    def __init__(
        self,
        workflow: Workflow | RootGraph | str,
        *,
        node: str = "",
        name: str = "",
        **options: Any,
    ) -> None:
        """
        Args:
            workflow: a file, a graph in Python, or what was built of one.
            node: the one to run, by its name in the outermost graph; empty: all.
            options: fields of ``axil.Options`` for each run: ``deps``, ``limits``, ``allow`` …
        Raises: EvalError (AX973): there is no such node.
        """
        found: Any = load(workflow) if isinstance(workflow, str) else workflow
        if isinstance(found, Graph):
            found = cast("Any", found).build()
        made = cast("Workflow", found)
        self.workflow = alone(made, node) if node else made
        self.name = name or (f"{made.spec.id}/{node}" if node else made.spec.id)
        self._options = options
        self._is_limited = False

    @property
    def digest(self) -> str:
        """The digest of the graph."""
        return self.workflow.plan.graph.digest

    @property
    def limits(self) -> Limits:
        """The limits of each run."""
        own: Limits | None = self._options.get("limits")
        return self.workflow.plan.graph.spec.limits if own is None else own

    def limited(self, cost: float) -> WorkflowTarget:
        """Return this target with runs that spend at most so much money; a run that needs more
        raises ``OutOfBudget`` (AX977).
        """
        own = self.limits
        if own.cost is not None and own.cost <= cost:
            return self
        made = copy.copy(self)
        made._is_limited = True
        made._options = {**self._options, "limits": own.within(cost=cost)}
        return made

    async def run(self, case: Case) -> Trial:
        """Return the trial of a case: one run without a journal."""
        watch = _Watch()
        observers = [watch, *self._options.get("observers", ())]
        options: dict[str, Any] = {**self._options, "observers": observers}
        began = time.monotonic()
        result: Result[Any] | None = None
        try:
            result = await self.workflow.run(case.inputs, **options)
            status, error = result.status, "" if result.error is None else str(result.error)
        except NodeFailed as failed:
            result, status, error = getattr(failed, "result", None), "failed", str(failed)
        usage = RunUsage() if result is None else result.usage
        tokens, cost = usage.tokens, usage.cost
        if self._is_limited and getattr(getattr(result, "error", None), "id", "") == "AX414":
            raise OutOfBudget(f'case "{case.name}" needs more money than there is: {error}', cost)
        return Trial(
            status=status,
            output=plain_data(thaw(result.output)) if result is not None else None,
            error=error,
            seconds=time.monotonic() - began,
            cost=cost,
            tokens=tokens.get("input_tokens", 0) + tokens.get("output_tokens", 0),
            nodes=tuple(watch.nodes),
            tools=tuple(watch.tools),
        )


def alone(workflow: Workflow, node: str) -> Workflow:
    """Return the workflow of one node of a graph, with the fields of its edges.

    Raises: EvalError (AX973): there is no such node.
    """
    spec = workflow.spec
    found = next((each for each in spec.nodes if each.id == node), None)
    if found is None:
        names = [each.id for each in spec.nodes]
        hint = did_you_mean(node, names) or f"There are {format_names(names)}."
        raise EvalError("AX973", f'the graph has no node "{node}".', hint)
    into = _keys(edge for edge in spec.edges if edge.target == node)
    out = _keys(edge for edge in spec.edges if edge.source == node)
    graph = GraphSpec(
        id=f"{spec.id}/{node}",
        nodes=(replace(found, join=None, merge=None),),
        edges=(
            EdgeSpec(source=ENTRY, target=node, keys=into),
            EdgeSpec(source=node, target=EXIT, keys=out),
        ),
        payload=spec.payload,
        end=(node,) if spec.payload == "messages" else (),
        schema=spec.schema,
        limits=spec.limits,
        extras=spec.extras,
    )
    return Workflow(graph, workflow.setting)


def _keys(edges: Iterable[EdgeSpec]) -> dict[str, str] | None:
    """Return the fields of several edges; None: at least one carries everything."""
    found: dict[str, str] = {}
    for edge in edges:
        if edge.keys is None:
            return None
        found.update(edge.keys)
    return found


class KeptTarget:
    """Runs that a journal keeps: the trial of a case is the run that its metadata names, and
    nothing runs.
    """

    name = "kept runs"
    digest = ""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def run(self, case: Case) -> Trial:
        """Return the kept run of a case. Raises: EvalError (AX974): none is named or kept."""
        run_id = case.metadata.get("run")
        if not run_id:
            message = f'case "{case.name}" names no kept run.'
            hint = "`axil eval add` makes cases whose metadata have a run."
            raise EvalError("AX974", message, hint)
        return kept_trial(list(self._journal.entries(str(run_id))), str(run_id))


def kept_trial(entries: list[Entry], run_id: str) -> Trial:
    """Return a kept run as a trial. Raises: EvalError (AX974): it is not there, or not at its
    end.
    """
    replay = ReplayIndex(entries)
    if replay.header is None:
        raise EvalError("AX974", f'the journal has no run "{run_id}".', "See axil runs list.")
    if replay.ended is None:
        raise EvalError("AX974", f'the run "{run_id}" has not ended.', "Resume it first.")
    data = replay.ended.data
    tokens = cast("Mapping[str, int]", replay.used.get("tokens") or {})
    return Trial(
        status=str(data["status"]),
        output=plain_data(thaw(decode_value(data["output"]))) if "output" in data else None,
        error=str(data.get("error", "")),
        seconds=replay.elapsed,
        cost=float(replay.used.get("cost", 0.0)),
        tokens=int(tokens.get("input_tokens", 0)) + int(tokens.get("output_tokens", 0)),
        nodes=tuple(
            entry.activation.path for entry in entries if entry.kind == "done" and entry.node
        ),
    )


def case_of_run(entries: list[Entry], run_id: str, name: str = "") -> Case:
    """Return a kept run as a case: its input, and its output as what is expected.

    Raises: as ``kept_trial``; EvalError (AX974): it has no output.
    """
    trial = kept_trial(entries, run_id)
    header = ReplayIndex(entries).header
    assert header is not None
    if trial.status != "done":
        message = f'the run "{run_id}" ended as {trial.status}, so it has no output to expect.'
        raise EvalError("AX974", message)
    return Case(
        name=name or run_id,
        inputs=plain_data(thaw(decode_value(header.data["inputs"]))),
        expected=trial.output,
        metadata={"run": run_id, "nodes": list(trial.nodes)},
    )

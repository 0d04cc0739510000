"""Agent Spec's agents, teams and flows. Each output of a node is a field of the state, and edges
only trigger; flows inside flows become part of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from axil_importers.agentspec.nodes import KINDS, other
from axil_importers.agentspec.parts import Flow, Spec
from axil_importers.agentspec.teams import alone, team
from axil_importers.draft import Draft
from axil_importers.errors import ImportProblem, damaged
from axil_importers.imported import Imported

Data = Mapping[str, Any]
_TEAMS: Final = {"ManagerWorkers", "Swarm"}
_WHOLE: Final = {"Flow", "Agent", "SpecializedAgent", "A2AAgent", "OciAgent", *_TEAMS, *KINDS}


class AgentSpec:
    """``agentspec``: an agent, a team or a flow of Agent Spec."""

    def recognises(self, document: Any) -> bool:
        """Return whether it is a component, of a type that can be run."""
        if not isinstance(document, Mapping):
            return False
        given = cast("Data", document)
        held: Any = given.get("$referenced_components")
        if "$component_ref" in given and isinstance(held, Mapping):
            given: Any = cast("Data", held).get(str(given["$component_ref"]))
        return isinstance(given, Mapping) and cast("Data", given).get("component_type") in _WHOLE

    def read(self, document: Any, name: str) -> Imported:
        """Return the workflow. Raises: ImportProblem (AX988)."""
        if not self.recognises(document):
            fault = "the file is no agent, no team and no flow: component_type says what it is."
            raise ImportProblem("AX988", fault, "Serialize an agent, a team or a flow.")
        components = dict(_components(document))
        given = cast("Data", document)
        given = components.get(str(given.get("$component_ref")), given)
        draft = Draft.of(given, name)
        with damaged(draft):
            spec = Spec(draft, components)
            kind = str(given["component_type"])
            if kind == "Flow":
                whole(Flow(spec, given, "", ()))
            elif kind in _TEAMS:
                team(spec, given)
            elif kind in KINDS:
                _single(spec, given)
            else:
                alone(spec, given)
            return draft.imported()


def _components(given: Any) -> Iterator[tuple[str, Data]]:
    """Yield the components that others may refer to, by their ids."""
    if isinstance(given, Mapping):
        data = cast("Data", given)
        held: Any = data.get("$referenced_components")
        for id, each in cast("Data", held).items() if isinstance(held, Mapping) else ():
            if isinstance(each, Mapping) and "component_type" in each:
                yield str(id), cast("Data", each)
        if "component_type" in data and "id" in data:
            yield str(data["id"]), data
        for each in data.values():
            yield from _components(each)
    elif isinstance(given, list):
        for each in cast("list[Any]", given):
            yield from _components(each)


def _single(spec: Spec, node: Data) -> None:
    """Add a node that stands for itself, between a start and an end."""
    start = {"component_type": "StartNode", "id": "@start", "name": "start"}
    last = {"component_type": "EndNode", "id": "@end", "name": "end"}
    inputs = cast("list[Any]", node.get("inputs") or [])
    outputs = cast("list[Any]", node.get("outputs") or [])
    nodes: list[Any] = [
        {**start, "inputs": inputs, "outputs": inputs},
        node,
        {**last, "inputs": outputs, "outputs": outputs},
    ]
    ways = [("@start", str(node["id"])), (str(node["id"]), "@end")]
    edges = [{"from_node": {"id": a}, "to_node": {"id": b}} for a, b in ways]
    whole(Flow(spec, {"nodes": nodes, "control_flow_connections": edges}, "", ()))


def whole(flow: Flow) -> None:
    """Add the graph of the outermost flow."""
    flow.convert(KINDS, other)
    flow.ends_lead_out()

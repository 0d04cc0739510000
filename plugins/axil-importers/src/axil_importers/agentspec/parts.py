"""The things that the parts of one import from Agent Spec share: references, fields, edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from axil_importers.draft import Draft, Step, literal
from axil_importers.errors import ImportProblem

Data = Mapping[str, Any]
_PLACE: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_DEEPEST: Final = 20


class Spec:
    """One document being imported."""

    def __init__(self, draft: Draft, components: dict[str, Data]) -> None:
        self.draft, self.components = draft, components

    def at(self, given: Any) -> Data:
        """Return a component: itself, or the one that is referred to.

        Raises: ImportProblem (AX988): it is not in the file.
        """
        data = cast("Data", given)
        id = str(data.get("$component_ref") or "")
        if not id:
            return data
        if id not in self.components:
            fault = f"the file refers to the component {id}, which it does not hold."
            raise ImportProblem("AX988", fault, "Serialize it with all its components.")
        return self.components[id]


def titles(given: Any) -> dict[str, Data]:
    """Return the properties of a component, inputs or outputs, by their titles."""
    return {str(each["title"]): each for each in cast("list[Data]", given or [])}


class Flow:
    """A flow: the outermost, or one inside another, whose nodes are part of the same graph."""

    def __init__(
        self,
        spec: Spec,
        given: Data,
        place: str,
        outer: tuple[str, ...],
        draft: Draft | None = None,
    ) -> None:
        self.spec, self.given, self.place, self.outer = spec, given, place, outer
        self.draft = draft or spec.draft
        if len(outer) > _DEEPEST:
            raise ImportProblem("AX988", "flows are inside themselves.", "Correct the subflows.")
        self.nodes: dict[str, Data] = {}
        self.steps: dict[str, Step] = {}
        self.names: dict[str, str] = {}
        self.heads: dict[str, str] = {}
        self.tails: dict[str, str] = {}
        self.bindings: dict[str, Any] = {}
        """Values of the inputs of the start, if the flow is inside another."""
        for at, each in enumerate(cast("list[Any]", given["nodes"])):
            node = spec.at(each)
            id = str(node["id"])
            self.nodes[id] = node
            self.steps[id] = self.draft.step(
                f'{place}nodes[{at}] "{node.get("name")}"', str(node["component_type"])
            )

    def id_of(self, given: Any) -> str:
        """Return the id of a node that an edge names."""
        data = cast("Data", given)
        return str(data.get("$component_ref") or data["id"])

    def field(self, id: str, output: str) -> str:
        """Return the field of an output of a node."""
        node = self.nodes[id]
        is_start = node["component_type"] == "StartNode"
        name = output if is_start else f"{node.get('name')}_{output}"
        return self.draft.field("output", *self.outer, id, output, wanted=name)

    def writes(self, id: str) -> dict[str, str]:
        """Return the fields of the outputs of a node, by their titles."""
        made: dict[str, str] = {}
        for title, each in titles(self.nodes[id].get("outputs")).items():
            made[title] = self.field(id, title)
            default = each.get("default")
            self.draft.attributes.setdefault(made[title], "" if default is None else default)
        return made

    def sources(self, id: str, title: str) -> list[str]:
        """Return the fields that an input may come from, the latest node first."""
        edges = self.given.get("data_flow_connections")
        found: list[str] = []
        if edges is None:
            for other, node in self.nodes.items():
                if other != id and title in titles(node.get("outputs")):
                    found.append(self.field(other, title))
        for each in cast("list[Any]", edges or []):
            data = self.spec.at(each)
            if self.id_of(data["destination_node"]) == id and data["destination_input"] == title:
                source = self.id_of(data["source_node"])
                if source in self.nodes:
                    found.append(self.field(source, str(data["source_output"])))
        return list(dict.fromkeys(reversed(found)))

    def value(self, id: str, title: str) -> Any:
        """Return an input of a node as a value of ``assign``."""
        paths = self.sources(id, title)
        for each in paths:
            self.draft.attributes.setdefault(each, "")
        if len(paths) > 1:
            return {"first": paths}
        if paths:
            return {"path": paths[0]}
        given = titles(self.nodes[id].get("inputs")).get(title, {})
        return {"value": given.get("default", "")}

    def path(self, id: str, title: str) -> str:
        """Return the path of an input; one of several sources is made a field ahead."""
        value = cast("Data", self.value(id, title))
        if "path" in value:
            return str(value["path"])
        field = self.draft.field("input", *self.outer, id, title, wanted=title)
        head = self.draft.name(f"{self.names[id]}_{title}")
        self.draft.node(head, "assign", {"fields": {field: value}}, [field])
        self.draft.edge(head, self.heads[id])
        self.heads[id] = head
        return field

    def text(self, id: str, given: Any) -> str:
        """Return a text of a node, whose places are its inputs, as a text with places."""
        text = str(given or "")
        known = titles(self.nodes[id].get("inputs"))
        parts: list[str] = []
        end = 0
        for place in _PLACE.finditer(text):
            first, _, rest = place[1].partition(".")
            parts.append(literal(text[end : place.start()]))
            end = place.end()
            if first in known:
                path = self.path(id, first)
                parts.append("{" + (f"{path}.{rest}" if rest else path) + "}")
            else:
                self.steps[id].approximate(
                    f"the place {place[1]} is no input, and is empty", "Write what it should be."
                )
        return "".join(parts) + literal(text[end:])

    # ------------------------------------------------------------------ the graph

    def convert(self, kinds: Mapping[str, Convert], other: Convert) -> None:
        """Add the nodes and the edges."""
        for id, node in self.nodes.items():
            wanted = str(node.get("name") or node["component_type"])
            self.names[id] = self.heads[id] = self.tails[id] = self.draft.name(wanted)
            kinds.get(str(node["component_type"]), other)(self, id)
        for each in cast("list[Any]", self.given.get("control_flow_connections") or []):
            edge = self.spec.at(each)
            source, target = self.id_of(edge["from_node"]), self.id_of(edge["to_node"])
            if source in self.nodes and target in self.nodes:
                when = self._when(source, edge.get("from_branch"))
                if when != "false":
                    self.draft.edge(self.tails[source], self.heads[target], when)

    def _when(self, id: str, branch: Any) -> str:
        node, step = self.nodes[id], self.steps[id]
        kind = node["component_type"]
        if kind != "BranchingNode":
            if kind == "CatchExceptionNode" and branch == "caught_exception_branch":
                return "false"
            return ""
        title = next(iter(titles(node.get("inputs"))), "")
        field = self.draft.field("branch", *self.outer, id, title, wanted=f"{self.names[id]}_value")
        asked: dict[str, list[str]] = {}
        for value, way in cast("Data", node.get("mapping") or {}).items():
            plain = str(value).replace('"', "'").replace("\\", "/")
            if plain != str(value):
                step.approximate("a value has signs that were replaced", "Correct its out-edges.")
            asked.setdefault(str(way), []).append(f'state.{field} == "{plain}"')
        if str(branch) in asked:
            return " or ".join(asked[str(branch)])
        others = " or ".join(each for ways in asked.values() for each in ways)
        return f"not ({others})" if others else ""

    def first(self) -> str:
        """Return the head of the start."""
        found = [i for i, n in self.nodes.items() if n["component_type"] == "StartNode"]
        return self.heads[found[0]]

    def lasts(self) -> list[str]:
        """Return the ends."""
        return [i for i, n in self.nodes.items() if n["component_type"] == "EndNode"]

    def ends_lead_out(self) -> None:
        """Lead from the ends to the exit; take out what no way leads to."""
        draft = self.draft
        for id, name in self.names.items():
            if not any(name in (each["from"], each["to"]) for each in draft.edges):
                draft.nodes[:] = [each for each in draft.nodes if each["id"] != name]
                self.steps[id].became = ""
                self.steps[id].leave("nothing is connected with it", "Connect it, or forget it.")
        kept = {each["id"] for each in draft.nodes}
        for id in self.lasts():
            names = list(titles(self.nodes[id].get("outputs") or self.nodes[id].get("inputs")))
            if self.tails[id] in kept:
                keys = {each: each for each in names or ["done"]}
                draft.edge(self.tails[id], "@exit", keys=keys)


Convert = Callable[[Flow, str], None]

"""The writer of workflow files: a ``GraphSpec`` as plain data that reads back as the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from axil import ComponentRef, EdgeSpec, GraphSpec, Limits, NodeSpec, Problem, SpecError
from axil.plugin import SURROUNDINGS, FromEnvironment
from axil_files.variables import PLACEHOLDER

_ROOT: Final = frozenset({"version"})
"""Keys of ``extras`` that stand outside the graph."""


def dump_spec(spec: GraphSpec) -> dict[str, Any]:
    """``spec`` as plain data, for JSON, YAML or TOML.

    Values from the environment are placeholders again.

    Raises: SpecError (AX149) naming every part that is a live object, or would be read as something
    else.
    """
    writer = _Writer(spec)
    data = writer.file()
    if writer.problems:
        raise SpecError(writer.problems)
    return data


class _Writer:
    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.problems: list[Problem] = []

    def file(self) -> dict[str, Any]:
        spec = self.spec
        extras = {k: v for k, v in spec.extras.items() if k not in SURROUNDINGS}
        where = f'graph "{spec.id}"'
        root = {k: self.plain(extras[k], where) for k in sorted(_ROOT & extras.keys())}
        if spec.requires:
            root["requires"] = dict(spec.requires)
        if spec.extras.get("vars"):
            root["vars"] = self.plain(spec.extras["vars"], where, placeholders=True)
        typed = extras.pop("state", None)
        if spec.schema is not None and typed is None:
            self.refuse(where, f'the schema "{spec.schema.name}"', "Declare the state in the file.")
        if spec.routers:
            self.refuse(where, f"routers ({', '.join(spec.routers)})", "Use a node that routes.")
        nodes = [self.node(node) for node in spec.nodes]
        edges = [self.edge(edge) for edge in spec.edges]
        graph: dict[str, Any] = {
            "id": spec.id,
            "description": spec.description,
            "payload": _unless(spec.payload, "messages"),
            "cycles": _unless(spec.cycles, "allow"),
            "loop": spec.loop,
            "state": None if typed is None else self.plain(typed, where),
            "attributes": self.plain(spec.attributes, where),
            "state_version": None if spec.state_version == 1 else spec.state_version,
            "migrations": self.plain(dict(spec.migrations), where),
            "limits": self.plain(_limits(spec.limits), where),
            "cycle_limits": {
                name or "*": {
                    "rounds": "unlimited" if limit.rounds is None else limit.rounds,
                    "at_limit": limit.at_limit,
                }
                for name, limit in spec.cycle_limits.items()
            },
            **{key: self.plain(value, where) for key, value in extras.items() if key not in _ROOT},
        }
        graph = {key: value for key, value in graph.items() if value not in (None, "", {})}
        return {**root, "graph": {**graph, "nodes": nodes, "edges": edges, "end": list(spec.end)}}

    def node(self, node: NodeSpec) -> dict[str, Any]:
        where = f'node "{node.id}"'
        if node.body is not None or node.use is None:
            hint = "Give the node a type that an installed component has."
            self.refuse(where, "a body made in Python", hint)
        if node.merge:
            self.refuse(where, "a merge", "Files cannot hold functions.")
        data: dict[str, Any] = {
            "id": node.id,
            **({"type": node.use.type} if node.use else {}),
            "config": self.plain(node.use.config, where) if node.use else None,
            "description": node.description,
            "join": self.join(node, where),
            "lane": node.lane,
            "effects": node.effects,
            "wrappers": [self.use(use, where) for use in node.wrappers],
        }
        data = {key: value for key, value in data.items() if value not in (None, "", {}, [])}
        for key in ("pull", "push", "attributes"):
            if getattr(node, key) is not None:
                data[key] = self.plain(getattr(node, key), where)
        return {**data, **{key: self.plain(value, where) for key, value in node.extras.items()}}

    def join(self, node: NodeSpec, where: str) -> Any:
        """Return the join of a node: its name, or a component with its settings."""
        if node.join is None or isinstance(node.join, str):
            return node.join
        if not isinstance(node.join, ComponentRef):
            self.refuse(where, "a join made in Python", "Name a join that an installed plugin has.")
            return None
        return self.use(node.join, where)

    def edge(self, edge: EdgeSpec) -> dict[str, Any]:
        where = f"edge {edge.source}->{edge.target}"
        for part in ("filter", "router"):
            if getattr(edge, part) is not None:
                self.refuse(where, f"a {part}", "Files cannot hold functions.")
        data: dict[str, Any] = {"from": edge.source, "to": edge.target}
        if not edge.trigger:
            data["trigger"] = False
        if edge.group:
            data["group"] = edge.group
        for key, part in (("condition", edge.condition), ("process", edge.process)):
            if part is not None:
                data[key] = self.component(part, f"{where}, {key}")
        if edge.keys is not None:
            data["keys"] = self.plain(edge.keys, where)
        if not edge.carry_data:
            data["carry_data"] = False
        return {
            **data,
            **self.marks(edge, where),
            **{key: self.plain(value, where) for key, value in edge.extras.items()},
        }

    def marks(self, edge: EdgeSpec, where: str) -> dict[str, bool]:
        marks = dict(edge.marks)
        found: dict[str, bool] = {}
        if marks.pop("keep", False):
            found["keep_message"] = True
        clear = marks.pop("clear", None)
        if clear is not None and clear != "kept":
            found["clear_context"] = True
        if clear in ("all", "kept"):
            found["clear_kept_context"] = True
        if marks:
            what = f"marks that files have no word for ({', '.join(map(str, marks))})"
            self.refuse(where, what, "Remove them.")
        return found

    def component(self, part: Any, where: str) -> Any:
        if isinstance(part, ComponentRef):
            return self.use(part, where)
        if isinstance(part, str):
            return part
        self.refuse(where, "a function", "Register it as a component, and name it.")
        return None

    def use(self, use: ComponentRef, where: str) -> Any:
        if not use.config:
            return use.type
        return {"type": use.type, "config": self.plain(use.config, where)}

    def refuse(self, where: str, what: str, hint: str) -> None:
        self.problems.append(Problem("AX149", where, f"cannot be written to a file: {what}.", hint))

    def plain(self, value: Any, where: str, *, placeholders: bool = False) -> Any:
        """``value`` as a file holds it."""
        if isinstance(value, FromEnvironment):
            return value.template
        if isinstance(value, str):
            if not placeholders and PLACEHOLDER.search(value):
                hint = "Put it together from two texts at run time."
                self.refuse(where, "text that would be read as a placeholder", hint)
            return str(value)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {
                str(key): self.plain(item, where, placeholders=placeholders) for key, item in items
            }
        if isinstance(value, (list, tuple)):
            return [
                self.plain(item, where, placeholders=placeholders)
                for item in cast("list[Any]", value)
            ]
        kind = type(cast("object", value)).__qualname__
        hint = "Use plain data: text, numbers, lists, mappings."
        self.refuse(where, f"a value of type {kind}", hint)
        return None


def _unless(value: str, usual: str) -> str | None:
    return None if value == usual else value


def _limits(limits: Limits) -> dict[str, Any]:
    from axil_files.models import RunLimits, names_of

    data = {name: getattr(limits, name) for name in names_of(RunLimits)}
    if limits.pricing is not None:
        data["pricing"] = limits.pricing.plain()
    if limits.estimate is not None:
        from axil_models import Estimator  # it made the estimate that is here

        data["estimate"] = None if limits.estimate == Estimator() else limits.estimate.plain()
    return {name: value for name, value in data.items() if value is not None and value != {}}

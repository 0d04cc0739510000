"""A workflow file in the making: names that are free, nodes, edges, and findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self, cast

from axil_importers.imported import Finding, Imported, Status

_VARIABLE: Final = re.compile(r"\$\{(?=[A-Za-z0-9_]+\})")
_LONGEST: Final = 40
_PROMPTED: Final = frozenset({"agent", "human_form"})
"""Node types whose prompts have places for the fields that they pull."""
_PLACE: Final = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_PROMPT_PLACE: Final = re.compile(r"\{([^\W\d]\w*|\d+)\}")
_TAKEN: Final = frozenset({"text", "message", "state", "role_name", "entry", "exit", "messages"})


def literal(text: str) -> str:
    """Return a text as it is written in a template: with its braces doubled.

    >>> literal('{"a": 1}')
    '{{"a": 1}}'
    """
    return text.replace("{", "{{").replace("}", "}}")


def prompt_literal(text: str) -> str:
    """Return a text as it is written in a prompt, where only ``{name}`` is a place.

    >>> prompt_literal('{"a": {b}}')
    '{"a": {{b}}}'
    """
    return _PROMPT_PLACE.sub(r"{{\1}}", text)


def state_of(path: str) -> str:
    """Return the path of a field as it stands in a condition."""
    first, *rest = path.split(".")
    inside = (f"[{each}]" if each.isdecimal() else f'["{each}"]' for each in rest)
    return f"state.{first}{''.join(inside)}"


class Step:
    """The outcome of one part of the source."""

    def __init__(self, place: str, kind: str) -> None:
        self.place, self.kind, self.became = place, kind, ""
        self._said: list[tuple[Status, str, str]] = []

    def approximate(self, reason: str, advice: str = "") -> None:
        """Say what was lost although something stands for it."""
        if ("approximated", reason, advice) not in self._said:
            self._said.append(("approximated", reason, advice))

    def leave(self, reason: str, advice: str = "") -> None:
        """Say that nothing does this yet."""
        self._said.append(("left", reason, advice))

    def findings(self) -> list[Finding]:
        """Return what is to be said of it."""
        return [
            Finding(
                place=self.place,
                kind=self.kind,
                status=status,
                became=self.became,
                reason=reason,
                advice=advice,
            )
            for status, reason, advice in self._said or [("taken", "", "")]
        ]


class Draft:
    """A graph in the making: its edges only trigger, and what nodes know is in the state."""

    def __init__(self, name: str, outer: Draft | None = None) -> None:
        """Begin a workflow; with ``outer``, a graph inside it."""
        self.id = _identifier(name) or "workflow"
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self.attributes: dict[str, Any] = {}
        self.notes: list[str] = []
        self._steps: list[Step] = [] if outer is None else outer._steps
        self._names: set[str] = set()
        self._fields: dict[tuple[str, ...], str] = {} if outer is None else outer._fields

    @classmethod
    def of(cls, given: Mapping[str, Any], name: str) -> Self:
        """Return the draft of a document with, perhaps, its name and its description."""
        made = cls(str(given.get("name") or name))
        if given.get("description"):
            made.notes.append(str(given["description"]))
        return made

    def step(self, place: str, kind: str) -> Step:
        """Begin with a part of the source."""
        made = Step(place, kind)
        self._steps.append(made)
        return made

    def place(self) -> str:
        """Return the place of the part that was begun last."""
        return self._steps[-1].place if self._steps else self.id

    def name(self, wanted: str) -> str:
        """Return a free name for a node."""
        name = _free(_identifier(wanted) or "node", {each.lower() for each in self._names} | _TAKEN)
        self._names.add(name)
        return name

    def field(self, *key: str, wanted: str = "") -> str:
        """Return the field for something of the source: always the same for the same ``key``."""
        if key not in self._fields:
            name = _identifier(wanted or "_".join(key)) or "value"
            taken = {each.lower() for each in self._fields.values()} | _TAKEN
            self._fields[key] = _free(name, taken)
        return self._fields[key]

    def fields(self) -> Iterable[tuple[tuple[str, ...], str]]:
        """Return the fields that were given, each behind what it is for."""
        return self._fields.items()

    def node(
        self, name: str, type: str, config: Mapping[str, Any], push: Iterable[str] = (), **more: Any
    ) -> str:
        """Add a node, which writes the fields in ``push``."""
        written = list(push)
        for each in written:
            self.attributes.setdefault(each, "")
        given = {"push": written} if written else {}
        if type in _PROMPTED:
            pulled = _places(config)
            given = {"pull": pulled, **given}
            for each in pulled:
                self.attributes.setdefault(each, "")
        self.nodes.append({"id": name, "type": type, **more, **given, "config": dict(config)})
        return name

    def edge(
        self, source: str, target: str, when: str = "", keys: Mapping[str, str] | None = None
    ) -> None:
        """Add an edge that only triggers, or carries ``keys``; ``when`` is an expression."""
        made: dict[str, Any] = {"from": source, "to": target, "keys": dict(keys or {})}
        if when:
            made["condition"] = {"type": "expression", "config": {"expression": when}}
        if made not in self.edges:
            self.edges.append(made)

    def graph(self) -> dict[str, Any]:
        """Return the graph as it stands in a file."""
        made: dict[str, Any] = {"id": self.id, "payload": "fields"}
        if self.notes:
            made["description"] = "\n\n".join(self.notes)
        if self.attributes:
            made["attributes"] = dict(self.attributes)
        return {**made, "nodes": self.nodes, "edges": self.edges}

    def imported(self) -> Imported:
        """Return the workflow file, and what became of its source."""
        if not self.nodes:  # of a source whose parts lead nowhere: a file has a node
            self.node(self.name("nothing"), "passthrough", {})
            self.edge("@entry", self.nodes[0]["id"])
            self.edge(self.nodes[0]["id"], "@exit")
        graph, is_odd = _written(self.graph())
        variables = {"vars": {"DOLLAR": "$"}} if is_odd else {}
        findings = [each for step in self._steps for each in step.findings()]
        return Imported(document={"version": "1", **variables, "graph": graph}, findings=findings)


def _places(config: Mapping[str, Any]) -> list[str]:
    """Return the fields that prompts have places for."""
    texts = [str(config.get(key) or "") for key in ("instructions", "prompt_template", "prompt")]
    found = (place[1] for text in texts for place in _PLACE.finditer(text))
    return list(dict.fromkeys(each for each in found if each))


def _identifier(wanted: str) -> str:
    """Return letters, digits and underscores, which begin with a letter."""
    name = re.sub(r"\W+", "_", wanted).strip("_")[:_LONGEST].strip("_")
    return f"n_{name}" if name[:1].isdigit() else name


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name.lower() in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _written(value: Any) -> tuple[Any, bool]:
    """Return data in which ``${NAME}`` is a text and no variable, and whether there is one."""
    if isinstance(value, str):
        changed = _VARIABLE.sub("${DOLLAR}{", value)
        return changed, changed != value
    if isinstance(value, Mapping):
        items = {k: _written(v) for k, v in cast("Mapping[str, Any]", value).items()}
        return {k: v for k, (v, _) in items.items()}, any(odd for _, odd in items.values())
    if isinstance(value, (list, tuple)):
        parts = [_written(each) for each in cast("list[Any]", value)]
        return [each for each, _ in parts], any(odd for _, odd in parts)
    return value, False

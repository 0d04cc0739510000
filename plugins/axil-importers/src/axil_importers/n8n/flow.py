"""The things that the parts of one n8n import share: nodes, connections, and where values are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from axil_importers.draft import Draft, Step

Data = Mapping[str, Any]
MODELS: Final = frozenset(
    {
        "agent",
        "chainLlm",
        "chainRetrievalQa",
        "chainSummarization",
        "openAi",
        "informationExtractor",
        "textClassifier",
        "sentimentAnalysis",
        "openAiAssistant",
    }
)
_PASSING: Final = frozenset({"if", "filter", "switch", "noOp", "wait", "stopAndError"})
_AROUND: Final = frozenset({"output", "text", "response", "message", "content", "body", "data"})


def short(kind: str) -> str:
    """Return the name of a node's type without its package."""
    return kind.rpartition(".")[2]


def is_trigger(kind: str) -> bool:
    """Return whether nodes of a type begin a run."""
    plain = short(kind)
    return plain.lower().endswith("trigger") or plain in ("webhook", "start", "emailReadImap")


class Flow:
    """One workflow of n8n being imported."""

    def __init__(self, document: Data, draft: Draft) -> None:
        given = cast("list[Data]", document["nodes"])
        self.nodes = {str(each["name"]): each for each in given}
        self.places = {
            str(each["name"]): f'nodes[{at}] "{each["name"]}"' for at, each in enumerate(given)
        }
        self.draft = draft
        self.main: dict[str, list[list[str]]] = {}
        """The targets of a node, by its outputs."""
        self.into: dict[str, list[str]] = {}
        self.helpers: dict[str, list[tuple[str, str]]] = {}
        """The helpers of a node: the kind of connection, and the node that is there for it."""
        self.steps: dict[str, Step] = {}
        self.heads: dict[str, str] = {}
        connections = cast("Mapping[str, Mapping[str, Any]]", document.get("connections") or {})
        for source, kinds in connections.items():
            if source in self.nodes:
                self._connect(source, kinds)

    def _connect(self, source: str, kinds: Data) -> None:
        for kind, outputs in kinds.items():
            for at, ends in enumerate(cast("list[list[Data] | None]", outputs or [])):
                for end in ends or []:
                    target = str(end.get("node"))
                    if target not in self.nodes:
                        continue
                    if kind != "main":
                        self.helpers.setdefault(target, []).append((kind, source))
                        continue
                    known = self.main.setdefault(source, [])
                    known += [[] for _ in range(at + 1 - len(known))]
                    known[at].append(target)
                    if source not in self.into.setdefault(target, []):
                        self.into[target].append(source)

    def kind(self, name: str) -> str:
        """Return the type of a node, without its package."""
        return short(str(self.nodes[name].get("type")))

    def parameters(self, name: str) -> Data:
        """Return the parameters of a node."""
        return cast("Data", self.nodes[name].get("parameters") or {})

    def is_helper(self, name: str) -> bool:
        """Return whether a node helps another: a model, a memory, a tool."""
        return any(name == each for given in self.helpers.values() for _, each in given)

    def field(self, name: str) -> str:
        """Return the field that holds what a node gives."""
        return self.draft.field("node", name, wanted=name)

    def sources(self, name: str, seen: frozenset[str] = frozenset()) -> list[str]:
        """Return the fields that hold what comes to a node: past nodes that only pass it on."""
        found: list[str] = []
        for each in self.into.get(name, []):
            if each in seen:
                continue
            if self.kind(each) in _PASSING or self.nodes[each].get("disabled"):
                found += self.sources(each, seen | {each})
            else:
                found.append(self.field(each))
        return list(dict.fromkeys(found))

    def path(self, owner: str, name: str, inside: str) -> str:
        """Return the path of a value that ``owner`` reads of a node, or of its input."""
        if not name:
            return self._came(owner, inside)
        if name not in self.nodes:
            return inside or "missing"
        if self.kind(name) in _PASSING:
            return self._came(name, inside)
        return self._inside(name, inside)

    def _came(self, owner: str, inside: str) -> str:
        fields = self.sources(owner)
        if len(fields) == 1:
            known = next((n for n in self.nodes if self.field(n) == fields[0]), "")
            return self._inside(known, inside) if known else fields[0]
        if not fields:
            return inside or "input"
        field = self.draft.field("came", owner, wanted=f"{owner}_came")
        return f"{field}.{inside}" if inside else field

    def _inside(self, name: str, inside: str) -> str:
        keys = [each for each in inside.split(".") if each]
        if self.kind(name) in MODELS:
            while keys and keys[0] in _AROUND:
                keys = keys[1:]
        return ".".join([self.field(name), *keys])

"""AML as XML, read as data: definitions, imports of other documents, resources."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from masfactory.aml.model import (
    AmlDocument,
    AmlEdge,
    AmlError,
    AmlGraph,
    AmlNode,
    validate_aml_document,
)

AML_VERSION = "0.2"
SUPPORTED_AML_VERSIONS = (AML_VERSION,)
LARGEST_CHARACTERS = 1_000_000

_VERSION = re.compile(r"<\s*aml\b[^>]*?\bversion\s*=\s*[\"']([^\"']*)")
_KINDS = ("agent", "custom_node", "logic_switch", "agent_switch", "switch", "loop", "graph")


def text_of(source: str | Path) -> tuple[str, Path | None]:
    """Give the text of a document, and its folder if it is a file."""
    if isinstance(source, Path) or not source.lstrip().startswith("<"):
        path = Path(source)
        if isinstance(source, Path) or path.is_file():
            return path.read_text("utf-8"), path.parent
    return str(source), None


def detect_aml_version(source: str | Path) -> str:
    """Give the version of a document. Raises: AmlError: it is not 0.2."""
    found = _VERSION.search(text_of(source)[0])
    version = (found[1].strip() if found else "") or AML_VERSION
    if version not in SUPPORTED_AML_VERSIONS:
        raise AmlError(f"AML: found version {version}, expected {AML_VERSION}. Rewrite it.")
    return version


def parse_aml_document(source: str | Path, *, strict: bool = False) -> AmlDocument:
    """Read a document: a text, or a file, whose imports lie beside it.

    Raises: AmlError: it cannot be read; ``strict``: also what ``validate_aml_document`` raises.
    """
    text, folder = text_of(source)
    detect_aml_version(text)
    document = Library(text, folder).document()
    if strict:
        validate_aml_document(document)
    return document


def _root(text: str) -> Element:
    if len(text) > LARGEST_CHARACTERS or "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise AmlError(
            f"AML: expected at most {LARGEST_CHARACTERS} characters and no DOCTYPE. Leave it out."
        )
    try:
        root = ElementTree.fromstring(text)  # without entities, and not large
    except ElementTree.ParseError as error:
        raise AmlError(f"AML: it is no XML: {error}.") from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    if root.tag != "aml":
        raise AmlError(
            f"AML: found the element {root.tag}, expected aml. Write the whole document."
        )
    return root


class Library:
    """The definitions of a document and of those that it imports."""

    def __init__(
        self, text: str, folder: Path | None, loaded: dict[Path, Library | None] | None = None
    ) -> None:
        self.root, self.folder = _root(text), folder
        self._loaded: dict[Path, Library | None] = {} if loaded is None else loaded
        self.imported = {
            each.get("alias", ""): self._import(each.get("src", ""))
            for each in self.root.findall("./imports/import")
        }
        kinds = ("agents/agent", "graphs/graph", "resources/resource", "memories/memory")
        self.defined = {
            kind.partition("/")[2]: {
                each.get("id", ""): each for each in self.root.iterfind(f"./definitions/{kind}")
            }
            for kind in kinds
        }
        self._open: list[Element] = []

    def _import(self, src: str) -> Library:
        if self.folder is None:
            raise AmlError(f'AML: the document is a text, and imports "{src}". Give it as a file.')
        path = (self.folder / src).resolve()
        if path not in self._loaded:
            if not path.is_file():
                raise AmlError(f'AML: there is no file "{path}" to import. Give the right src.')
            self._loaded[path] = None
            self._loaded[path] = Library(path.read_text("utf-8"), path.parent, self._loaded)
        found = self._loaded[path]
        if found is None:
            raise AmlError(f'AML: "{path}" imports itself. Take the import out.')
        return found

    def find(self, kind: str, ref: str) -> tuple[Library, Element] | None:
        """Give a definition by ``#id`` or ``alias::id``, and the document that has it."""
        alias, double, name = ref.partition("::")
        if double:
            library = self.imported.get(alias)
            return None if library is None else library.find(kind, name)
        found = self.defined[kind].get(ref.removeprefix("#"))
        return None if found is None else (self, found)

    def document(self) -> AmlDocument:
        """Give the whole. Raises: AmlError: it has no graph."""
        graphs = [*self.root.findall("./graph"), *self.defined["graph"].values()]
        chosen = next((g for g in graphs if g.get("kind") == "root"), graphs[0] if graphs else None)
        if chosen is None:
            kind = self.root.get("kind") or "document"
            raise AmlError(
                f"AML: found no graph in this {kind}, expected one below aml or in "
                "definitions/graphs. Add it, or import the document from one that has a graph."
            )
        return AmlDocument(
            id=self.root.get("id") or "aml.document",
            version=self.root.get("version") or AML_VERSION,
            root_graph=self.graph(chosen, is_loop=False),
            agent_definitions={
                name: {
                    "instructions": self._text(each, "instructions"),
                    "prompt_template": self._text(each, "prompt_template"),
                }
                for name, each in self.defined["agent"].items()
            },
        )

    def graph(self, said: Element, *, is_loop: bool) -> AmlGraph:
        """Give the nodes and edges of an element."""
        nodes = [self.node(each) for each in said.iterfind("./nodes/*") if each.get("id")]
        return AmlGraph(
            id=said.get("id") or "graph",
            kind=said.get("kind"),
            nodes=tuple(nodes),
            edges=tuple(_edge(each, is_loop) for each in said.iterfind("./edges/edge")),
            attributes=self._attributes(said) or {},
        )

    def node(self, said: Element) -> AmlNode:
        """Give one node. Raises: AmlError: its kind, or what it refers to, is unknown."""
        name = said.get("id", "")
        if said.tag not in _KINDS:
            raise AmlError(
                f'AML, node "{name}": found the kind {said.tag}, expected '
                f"{', '.join(_KINDS)}. Use one of them."
            )
        more: dict[str, Any] = {}
        if said.tag == "agent":
            more = self._agent(said, name)
        elif said.tag == "custom_node":
            more["forward"] = said.get("forward") or None
        elif said.tag == "loop":
            more = self._loop(said)
        elif said.tag == "graph":
            more = self._graph(said, name)
        own = {
            "pull_keys": _rule(said, "pull_keys"),
            "push_keys": _rule(said, "push_keys"),
            "attributes": self._attributes(said),
        }
        kind = "agent_switch" if said.tag == "switch" else said.tag
        whole: dict[str, Any] = own | {n: v for n, v in more.items() if v is not None}
        return AmlNode(id=name, kind=kind, label=said.get("label") or name, **whole)

    def _agent(self, said: Element, name: str) -> dict[str, Any]:
        ref = said.get("ref", "")
        found = self.find("agent", ref or name)
        if ref and found is None:
            raise AmlError(
                f'AML, node "{name}": there is no agent {ref.removeprefix("#")!r}; there are '
                f"{', '.join(self.defined['agent'])}."
            )
        library, meant = found or (self, said)
        texts = {
            part: self._text(said, part) or library._text(meant, part)
            for part in ("instructions", "prompt_template", "role_name")
        }
        return {
            "agent_ref": ref.removeprefix("#") or name,
            "instructions": texts["instructions"] or f'Do the work of "{name}".',
            "prompt_template": texts["prompt_template"] or None,
            "role_name": texts["role_name"] or meant.get("name") or None,
        }

    def _loop(self, said: Element) -> dict[str, Any]:
        ends = said.find("terminate")
        spoken = "" if ends is None else ends.get("match") or "".join(ends.itertext()).strip()
        expression = None if ends is None or spoken else ends.get("if")
        return {
            "max_iterations": int(said.get("max_iterations") or 3),
            "terminate_condition_prompt": spoken or None,
            "terminate_condition_expr": expression,
            "sub_graph": self.graph(said, is_loop=True),
        }

    def _graph(self, said: Element, name: str) -> dict[str, Any]:
        ref = said.get("ref", "")
        library, meant = self, said
        if ref:
            found = self.find("graph", ref)
            if found is None:
                raise AmlError(f'AML, node "{name}": there is no graph "{ref}". Define it.')
            library, meant = found
        if meant in library._open:
            raise AmlError(f'AML, node "{name}": the graph is inside itself. Take it out.')
        library._open.append(meant)
        try:
            inner = library.graph(meant, is_loop=False)
        finally:
            library._open.pop()
        keys = {part: _rule(meant, part) for part in ("pull_keys", "push_keys")}
        own = {part: _rule(said, part) for part in keys}
        return {
            "ref": ref.removeprefix("#") or None,
            "implementation": said.get("implementation") or meant.get("implementation"),
            "sub_graph": inner,
            "attributes": {**inner.attributes, **(self._attributes(said) or {})} or None,
            "parameters": library.parameters(meant),
            **{part: own[part] if own[part] is not None else keys[part] for part in keys},
        }

    # -- texts and values

    def _text(self, said: Element, part: str) -> str:
        """Return a text: of an attribute, or of an element, with what it includes."""
        element = said.find(part)
        if element is None:
            return (said.get(part) or "").strip()
        pieces = [element.text or ""]
        for each in element:
            if each.tag == "include":
                pieces.append(_joined(self.resource(each)))
            pieces.append(each.tail or "")
        return "\n".join(piece.strip() for piece in pieces if piece.strip())

    def resource(self, said: Element) -> Any:
        """Give what ``source`` and ``key`` name in a file of JSON.

        Raises: AmlError: there is no such resource, file or key.
        """
        source, key = said.get("source", ""), said.get("key", "")
        found = self.find("resource", source)
        if found is None:
            raise AmlError(f'AML: there is no resource "{source}". Define it in resources.')
        library, meant = found
        path = (library.folder or Path()) / meant.get("path", "")
        try:
            value: Any = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise AmlError(f'AML, resource "{source}": {path}: {error}. Mend the file.') from error
        if isinstance(value, dict) and key in value:
            return cast("dict[str, Any]", value)[key]
        for part in key.split(".") if key else ():
            if not (isinstance(value, dict) and part in value):
                raise AmlError(f'AML, resource "{source}": {path} has no "{key}". Correct key.')
            value = cast("dict[str, Any]", value)[part]
        return cast("Any", value)

    def parameters(self, said: Element) -> dict[str, Any]:
        """Give what an implementation is made with: values, texts of resources, references."""
        found = {
            each.get("name", ""): self._parameter(each)
            for each in said.iterfind("./parameters/param")
        }
        phases = said.findall("./parameters/composition/phase")
        return found | self._composed(phases) if phases else found

    def _parameter(self, said: Element) -> Any:
        entries = said.findall("entry")
        if entries:
            return {entry.get("name", ""): self.value(entry) for entry in entries}
        return self.value(said)

    def _composed(self, phases: Sequence[Element]) -> dict[str, Any]:
        """Give what a graph of phases is made with: their order, their classes, their settings.

        A phase has defaults for its settings: one that a resource lacks is left out, with a
        warning.
        """
        made: dict[str, dict[str, Any]] = {"phase_classes": {}, "phase_configs": {}}
        order: list[dict[str, Any]] = []
        for each in phases:
            ref = each.get("ref", "")
            found = self.find("graph", ref)
            if found is None:
                raise AmlError(f'AML, composition: there is no graph "{ref}". Define it.')
            library, meant = found
            name = each.get("name") or ref.rpartition("::")[2].removeprefix("#")
            made["phase_classes"][name] = ClassReference(meant.get("implementation", ""))
            settings: dict[str, Any] = {}
            for param in meant.iterfind("./parameters/param"):
                try:
                    settings[param.get("name", "")] = library._parameter(param)
                except AmlError as error:
                    warnings.warn(f"{error} The phase {name} begins without it.", stacklevel=2)
            made["phase_configs"][name] = settings
            more: dict[str, Any] = {k: v for k, v in each.items() if k not in ("ref", "name")}
            if "max_turn_step" in more:
                more["max_turn_step"] = int(more["max_turn_step"])
            order.append({"phase": name, **more})
        return {"composition": order, **made}

    def value(self, said: Element) -> Any:
        """Give the value of an element; a reference to a model or a memory as ``Reference``."""
        if said.get("ref"):
            name = said.get("ref", "").rpartition("::")[2].removeprefix("#")
            memory = self.find("memory", said.get("ref", ""))
            return Reference(name) if memory is None else MemoryReference(name, memory[1])
        if said.get("factory"):
            return Reference(said.get("factory", ""))
        source = said.get("source", "")
        if source and not source.startswith("runtime:"):
            return self.resource(said)
        text = said.get("value", said.get("default"))
        if text is None:
            text = (said.text or "").strip() or None
        kind = said.get("type")
        if kind is None or text is None:
            digits = said.tag == "param" and text is not None and text.isdigit()
            return int(cast("str", text)) if digits else text
        try:
            return _TYPES.get(kind, str)(text)
        except ValueError as error:
            raise AmlError(f'AML, "{said.get("name")}": {text!r} is no {kind}.') from error

    def _attributes(self, said: Element) -> dict[str, Any] | None:
        given = said.findall("./attributes/attribute")
        return {each.get("name", ""): self.value(each) for each in given} or None


class Reference(str):
    """The name of something that a program gives: a model, a memory, a function."""


class ClassReference(Reference):
    """The name of a class, which is given as it is."""


class MemoryReference(Reference):
    """The name of a memory that a document defines, and what it says of it."""

    facts: dict[str, str]

    def __new__(cls, name: str, said: Element) -> MemoryReference:
        made = super().__new__(cls, name)
        made.facts = dict(said.attrib)
        return made


_TYPES: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "number": float,
    "boolean": lambda text: text.strip().lower() in ("true", "1", "yes"),
    "array": lambda text: json.loads(text) if text else [],
    "object": lambda text: json.loads(text) if text else {},
}


def _joined(value: Any) -> str:
    several = cast("list[Any]", value) if isinstance(value, list) else [value]
    return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in several)


def _rule(said: Element, part: str) -> dict[str, str] | None:
    """Return ``pull_keys`` or ``push_keys``, inside attributes or not; None: all, or not said."""
    element = said.find(f"./attributes/{part}")
    element = said.find(part) if element is None else element
    return None if element is None or element.get("mode") == "all" else _fields(element)


def _fields(element: Element) -> dict[str, str]:
    return {
        each.get("name", ""): each.get("description") or each.get("type") or ""
        for each in element.findall("field")
        if each.get("name")
    }


def _edge(said: Element, is_loop: bool) -> AmlEdge:
    keys, kinds = said.find("keys"), ("if", "match")
    kind = next((kind for kind in kinds if (said.get(kind) or "").strip()), None)
    ends = ("controller", "terminate") if is_loop else ("entry", "exit")
    source, target = (
        end.upper() if end.lower() in ends else end
        for end in (said.get("from", "").strip(), said.get("to", "").strip())
    )
    return AmlEdge(
        source,
        target,
        None if kind is None else (said.get(kind) or "").strip(),
        kind,
        {} if keys is None else _fields(keys),
    )

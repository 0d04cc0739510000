"""Dialects: nodes that were written for something else, read as what they mean here; and the
memories of a graph.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from axil import ComponentRef, GraphSpec, NodeSpec, Out, PluginError, SpecError, Workflow
from axil.plugin import CompileOptions, PluginContract, Policy, Registry
from axil_files.documents import Document
from axil_files.loading import LoadOptions, inline_spec, spec_from_document
from axil_files.writer import dump_spec


class Say:
    """Says a word."""

    inline = True

    def __init__(self, word: str = "") -> None:
        self.word = word

    def run(self) -> str:
        return self.word


def spoken(node: NodeSpec, graph: GraphSpec) -> NodeSpec:
    """``utter`` with a ``phrase`` is ``say`` with a ``word``."""
    assert node.use is not None
    return replace(node, use=ComponentRef(type="say", config={"word": node.use.config["phrase"]}))


def registry(dialect: Any = spoken) -> Registry:
    made = Registry(Policy(), [])
    made.register("nodes", "say", Say)
    if dialect is not None:
        made.register("dialects", "utter", dialect)
    return made


UTTER = {"id": "A", "type": "utter", "config": {"phrase": "hello"}}


def read(node: dict[str, Any], known: Registry) -> GraphSpec:
    data = {"graph": {"id": "g", "nodes": [node], "start": "A"}}
    return spec_from_document(Document(data=data, name="flow.json"), LoadOptions(registry=known))


def test_a_node_with_a_dialect_is_read_as_what_it_means():
    known = registry()
    spec = read(UTTER, known)
    assert spec.nodes[0].use == ComponentRef(type="say", config={"word": "hello"})
    assert Workflow(spec, CompileOptions(registry=known)).invoke("")[0] == "hello"


def test_what_was_read_by_a_dialect_is_written_as_what_it_means():
    assert dump_spec(read(UTTER, registry()))["graph"]["nodes"] == [
        {"id": "A", "type": "say", "config": {"word": "hello"}}
    ]


def test_graphs_inside_are_read_by_dialects_too():
    spec = inline_spec(
        {"nodes": [UTTER], "start": "A"}, {}, reading=LoadOptions(registry=registry())
    )
    assert spec.nodes[0].use == ComponentRef(type="say", config={"word": "hello"})


def test_graphs_inside_a_file_of_version_0_are_read_as_kindly_as_it_is():
    inner = {"nodes": [UTTER], "start": "A", "colour": "red"}
    assert (
        inline_spec(inner, {"version": "0.4.0"}, reading=LoadOptions(registry=registry())).extras[
            "version"
        ]
        == "0.4.0"
    )
    with pytest.raises(SpecError, match="colour"):
        inline_spec(inner, {}, reading=LoadOptions(registry=registry()))


def test_without_its_dialect_a_type_is_unknown():
    with pytest.raises(SpecError, match=r'AX301 .*unknown node type "utter"'):
        # it is made when it is asked for
        _ = Workflow(read(UTTER, registry(None)), CompileOptions(registry=registry(None))).plan


def test_a_dialect_that_gives_no_node_is_blamed():
    with pytest.raises(PluginContract, match=r'the dialect "utter" gave dict'):
        read(UTTER, registry(lambda node, graph: {}))


def test_a_dialect_is_imported_by_files_that_have_its_nodes_only():
    class Entry:
        name, group, value, dist = "utter", "axil.dialects", "no_such_module_of_ours:read", None

    known = Registry(Policy(), [Entry()])
    known.register("nodes", "say", Say)
    assert read({"id": "A", "type": "say"}, known).nodes
    with pytest.raises(PluginError, match=r"AX304.*no_such_module_of_ours"):
        read(UTTER, known)


# ---------------------------------------------------------------------- memories


def test_a_memory_has_a_field_to_which_branches_add_side_by_side():
    class Note:
        inline = True

        def __init__(self, text: str) -> None:
            self.text = text

        def run(self) -> Out:
            return Out(
                [{"role": "user", "content": self.text}], {"memory/board": [{"text": self.text}]}
            )

    known = Registry(Policy(), [])
    known.register("nodes", "note", Note)
    nodes = [{"id": name, "type": "note", "config": {"text": name}} for name in "ABCD"]
    edges = [{"from": source, "to": target} for source, target in ("AB", "AC", "BD", "CD")]
    graph = {
        "nodes": nodes,
        "edges": edges,
        "start": "A",
        "memory": [{"name": "board", "type": "any", "config": {}}],
    }
    spec = spec_from_document(Document(data={"graph": graph}), LoadOptions(registry=known))
    _, state = Workflow(spec, CompileOptions(registry=known)).invoke("")
    assert [note["text"] for note in state["memory/board"]] == ["A", "B", "C", "D"]
    assert dump_spec(spec)["graph"]["memory"] == graph["memory"]

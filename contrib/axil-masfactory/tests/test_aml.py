"""AML of several documents: imports, resources, and what a program gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from masfactory import Graph, RootGraph
from masfactory.aml import AmlError, compile_aml, parse_aml_document

from .programs import Says

PARTS = """<aml version="0.2" kind="library" id="parts"><definitions>
<resources><resource id="words" kind="json" path="words.json"/></resources>
<agents><agent id="writer" name="Writer"><instructions><include source="words" key="how.short"/>
</instructions></agent></agents>
<graphs><graph id="write">
<attributes><pull_keys><field name="topic"/></pull_keys></attributes>
<nodes><custom_node id="before" forward="builtin:noop"/><agent id="draft" ref="#writer">
<pull_keys><field name="topic"/></pull_keys><push_keys><field name="text"/></push_keys></agent>
</nodes><edges><edge from="entry" to="before"/><edge from="before" to="draft"/>
<edge from="draft" to="exit"><keys><field name="text"/></keys></edge></edges></graph></graphs>
</definitions></aml>"""

MAIN = """<aml version="0.2" kind="graph" id="main">
<imports><import alias="parts" src="parts.aml"/></imports>
<graph id="root" kind="root">
<attributes><attribute name="tries" type="integer" default="2"/></attributes>
<nodes><graph id="write" ref="parts::write"/><logic_switch id="way"/>
<custom_node id="long" forward="python:copy.copy"/><custom_node id="short"/></nodes>
<edges><edge from="entry" to="write"/>
<edge from="write" to="way"><keys><field name="text"/></keys></edge>
<edge from="way" to="long" if="tries &gt; 5 and not empty(text)"><keys/></edge>
<edge from="way" to="short" if="tries &lt;= 5"><keys><field name="text"/></keys></edge>
<edge from="long" to="exit"/><edge from="short" to="exit"><keys><field name="text"/></keys></edge>
</edges></graph></aml>"""


@pytest.fixture
def main(tmp_path: Path) -> Path:
    (tmp_path / "words.json").write_text(json.dumps({"how": {"short": ["Write.", "Briefly."]}}))
    (tmp_path / "parts.aml").write_text(PARTS)
    (tmp_path / "main.aml").write_text(MAIN)
    return tmp_path / "main.aml"


def built(document: Any, **more: Any) -> tuple[RootGraph, Says]:
    model = Says("ferns")
    graph = RootGraph("g", attributes={"topic": "shade", "text": ""})
    inner = graph.create_node(Graph, "v")
    compile_aml(document, inner, model=model, **more)
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, {"text": ""})
    graph.build()
    return graph, model


@pytest.mark.parametrize(
    "more", [{"modules": ["copy"]}, {"given": {"python:copy.copy": lambda message: message}}]
)
def test_a_document_uses_others_and_what_is_given(main: Path, more: Any):
    graph, model = built(main, **more)
    assert graph.invoke({})[0] == {"text": "ferns"}
    assert model.asked[0][0]["content"] == "Write.\nBriefly."


def test_code_is_imported_only_where_the_program_says_so(main: Path):
    with pytest.raises(AmlError, match=r'code is not imported.*modules=\["copy"\]'):
        built(main)


@pytest.mark.parametrize(
    ("file", "old", "new", "reported"),
    [
        ("main.aml", "parts.aml", "absent.aml", "no file"),
        ("main.aml", "parts::write", "parts::read", 'no graph "parts::read"'),
        ("parts.aml", "how.short", "how.long", 'has no "how.long"'),
        ("parts.aml", 'source="words"', 'source="others"', 'no resource "others"'),
        (
            "parts.aml",
            "<definitions>",
            '<imports><import src="main.aml"/></imports><definitions>',
            "imports itself",
        ),
        ("main.aml", 'default="2"', 'default="two"', "no integer"),
        ("main.aml", 'version="0.2" kind="graph"', 'version="9" kind="graph"', "version 9"),
    ],
)
def test_what_is_wrong_in_a_document_is_said(
    main: Path, file: str, old: str, new: str, reported: str
):
    path = main.parent / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(AmlError, match=reported):
        built(main, modules=["copy"])


class Step(Graph):
    def __init__(self, name: str, words: str = "none") -> None:
        super().__init__(name)
        self.words = words


class Phases(Graph):
    def __init__(self, name: str, composition: Any, phase_classes: Any, phase_configs: Any) -> None:
        super().__init__(name)
        self.phases = [
            (each["max_turn_step"], phase_classes[each["phase"]], phase_configs[each["phase"]])
            for each in composition
        ]


COMPOSED = """<aml version="0.2" kind="graph" id="c"><definitions>
<resources><resource id="words" kind="json" path="words.json"/></resources><graphs>
<graph id="one" implementation="python:tests.Step"><parameters>
<param name="words" source="#words" key="how.short"/></parameters></graph>
<graph id="two" implementation="python:tests.Step"><parameters>
<param name="words" source="#words" key="how.absent"/></parameters></graph>
<graph id="both" implementation="python:tests.Phases"><parameters><composition>
<phase ref="#one" name="One" max_turn_step="3"/><phase ref="#two" max_turn_step="1"/>
</composition></parameters></graph></graphs></definitions>
<graph id="root" kind="root"><nodes><graph id="all" ref="#both"/></nodes>
<edges><edge from="entry" to="all"><keys/></edge><edge from="all" to="exit"><keys/></edge></edges>
</graph></aml>"""


def test_a_graph_is_composed_of_phases_that_the_document_defines(main: Path):
    (main.parent / "composed.aml").write_text(COMPOSED)
    inner = RootGraph("g").create_node(Graph, "v")
    given = {"python:tests.Step": Step, "python:tests.Phases": Phases}
    with pytest.warns(UserWarning, match='"how.absent".*The phase two begins without it'):
        compile_aml(main.parent / "composed.aml", inner, model=Says("x"), given=given)
    (made,) = inner.nodes
    assert isinstance(made, Phases)
    words = {"words": ["Write.", "Briefly."]}
    assert made.phases == [(3, Step, words), (1, Step, {})]


def test_a_library_is_no_graph_of_its_own():
    with pytest.raises(AmlError, match="no graph in this library"):
        parse_aml_document('<aml version="0.2" kind="library" id="l"/>')

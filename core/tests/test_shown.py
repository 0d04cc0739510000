"""Laws of a result in an interpreter and in a notebook: short, escaped, without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from axil import Question, Result, RootGraph, Workflow
from axil.secrecy import forget_secrets, keep_secret


def result(**fields: Any) -> Result[Any]:
    return Result(status="done", run_id="r1", **fields)


@pytest.fixture
def secret() -> Iterator[str]:
    keep_secret(text := "sk-1234567890abcdef")
    yield text
    forget_secrets()


def test_a_repr_says_how_the_run_ended_and_not_its_state():
    text = repr(result(output={"text": "Hello."}, attributes={"notes": "x" * 10_000}))
    assert text.startswith("Result(status='done', run_id='r1', output={'text': 'Hello.'}, usage=")
    assert "notes" not in text
    assert "questions" not in text


def test_a_table_has_a_row_for_each_field_of_the_output_and_each_question():
    asked = Question(text="Sign as?", node="sign")
    html = result(output={"title": "a", "text": "b\nc"}, questions=(asked,))._repr_html_()
    rows = html.count("<tr>")
    assert rows == 6  # status, run_id, two fields, a question, usage
    assert ">0 firings, 0.00 s</td>" in html
    for head, text in (("title", "a"), ("text", "b\nc"), ("asked by sign", "Sign as?")):
        assert f"<th>{head}</th>" in html
        assert f">{text}</td>" in html


def test_what_is_shown_is_escaped():
    said = "<img src=x onerror=alert(1)>"
    html = result(output={said: said})._repr_html_()
    assert "<img" not in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;") == 2
    assert "\u202e" not in repr(result(output="pay\u202e"))
    assert "\u202e" not in result(output="pay\u202e")._repr_html_()


def test_what_is_shown_is_short():
    large = result(output={f"f{n}": "x" * 10_000 for n in range(100)})
    assert len(repr(large)) < 1500
    assert len(large._repr_html_()) < 120_000
    assert "… 53 more" in large._repr_html_()


@pytest.mark.parametrize("before", [0, 293, 1995])
def test_a_secret_is_not_shown_where_a_text_is_cut_either(secret, before):
    holding = result(output="x" * before + secret)
    for shown in (repr(holding), holding._repr_html_()):
        assert secret[:6] not in shown


def test_a_workflow_says_what_it_holds():
    graph = RootGraph("brief")
    graph.edge_from_entry(graph.create_node(lambda text: {"text": text}, name="say"), ["text"])
    graph.edge_to_exit("say", ["text"])
    assert repr(Workflow(graph.build().spec)) == ('<Workflow "brief": 1 nodes, 2 edges>')

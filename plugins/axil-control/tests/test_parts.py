"""Laws of splitting messages into items."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from axil.plugin import message
from axil_control.errors import InputError
from axil_control.fans import MapConfig


def items(text: Any, kind: str = "message", **config: Any) -> list[Any]:
    split = {"type": kind, "config": config} if config else kind
    return [m["content"] for m in MapConfig(split=split).items([message(text)])[1]]


def test_a_message_is_an_item():
    assert items("a b") == ["a b"]


@pytest.mark.parametrize(
    "split",
    [
        None,
        "message",
        {"type": "message"},
        {"type": "message", "config": {}},
        {"type": "message", "config": None},
    ],
)
def test_without_a_split_each_message_is_an_item(split):
    assert MapConfig(split=split).items([message("a"), message("b")]) == (
        [],
        [message("a"), message("b")],
    )


@pytest.mark.parametrize(
    ("config", "text", "found"),
    [
        ({"pattern": r"item\d"}, "item1 item2", ["item1", "item2"]),
        ({"pattern": r"(\w):(\d)?", "group": 2}, "a:1 b:", ["1", ""]),
        ({"pattern": r"(.*?)<br>", "group": ""}, "a<br>b<br>", ["a<br>", "b<br>"]),
        ({"pattern": "A", "case_sensitive": False}, "aA", ["a", "A"]),
        ({"pattern": "x"}, "abc", ["abc"]),
        ({"pattern": "x", "on_no_match": "empty"}, "abc", [""]),
    ],
)
def test_each_match_is_an_item(config, text, found):
    assert items(text, "regex", **config) == found


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("", '["a", {"b": 1}]', ["a", '{"b": 1}']),
        ("", '{"a": 1}', ['{"a": 1}']),
        ("data.rows", '{"data": {"rows": [1, 2]}}', ["1", "2"]),
        ("rows.1", '{"rows": [[1], [2, 3]]}', ["2", "3"]),
        ("rows[1][0]", '{"rows": [[1], ["é"]]}', ["é"]),
        ("$.rows[*]", '{"rows": ["a", "b"]}', ["a", "b"]),
        ("$.rows[*].name", '{"rows": [{"name": "a"}, {"name": "b"}]}', ["a", "b"]),
        ('["a b"].my-key', '{"a b": {"my-key": [7]}}', ["7"]),
        ("rows", '{"rows": []}', []),
        ("rows", '{"rows": [true, null, 1.0]}', ["true", "null", "1.0"]),
        ("rows", "not JSON", ["not JSON"]),
    ],
)
def test_each_element_at_a_path_is_an_item(path, text, found):
    assert items(text, "json_path", json_path=path) == found


def test_data_that_is_no_text_is_split_as_it_is():
    assert items(["a", {"b": 1}], "json_path", json_path="") == ["a", '{"b": 1}']


@pytest.mark.parametrize("path", ["rows", "items.5", "items[0].x"])
def test_a_document_with_nothing_at_the_path_is_one_item(path):
    assert items('{"items": [1, 2]}', "json_path", json_path=path) == ['{"items": [1, 2]}']


def test_asking_for_every_element_of_what_has_none_is_an_error():
    with pytest.raises(InputError, match="every element of 'k'"):
        items('{"kind": "k"}', "json_path", json_path="$.kind[*]")


@pytest.mark.parametrize(
    "split",
    [
        "words",
        {"type": "regex"},
        {"type": "regex", "config": {"pattern": "("}},
        {"type": "json_path", "config": {"json_path": "a[b"}},
        {"type": "message", "config": {"pattern": "a"}},
    ],
)
def test_a_split_that_is_none_is_refused(split):
    with pytest.raises(ValidationError):
        MapConfig(split=split)


def test_messages_of_other_sources_are_the_same_for_all_items():
    config = MapConfig(edges=("A",), split={"type": "regex", "config": {"pattern": r"\d"}})
    came = [message("s 1", source="S"), message("2 3", source="A"), message("t", source="T")]
    static, found = config.items(came)
    assert static == [came[0], came[2]]
    assert found == [message("2", source="A"), message("3", source="A")]


def test_a_part_is_by_whom_its_message_is_and_has_none_of_its_marks():
    assert MapConfig(split={"type": "regex", "config": {"pattern": "a"}}).items(
        [message("xa", "assistant", source="S", keep=True, preserve_role=True)]
    )[1] == [message("a", "assistant", source="S")]


def test_brackets_inside_each_other_without_end_are_one_item():
    text = "[" * 200_000
    assert items(text, "json_path", json_path="a") == [text]

"""Laws of schemas that files bring: nothing is fetched or read, and every validation ends."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import BoundedSchema, NotInstalled, PatternFault, PatternLimit


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "object", "required": ["a"]}, {"a": 1}, True),
        ({"type": "object", "required": ["a"]}, {}, False),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string"}, 1, False),
        ({"properties": {"a": {"pattern": "^x+$"}}}, {"a": "xx"}, True),
        ({"properties": {"a": {"pattern": "^x+$"}}}, {"a": "y"}, False),
        ({"patternProperties": {"^a": {"type": "string"}}}, {"ab": 1}, False),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1, "b": 2}, False),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}, True),
        ({"additionalProperties": {"type": "string"}}, {"b": 2}, False),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], False),
        ({"uniqueItems": True}, [1, True, "1"], True),
        ({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}, [1, 2], True),
        ({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}, [1, "2"], False),
        ({"const": {"$schema": "x"}}, {"$schema": "x"}, True),
    ],
)
def test_values_are_held_against_a_schema(schema: Any, value: Any, fits: bool):
    assert (BoundedSchema(schema).first_fault(value) is None) is fits


def test_a_fault_says_where_it_is_and_what_it_breaks():
    found = BoundedSchema({"items": {"type": "integer"}}).first_fault([1, "x"])
    assert found is not None
    assert (found.path, found.keyword) == ("$[1]", "type")


def test_a_schema_reads_no_file_and_calls_no_host(tmp_path: Path):
    fifo, plain = tmp_path / "fifo", tmp_path / "plain.json"
    os.mkfifo(fifo)
    plain.write_text('{"type": "string"}', "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        page = f"http://127.0.0.1:{server.getsockname()[1]}/schema"
        for place in (page, fifo.as_uri(), plain.as_uri(), "file:///dev/zero", "plain.json"):
            for word in ("$ref", "$dynamicRef"):
                with pytest.raises(PatternFault, match="AX637"):
                    BoundedSchema({word: place}).first_fault({})
        with pytest.raises(TimeoutError):
            server.accept()  # nobody has called


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {
            "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 3} for n in range(30)}
            | {"d30": {}},
            "$ref": "#/$defs/d0",
        },
    ],
    ids=["circle", "two circles", "doubled"],
)
def test_references_that_never_end_or_multiply_are_an_error(schema: Any):
    with pytest.raises(PatternLimit, match="AX638"):
        BoundedSchema(schema).first_fault({})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a|aa)+$"}, "a" * 60 + "b"),
        ({"patternProperties": {"^(a|aa)+$": {}}}, {"a" * 60 + "b": 1}),
        (
            {"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False},
            {"a" * 60 + "b": 1},
        ),
    ],
)
def test_a_pattern_that_searches_for_ever_ends(schema: Any, value: Any, monkeypatch: Any):
    monkeypatch.setattr("axil.patterns.schemas._SECONDS", 0.05)
    with pytest.raises(PatternLimit):
        BoundedSchema(schema).first_fault(value)


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "strnig"}, "strnig"),
        ({"pattern": "("}, "AX601"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"items": {"$schema": "http://json-schema.org/draft-07/schema#"}}, "names a draft"),
    ],
)
def test_what_is_no_usable_schema_is_refused(schema: Any, found: str):
    with pytest.raises(PatternFault, match=found):
        BoundedSchema(schema).first_fault({} if "pattern" not in schema else "x")


@pytest.mark.parametrize("library", ["jsonschema", "jsonschema_specifications"])
def test_a_missing_library_is_named_with_the_extra_that_brings_it(library: str, monkeypatch: Any):
    for name in [each for each in sys.modules if each.partition(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        NotInstalled, match=r"(?s)AX306 .*the library jsonschema.*core.*\[schemas\]"
    ):
        BoundedSchema({})

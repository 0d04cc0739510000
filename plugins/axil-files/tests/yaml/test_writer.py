"""Data that is written as YAML is read as the same data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from axil_files import dump_yaml, parse_yaml

# no surrogates, and none of the characters that YAML has no place for
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t"))
SCALARS = TEXTS | st.integers(-(2**63), 2**63) | st.booleans() | st.none()
DATA = st.dictionaries(
    TEXTS,
    st.recursive(
        SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20
    ),
    max_size=5,
)


@given(DATA)
@example({"a": "1e5", "b": ["-2e-3", "0.5e3", "1.", "012"], "c": {"d": "yes"}})
def test_any_plain_data_comes_back(data: dict[str, Any]):
    assert parse_yaml(dump_yaml(data), "f.yaml").data == data


def test_it_reads_as_workflow_files_are_written():
    edges = [{"from": "a", "to": "b"}] * 2
    text = "edges:\n  - from: a\n    to: b\n  - from: a\n    to: b\nsays: |-\n  one\n  two\n"
    assert dump_yaml({"edges": edges, "says": "one\ntwo"}) == text
    with pytest.raises(Exception, match="cannot represent"):
        dump_yaml({"a": object()})

"""Laws of texts as people are shown them."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from axil.plugin import is_hidden, legible

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.text())
def test_a_legible_text_hides_nothing(text):
    assert not any(map(is_hidden, legible(text)))


@given(JSON)
def test_a_legible_json_text_means_the_same(value):
    assert json.loads(legible(json.dumps(value, ensure_ascii=False, indent=2))) == value


def test_what_people_read_stays_as_it_is():
    text = "Größe: 5 µm\n\t日本語 👍 é"
    assert legible(text) == text

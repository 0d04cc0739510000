"""The names of activations, and the plain data that moves."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from axil.kernel.tokens import Activation, Out, Token, inner_frame, next_ordinal, path_of


def test_an_activation_is_named_by_frame_node_and_ordinal():
    assert str(Activation((), "a")) == "a"
    assert str(Activation(("loop", 2, "sub"), "w")) == "loop/2/sub/w"
    assert str(Activation((), "w", (0, 3))) == "w#0.3"


def test_a_path_leaves_out_rounds_cycles_and_ordinals():
    assert path_of(("cycle(a,b)", 3, "sub", "#1.2", 0), "w") == "sub/w"
    assert Activation(("sub",), "w", (1,)).path == "sub/w"


def test_each_firing_of_a_node_opens_a_frame_of_its_own():
    assert inner_frame((), "sub", ()) == ("sub",)
    assert inner_frame(("x", 1), "sub", (0, 2)) == ("x", 1, "sub", "#0.2")


def test_an_ordinal_says_on_which_edge_the_token_came_and_whence_it_came():
    assert next_ordinal(2, ()) == (2,)
    assert next_ordinal(0, (2,)) == (2, 0)


@given(
    st.lists(
        st.lists(st.integers(0, 3), min_size=1, max_size=60),
        min_size=2,
        max_size=2,
        unique_by=tuple,
    )
)
def test_different_histories_have_different_ordinals(histories):
    names = []
    for history in histories:
        ordinal: tuple[int, ...] = ()
        for position in history:
            ordinal = next_ordinal(position, ordinal)
        names.append(ordinal)
    assert names[0] != names[1]


def test_an_ordinal_stays_small_however_long_its_history():
    ordinal: tuple[int, ...] = ()
    for _ in range(10_000):
        ordinal = next_ordinal(1, ordinal)
    assert len(ordinal) <= 24


def test_tokens_and_outcomes_are_frozen():
    with pytest.raises(AttributeError):
        Token(0, {}, None).payload = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Out().output = 1  # type: ignore[misc]


def test_an_outcome_without_words_carries_nothing_and_goes_everywhere():
    assert (Out().output, Out().delta, Out().to) == (None, {}, None)

"""Logs share and never change; isolation copies containers and nothing else."""

from __future__ import annotations

import copy
import dataclasses
import threading

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from axil.kernel.values import MISSING, Log, isolate, same_value, thaw

# a failure prints how to repeat it; no law is about seconds
law = settings(deadline=None, print_blob=True)
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


class Logs(RuleBasedStateMachine):
    """Any tree of versions behaves as lists that are copied each time."""

    @initialize(items=st.lists(st.integers(0, 9)))
    def start(self, items):
        self.pairs = [(Log(items), list(items))]

    @rule(data=st.data(), items=st.lists(st.integers(0, 9), max_size=3))
    def extend(self, data, items):
        log, model = data.draw(st.sampled_from(self.pairs))
        self.pairs.append((log.extended(items), model + items))

    @rule()
    def compare(self):
        for log, model in self.pairs:
            assert list(log) == model
            assert len(log) == len(model)
            assert log == model
            assert log[-2:] == model[-2:]
            assert [log[i] for i in range(-len(model), len(model))] == [
                model[i] for i in range(-len(model), len(model))
            ]
            for other, begins in self.pairs:
                if log.extends(other):
                    assert model[: len(begins)] == begins
                    assert list(log.after(len(begins))) == model[len(begins) :]

    def teardown(self):
        if hasattr(self, "pairs"):
            self.compare()


TestLogsBehaveAsCopiedLists = Logs.TestCase
TestLogsBehaveAsCopiedLists.settings = settings(law, max_examples=50, stateful_step_count=30)


def test_a_log_extended_by_itself_ends():
    log = Log([1, 2])
    assert log.extended(log) == [1, 2, 1, 2]


def test_changing_an_item_of_a_log_does_not_change_the_log():
    log = Log([{"a": [1]}])
    log[0]["a"].append(2)
    next(iter(log))["b"] = 3
    log[:][0].clear()
    assert log == [{"a": [1]}]


def test_a_log_is_not_a_list_but_adds_up_with_lists():
    log = Log([1])
    # the operators are what is tested
    assert (log + [2], [0] + log) == ([1, 2], [0, 1])  # noqa: RUF005
    with pytest.raises(TypeError):
        hash(log)


def test_extending_a_growing_log_moves_no_earlier_item():
    log = Log()
    for number in range(1000):
        grown = log.extended([number])
        assert grown._buffer is log._buffer
        assert grown.extends(log)
        assert not log.extends(grown)
        log = grown


@law
@given(plain_values)
def test_what_is_isolated_is_equal_and_shares_no_container(value):
    def containers(value):
        if isinstance(value, (list, dict)):
            yield id(value)
        for item in (
            value.values()
            if isinstance(value, dict)
            else value
            if isinstance(value, (list, tuple))
            else ()
        ):
            yield from containers(item)

    own = isolate(value)
    assert own == value
    assert set(containers(own)).isdisjoint(containers(value))


def test_what_cannot_change_is_not_copied():
    for value in ("text", 1, None, Log([[1]]), (1, ("a",)), frozenset({1}), range(3), MISSING):
        assert isolate(value) is value


def test_an_object_that_is_no_container_is_shared():
    lock = threading.Lock()
    assert isolate({"lock": lock})["lock"] is lock


def test_a_dataclass_is_copied_all_the_way_down_unless_it_is_frozen():
    @dataclasses.dataclass
    class Open:
        items: list[int]

    @dataclasses.dataclass(frozen=True)
    class Closed:
        items: tuple[int, ...]

    before, frozen = Open([1]), Closed((1,))
    own = isolate(before)
    own.items.append(2)
    assert before.items == [1]
    assert isolate(frozen) is frozen


@law
@given(plain_values)
def test_what_is_thawed_holds_no_log(value):
    assert thaw({"log": Log([value]), "value": value}) == {"log": [value], "value": value}
    assert type(thaw(Log([value]))) is list


def test_there_is_one_missing():
    assert copy.deepcopy(MISSING) is MISSING
    assert copy.copy(MISSING) is MISSING
    assert not MISSING


def test_values_of_two_types_are_not_the_same():
    assert not same_value(1, True)
    assert not same_value([1], Log([1]))
    assert same_value(Log([1]), Log([1]))


def test_values_that_cannot_be_compared_are_not_the_same():
    class Odd:
        def __eq__(self, other):
            raise ValueError("no truth in me")

        __hash__ = None

    odd = Odd()
    assert same_value(odd, odd)
    assert not same_value(odd, Odd())

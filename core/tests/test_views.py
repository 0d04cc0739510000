"""Views of the state: copied when touched, the same object from then on, never the state's own."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pydantic import BaseModel

from axil.contract.views import (
    Fields,
    InstanceView,
    StateView,
    Thawed,
    fields_of,
    values_of,
    without_views,
)
from axil.errors import StateError
from axil.kernel.state import Field, Schema
from axil.kernel.values import MISSING, Log, isolate, thaw

# a failure prints how to repeat it; no law is about seconds
law = settings(deadline=None, print_blob=True)


class Untouchable(dict):
    """A container that may not be copied."""

    def __copy__(self):
        raise AssertionError("copied without being touched")

    __deepcopy__ = None


def state_of(**values: Any):
    return Schema().start(values)


# --------------------------------------------------------------------------------------------------

names = st.sampled_from("abc")
small = st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2)


class Views(RuleBasedStateMachine):
    """A view behaves as a deep copy of the state would, and the state never changes."""

    @initialize(values=st.dictionaries(names, small))
    def start(self, values):
        self.before = copy.deepcopy(values)
        self.state = state_of(**values, **{"@node/x": 1})
        self.view, self.model, self.assigned = StateView(self.state), copy.deepcopy(values), {}

    @rule(name=names, value=small)
    def assign(self, name, value):
        self.view[name] = value
        self.model[name] = copy.deepcopy(value)
        self.assigned[name] = self.model[name]

    @rule(name=names)
    def delete(self, name):
        if name in self.model:
            del self.view[name], self.model[name]
            self.assigned.pop(name, None)
        else:
            with pytest.raises(KeyError):
                del self.view[name]

    @rule(name=names)
    def read(self, name):
        assert self.view.get(name, MISSING) == self.model.get(name, MISSING)
        assert self.view.get(name) is self.view.get(name)
        assert (name in self.view) == (name in self.model)

    @rule(name=names)
    def change_in_place(self, name):
        if isinstance(self.model.get(name), list):
            self.view[name].append(9)
            self.model[name].append(9)

    @rule()
    def read_all(self):
        assert dict(self.view) == self.view.copy() == {**self.view} == self.model
        assert sorted(self.view) == sorted(self.model)

    @invariant()
    def agree(self):
        if hasattr(self, "view"):
            assert self.view == self.model
            assert len(self.view) == len(self.model)
            assert values_of(self.view, written=True) == self.assigned
            assert {
                name: value for name, value in self.state.items() if name != "@node/x"
            } == self.before


TestAViewBehavesAsACopyOfTheState = Views.TestCase
TestAViewBehavesAsACopyOfTheState.settings = settings(law, max_examples=60, stateful_step_count=30)


def test_a_view_copies_only_what_is_touched():
    view = StateView(state_of(big=Untouchable(a=1), items=[1]))
    view["items"].append(2)
    assert view == {"big": {"a": 1}, "items": [1, 2]}
    assert (len(view), list(view), "big" in view, view.written) == (2, ["big", "items"], True, {})
    assert repr(view) == "StateView({'big': {'a': 1}, 'items': [1, 2]})"
    with pytest.raises(AssertionError, match="copied"):
        view["big"]


def test_making_a_view_asks_the_state_nothing():
    StateView(None)  # type: ignore[arg-type]  # the point


def test_the_kernels_fields_are_not_seen_and_cannot_be_assigned():
    view = StateView(state_of(**{"a": 1, "@node/x": 2}))
    assert ("@node/x" in view, view.get("@node/x"), dict(view)) == (False, None, {"a": 1})
    for name in ("@node/x", 3):
        with pytest.raises(StateError, match="AX203"):
            view[name] = 1


def test_an_absent_key_says_whether_it_was_never_written_or_is_not_declared():
    view = StateView(Schema("State", {"when": Field("when")}, closed=True).start())
    with pytest.raises(KeyError, match='"when" of State was never written and has no default'):
        view["when"]
    with pytest.raises(KeyError, match='State has no "mesages"'):
        view["mesages"]
    with pytest.raises(KeyError):
        view[3]


def test_views_unite_with_dicts_into_dicts():
    view = StateView(state_of(a=1))
    assert (view | {"b": 2}, {"a": 0, "b": 2} | view) == ({"a": 1, "b": 2}, {"a": 1, "b": 2})


def test_a_copied_or_pickled_view_is_a_dict():
    view = StateView(state_of(a=[1]))
    deep = copy.deepcopy(view)
    # our own bytes
    thawed = pickle.loads(pickle.dumps(view))  # noqa: S301
    assert type(copy.copy(view)) is type(deep) is type(thawed) is dict
    assert deep["a"] is not view["a"]
    assert copy.copy(view)["a"] is view["a"]


def test_importing_views_does_not_import_pydantic():
    code = "import sys, axil.contract.views; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --------------------------------------------------------------------------------------------------


WAYS_TO_TAKE_ALL = [
    dict, copy.deepcopy, lambda f: {**f}, lambda f: {**{}, **f}, lambda f: f | {},
    lambda f: {} | f, lambda f: dict(f.items()),
    lambda f: dict(zip(f, f.values(), strict=True)), lambda f: {key: f[key] for key in f},
    lambda f: (lambda **kw: kw)(**f),
    lambda f: {**f.copy()},
]  # fmt: skip


class Payloads(RuleBasedStateMachine):
    """Fields behave as a deep copy of the payload would, and the payload never changes."""

    @initialize(values=st.dictionaries(names, small))
    def start(self, values):
        self.payload, self.before = values, copy.deepcopy(values)
        self.fields, self.model = Fields(values), copy.deepcopy(values)

    @rule(name=names)
    def read(self, name):
        assert self.fields.get(name, MISSING) == self.model.get(name, MISSING)
        assert self.fields.get(name) is self.fields.get(name)

    @rule(name=names)
    def change_in_place(self, name):
        if isinstance(self.model.get(name), list):
            self.fields[name].append(9)
            self.model[name].append(9)

    @rule(name=names, value=small)
    def assign(self, name, value):
        self.fields[name] = value
        assert self.fields[name] is value
        self.model[name] = copy.deepcopy(value)

    @rule(values=st.dictionaries(names, small), way=st.integers(0, 1))
    def update(self, values, way):
        if way:
            self.fields.update(values)
        else:
            self.fields |= values
        self.model.update(copy.deepcopy(values))

    @rule(name=names, value=small)
    def setdefault(self, name, value):
        assert self.fields.setdefault(name, value) == self.model.setdefault(
            name, copy.deepcopy(value)
        )
        assert self.fields.setdefault(name, value) is self.fields[name]

    @rule(name=names)
    def pop(self, name):
        popped, expected = self.fields.pop(name, None), self.model.pop(name, None)
        assert popped == expected
        if isinstance(popped, list):
            popped.append(9)

    @rule()
    def popitem(self):
        if self.model:
            (name, popped), expected = self.fields.popitem(), self.model.popitem()
            assert (name, popped) == expected
            if isinstance(popped, list):
                popped.append(9)

    @rule(way=st.sampled_from(WAYS_TO_TAKE_ALL))
    def take_all_and_change_it(self, way):
        taken = way(self.fields)
        assert taken == self.model
        for name, value in taken.items():
            if isinstance(value, list):
                value.append(9)
                assert self.payload.get(name) is not value
        self.model = copy.deepcopy(dict(self.fields))

    @invariant()
    def agree(self):
        if hasattr(self, "fields"):
            assert self.fields == self.model
            assert (len(self.fields), list(self.fields), repr(self.fields)) == (
                len(self.model),
                list(self.model),
                repr(self.model),
            )
            assert self.fields.raw() == self.model
            assert self.payload == self.before


TestFieldsBehaveAsACopyOfThePayload = Payloads.TestCase
TestFieldsBehaveAsACopyOfThePayload.settings = settings(
    law, max_examples=60, stateful_step_count=30
)


def test_a_value_that_is_not_read_is_not_copied():
    fields = Fields({"big": Untouchable(a=1), "small": [1]})
    fields["small"].append(2)
    assert fields == {"big": {"a": 1}, "small": [1, 2]}
    raw = fields.raw()
    assert type(raw["big"]) is Untouchable
    assert Fields(fields).raw()["big"] is raw["big"]
    for touch in (
        lambda: fields["big"],
        lambda: dict(fields),
        fields.items,
        lambda: fields.pop("big"),
    ):
        with pytest.raises(AssertionError, match="copied"):
            touch()


def test_fields_match_patterns_like_any_dict():
    payload = {"a": [1], "b": 2}
    match fields_of(payload):
        case {"a": [first], "b": b, **rest}:
            assert (first, b, rest) == (1, 2, {})
        case _:
            pytest.fail("no match")


def test_a_payload_of_scalars_becomes_a_plain_dict():
    payload = {"a": 1, "b": "x", "c": None}
    given = fields_of(payload)
    assert type(given) is dict
    assert given == payload
    assert given is not payload
    assert type(fields_of({"a": []})) is Fields


@pytest.mark.parametrize("look", [lambda fields: fields["a"], lambda fields: fields.pop("a")])
def test_a_missing_key_is_a_key_error(look):
    with pytest.raises(KeyError):
        look(Fields())


def test_pickled_fields_are_a_dict():
    # our own bytes
    assert type(pickle.loads(pickle.dumps(Fields({"a": [1]})))) is dict  # noqa: S301


# --------------------------------------------------------------------------------------------------


class Whole(BaseModel):
    n: int = 0
    m: int = 2


SHOWN = Whole(n=1)


class Shown(InstanceView):
    """A view that stands for an instance."""

    __slots__ = ()

    def __axil_instance__(self) -> Any:
        return SHOWN


def test_plain_returns_what_holds_no_view_as_it_is():
    value = {"a": [1, (2, {"b": Log([1])})], "c": {1}}
    assert without_views(value) is value


def test_plain_unwraps_views_at_any_depth_without_copying_what_is_untouched():
    big = Untouchable(a=1)
    shown = StateView(state_of(big=big, n=1))
    found = without_views({"list": [shown, (Fields({"big": big}),)], "shown": Shown()})
    assert type(found["list"][0]) is type(found["list"][1][0]) is dict
    assert found["list"][0]["big"] is found["list"][1][0]["big"] is big
    assert found["shown"] == SHOWN


def test_values_of_a_view_are_all_it_shows_or_what_was_assigned():
    shown = StateView(state_of(a=1, b=2))
    shown["b"] = 3
    assert values_of(shown) == {"a": 1, "b": 3}
    assert values_of(shown, written=True) == {"b": 3}
    assert values_of(Shown()) == {"n": 1, "m": 2}
    assert values_of(Shown(), written=True) == {"n": 1}


def test_values_of_a_model_instance_are_its_fields_or_those_it_was_given():
    given = Whole(n=1)
    assert values_of(given, written=True) == {"n": 1}
    assert values_of(given)["m"] == 2


@pytest.mark.parametrize(
    ("given", "values"),
    [(None, {}), ({"a": 1}, {"a": 1}), ("text", None), ([1], None), (3, None), (Whole, None)],
)
def test_values_of_anything_else(given, values):
    assert values_of(given) == values


@law
@given(st.dictionaries(names, small))
def test_values_go_through_a_view_and_back_unchanged(values):
    assert without_views(StateView(state_of(**values))) == without_views(Fields(values)) == values


# ------------------------------------------------------------------------------------------------ w


def test_what_a_caller_keeps_is_made_when_it_is_read_and_is_the_callers_own():
    records, log = [{"id": 1}], Log([{"id": 2}])
    kept = Thawed({"records": records, "log": log, "n": 3})
    assert kept.raw()["records"] is records
    kept["records"][0]["id"] = kept["log"][0]["id"] = 9
    assert (records, list(log)) == ([{"id": 1}], [{"id": 2}])
    assert kept == {"records": [{"id": 9}], "log": [{"id": 9}], "n": 3}
    assert type(kept["log"]) is list


@pytest.mark.parametrize(
    "way",
    [
        dict,
        copy.copy,
        copy.deepcopy,
        lambda kept: {**kept},
        lambda kept: json.loads(json.dumps(kept)),
        thaw,
        isolate,
    ],
)
def test_what_a_caller_keeps_is_plain_however_it_is_copied(way):
    log = Log([{"id": 2}])
    made = way(Thawed({"log": log}))
    assert made == {"log": [{"id": 2}]}
    assert type(made["log"]) is list
    made["log"][0]["id"] = 9
    assert list(log) == [{"id": 2}]


def test_what_a_caller_keeps_shows_itself_as_a_dict():
    assert repr(Thawed({"log": Log([1])})) == "{'log': [1]}"

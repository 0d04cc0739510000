"""States as instances of pydantic models."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, computed_field

from axil import MISSING, schema_of
from axil.plugin import without_views
from axil.typed.views import ModelView, safe_get_attr


class Inner(BaseModel):
    tags: list[str] = []


class Brief(BaseModel):
    topic: str = "axils"
    notes: Annotated[list[str], "append"]
    inner: Inner = Inner()
    table: dict[str, list[int]] = {}
    due: int | str
    writes: int = 0
    _secret: int = 7

    def headline(self) -> str:
        return f"{self.topic}: {len(self.notes)}"

    def retitle(self) -> None:
        self.topic = "retitled"

    @property
    def loud(self) -> str:
        return self.topic.upper()

    @computed_field
    @property
    def size(self) -> int:
        return len(self.notes)

    def __len__(self) -> int:
        return len(self.notes)

    def __contains__(self, note: str) -> bool:
        return note in self.notes


SCHEMA = schema_of(Brief)


@pytest.fixture
def state():
    return SCHEMA.start().apply(
        SCHEMA.check({"notes": ["a"], "inner": {"tags": ["x"]}, "table": {"k": [1]}})
    )


@pytest.fixture
def view(state) -> Any:
    assert SCHEMA.view is not None
    return SCHEMA.view(state)


def test_a_model_view_is_an_instance_of_the_model(view):
    assert isinstance(view, Brief)
    assert isinstance(view, BaseModel)
    assert view.__class__ is Brief
    assert not isinstance(view, Inner)


def test_a_field_is_copied_once_and_only_when_read(view, state):
    view.inner.tags.append("y")
    view.table["k"].append(2)
    assert (view.inner.tags, view.table) == (["x", "y"], {"k": [1, 2]})
    assert view.inner is view.inner
    assert (state["inner"].tags, state["table"]) == (["x"], {"k": [1]})
    assert set(view._axil_kept) == {"inner", "table"}


def test_methods_properties_and_dumps_work_on_a_model_view(view):
    assert (view.headline(), view.loud, view.size, view._secret) == ("axils: 1", "AXILS", 1, 7)
    assert view.model_dump(exclude={"inner", "table"}) == {
        "topic": "axils",
        "notes": ["a"],
        "writes": 0,
        "size": 1,
    }
    assert json.loads(view.model_dump_json())["notes"] == ["a"]
    assert (len(view), "a" in view, "b" in view) == (1, True, False)
    assert repr(view) == repr(view.model_copy())
    assert {"headline", "topic"} <= set(dir(view))


def test_assignments_and_methods_see_each_other(view, state):
    view.topic = "mine"
    assert view.headline() == "mine: 1"
    view.topic = "again"
    assert view.headline() == "again: 1"
    view.retitle()
    assert view.topic == "retitled"
    assert state["topic"] == "axils"


def test_a_value_read_before_the_model_is_made_is_the_models(view):
    table = view.table
    assert view.model_copy().table is table
    assert view.table is table


def test_an_absent_field_is_an_attribute_error_that_says_so(view):
    for look in (lambda: view.due, lambda: view.headline() and view.due):
        with pytest.raises(
            AttributeError, match='"due" of Brief was never written and has no default'
        ):
            look()
    assert not hasattr(view, "due")
    assert not hasattr(view, "strange")


def test_a_deleted_field_is_absent_even_if_the_model_has_a_default(view):
    del view.topic
    assert not hasattr(view, "topic")
    assert "topic" not in view.model_dump(exclude={"size"})
    view.topic = "back"
    del view.topic
    assert not hasattr(view, "topic")


def test_an_undeclared_attribute_cannot_be_assigned(view):
    with pytest.raises(ValueError, match="strange"):
        view.strange = 1


def test_a_frozen_model_stays_frozen():
    class Frozen(BaseModel, frozen=True):
        n: int = 1

    schema = schema_of(Frozen)
    view = schema.view(schema.start())
    with pytest.raises(AttributeError, match="frozen"):
        view.n = 2
    assert hash(view) == hash(Frozen())


def test_model_views_compare_as_the_models_they_stand_for(view, state):
    model = Brief.model_construct(
        topic="axils", notes=["a"], inner=Inner(tags=["x"]), table={"k": [1]}, writes=0
    )
    model.__dict__.pop("due", None)
    assert view == model
    assert model == view
    assert view == SCHEMA.view(state)
    assert view != 3
    with pytest.raises(TypeError):
        hash(view)


def test_a_copied_or_pickled_model_view_is_a_model(view):
    # our own bytes
    thawed = pickle.loads(pickle.dumps(view))  # noqa: S301
    for own in (copy.copy(view), copy.deepcopy(view), thawed):
        assert type(own) is Brief
        assert own.notes == ["a"]


def test_only_what_was_assigned_counts_as_set(view):
    view.topic = "mine"
    assert view.model_copy(update={"writes": 1}).model_fields_set == {"topic", "writes"}


def test_a_model_that_takes_extra_fields_shows_them():
    class Open(BaseModel, extra="allow"):
        n: int = 1

    schema = schema_of(Open)
    view: Any = schema.view(schema.start({"more": [1]}))
    view.more.append(2)
    assert view.more == [1, 2]
    view.other = 3
    assert view.model_dump() == {"n": 1, "more": [1, 2], "other": 3}
    assert (view.more, view.other) == ([1, 2], 3)


def test_without_views_a_model_is_in_the_place_of_its_view(view):
    view.topic = "mine"
    found = without_views({"model": [view]})["model"][0]
    assert type(found) is Brief
    assert type(found) is not ModelView
    assert (found.topic, found.notes, found.model_fields_set) == ("mine", ["a"], {"topic"})


class Thing:
    name = "attribute"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"name": "key"}, "key"),
        (Thing(), "attribute"),
        ({"name": None}, None),
        ({}, MISSING),
        ([], MISSING),
        (None, MISSING),
    ],
)
def test_an_attribute_is_read_from_mappings_objects_and_nothing(data, found):
    assert safe_get_attr(data, "name") == found
    if found is MISSING:
        assert safe_get_attr(data, "name", 3) == 3


def test_a_method_of_a_mapping_is_not_one_of_its_keys():
    assert safe_get_attr({}, "items") is MISSING

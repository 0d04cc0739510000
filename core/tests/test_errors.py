"""Tests of errors: their texts and their classes."""

from __future__ import annotations

import inspect
import runpy

import pytest

from axil import errors
from axil.errors import (
    AxilError,
    BodyError,
    ConfigError,
    MissingKeys,
    NodeFailed,
    NotBuilt,
    Problem,
    RunCancelled,
    SpecError,
    StateError,
    did_you_mean,
    format_names,
    with_article,
)

CLASSES = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, AxilError)
]


@pytest.mark.parametrize("kind", CLASSES)
def test_everything_raised_on_purpose_has_one_root_and_an_id(kind):
    assert issubclass(kind, AxilError)
    assert kind.__name__.startswith("_") or isinstance(kind.id, (str, property))


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if not kind.__name__.startswith("_")])
def test_the_drawing_of_the_tree_names_every_error(kind):
    assert kind.__name__ in (errors.__doc__ or "")


def test_a_problem_says_id_place_finding_and_advice_in_that_order():
    problem = Problem("AX104", 'edge "a->b"', 'no node "b".', 'Did you mean "c"?')
    assert str(problem) == 'AX104 edge "a->b": no node "b". Did you mean "c"?'
    assert str(Problem("AX104", "", "found.")) == "AX104 found."


def test_several_problems_are_one_error_with_a_line_for_each():
    error = SpecError([Problem("AX101", "x", "one."), Problem("AX102", "y", "two.")])
    assert str(error).splitlines() == ["AX101 x: one.", "AX102 y: two."]
    assert error.id == "AX101"
    assert [p.id for p in error.problems] == ["AX101", "AX102"]


def test_one_problem_needs_no_list():
    assert SpecError(Problem("AX101", "x", "one.")).problems == (Problem("AX101", "x", "one."),)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (SpecError(()), ValueError),
        (NotBuilt(()), RuntimeError),
        (ConfigError(()), ValueError),
        (StateError("m"), ValueError),
        (BodyError("m"), TypeError),
        (MissingKeys("m"), KeyError),
        (RunCancelled("m"), RuntimeError),
    ],
)
def test_errors_are_also_what_python_would_raise(error, builtin):
    assert isinstance(error, builtin)


def test_a_key_error_of_ours_is_not_quoted():
    assert str(MissingKeys("a lacks b.", hint="Return it.")) == "AX221 a lacks b. Return it."


def test_an_id_may_be_given_where_one_class_has_several():
    assert str(StateError("m.", id="AX211")).startswith("AX211 ")
    assert StateError.id == "AX200"


def test_a_failed_node_is_named_by_its_path_and_keeps_what_it_raised():
    cause = ZeroDivisionError("division by zero")
    failed = NodeFailed("sub/w", cause)
    assert failed.__cause__ is cause
    assert str(failed) == 'AX401 node "sub/w": ZeroDivisionError: division by zero'


def test_an_error_without_a_message_is_reported_by_its_type():
    assert 'node "a": ValueError: ValueError' in str(NodeFailed("a", ValueError()))


def test_an_error_of_axil_inside_a_node_keeps_its_own_message():
    assert (
        str(NodeFailed("a", BodyError("gave str.", hint="Give a dict.")))
        == 'AX401 node "a": AX220 gave str. Give a dict.'
    )


def test_a_close_name_is_offered_and_a_far_one_is_not():
    assert did_you_mean("reviewr", ["writer", "reviewer"]) == 'Did you mean "reviewer"?'
    assert did_you_mean("Pro", ["writer", "prompt"]) == ""
    assert (
        did_you_mean("prompt", ["writer", "prompt_template"]) == 'Did you mean "prompt_template"?'
    )
    assert did_you_mean("A", ["b", "a"]) == 'Did you mean "a"?'
    assert did_you_mean("zzz", ["writer", "reviewer"]) == ""


def test_a_class_has_its_article():
    assert [with_article(each) for each in ("Agent", "dict")] == ["an Agent", "a dict"]


def test_a_long_list_is_shortened_honestly():
    assert format_names(["a", "b"]) == "a, b"
    assert format_names([str(i) for i in range(12)]) == "0, 1, 2, 3, 4, 5, 6, 7, … (12 in all)"


def test_a_failed_node_says_the_innermost_line_of_the_users_own_code(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("import json\ndef inner(text):\n    return json.loads(text)\n", "utf-8")
    space = runpy.run_path(str(file))
    try:
        space["inner"]("{")
    except ValueError as error:
        failed = NodeFailed("a", error)
    assert failed.place == f"{file}:3 in inner: return json.loads(text)"
    assert NodeFailed("a", SpecError("what it says is enough")).place == ""
    assert NodeFailed("a", ValueError("never raised")).place == ""

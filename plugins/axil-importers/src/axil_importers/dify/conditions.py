"""Dify's conditions as expressions of axil."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil_importers.dify.scope import PLACE, Scope
from axil_importers.draft import Step, state_of

Condition = Mapping[str, Any]
_ORDER: Final = {">": ">", "<": "<", "≥": ">=", "≤": "<=", "=": "==", "==": "=="}
_FAR: Final = frozenset(
    {"start with", "end with", "all of", "before", "after", "regex match", "not regex match"}
)


def cases_of(data: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the cases of an if-else node, by the handle from which edges begin."""
    cases = cast("list[Mapping[str, Any]]", data.get("cases") or [])
    if not cases:
        return [("true", data)]
    return [(str(each.get("case_id") or each.get("id")), each) for each in cases]


def branches(scope: Scope, data: Mapping[str, Any], step: Step) -> dict[str, str]:
    """Return when each branch is taken, by its handle: no earlier one, and its own condition."""
    made: dict[str, str] = {}
    earlier: list[str] = []
    for handle, case in cases_of(data):
        own = all_of(scope, case, step)
        made[handle] = " and ".join([*(f"not ({each})" for each in earlier), f"({own})"])
        earlier.append(own)
    made["false"] = " and ".join(f"not ({each})" for each in earlier)
    return made


def all_of(scope: Scope, case: Mapping[str, Any], step: Step) -> str:
    """Return the expression of several conditions."""
    given = cast("Sequence[Condition]", case.get("conditions") or ())
    parts = [_one(scope, each, step) for each in given]
    word = " or " if case.get("logical_operator") == "or" else " and "
    return word.join(f"({each})" for each in parts) or "true"


def constant(scope: Scope, value: Any) -> str:
    """Return a value as an expression; a text that cannot be quoted becomes a field."""
    if not isinstance(value, str):
        return json.dumps(value)
    if '"' not in value and "\\" not in value and "\n" not in value:
        return f'"{value}"'
    field = scope.draft.field("@constant", value, wanted="constant")
    scope.whole.written.add(field)
    scope.reads.add(field)
    scope.draft.attributes[field] = value
    return f"state.{field}"


def _one(scope: Scope, given: Condition, step: Step) -> str:
    selector = cast("Sequence[Any]", given.get("variable_selector") or ())
    path = state_of(scope.path(selector, step)) if selector else "null"
    operator = str(given.get("comparison_operator") or "is")
    if given.get("sub_variable_condition"):
        step.approximate(
            "conditions on parts of files are not asked", "Write the condition of its edges anew."
        )
    wanted = _wanted(scope, given, step)
    if operator in _FAR:
        step.approximate(
            f'the comparison "{operator}" is asked as "contains"',
            "Correct the conditions of its out-edges.",
        )
        operator = "contains"
    simple = {
        "empty": f"not {path}",
        "null": f"not {path}",
        "not exists": f"not {path}",
        "not empty": path,
        "not null": path,
        "exists": path,
        "contains": f"{wanted} in {path}",
        "not contains": f"not ({wanted} in {path})",
        "is": f"{path} == {wanted}",
        "is not": f"not ({path} == {wanted})",
        "≠": f"not ({path} == {wanted})",
        "in": f"{path} in {wanted}",
        "not in": f"not ({path} in {wanted})",
    }
    if operator in simple:
        return simple[operator]
    if operator in _ORDER:
        return f"{path} {_ORDER[operator]} {wanted}"
    step.approximate(
        f'the comparison "{operator}" is not known, and taken as true',
        "Write the condition of its out-edges.",
    )
    return "true"


def _wanted(scope: Scope, given: Condition, step: Step) -> str:
    value: Any = given.get("value")
    if isinstance(value, str):
        whole = PLACE.fullmatch(value.strip())
        if whole:
            return state_of(scope.path(whole[1].split("."), step))
        if PLACE.search(value):
            step.approximate(
                "it compares with a text that has variables in it", "Make the text with an assign."
            )
        if given.get("varType") in ("number", "integer") and _is_number(value):
            return str(float(value)) if "." in value else str(int(value))
        if given.get("varType") == "boolean":
            return "true" if value.lower() in ("true", "1") else "false"
    return constant(scope, "" if value is None else value)


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False

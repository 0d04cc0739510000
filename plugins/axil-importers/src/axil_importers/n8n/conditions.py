"""n8n's conditions, of all its versions, as expressions of axil."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from axil_importers.draft import Draft, Step, state_of
from axil_importers.n8n.expressions import Resolve, is_expression, value_of

Data = Mapping[str, Any]
_ORDER: Final = {
    "gt": ">",
    "larger": ">",
    "lt": "<",
    "smaller": "<",
    "gte": ">=",
    "largerEqual": ">=",
    "lte": "<=",
    "smallerEqual": "<=",
    "equals": "==",
    "equal": "==",
    "": "==",
}
_FAR: Final = {"startsWith": "contains", "endsWith": "contains", "regex": "contains"}


class Conditions:
    """The conditions of one node."""

    def __init__(self, draft: Draft, resolve: Resolve, step: Step) -> None:
        self.draft, self.resolve, self.step = draft, resolve, step

    def of(self, parameters: Data) -> str:
        """Return the expression of an if, a filter, or a rule of a switch."""
        given: Any = parameters.get("conditions") or {}
        if not isinstance(given, Mapping):
            return "true"
        conditions = cast("Data", given)
        if "conditions" in conditions:
            some = cast("list[Data]", conditions.get("conditions") or [])
            parts = [self._new(each) for each in some]
            word = str(conditions.get("combinator") or "and")
        else:
            parts = [
                self.asked(each.get("value1"), str(each.get("operation") or ""), each.get("value2"))
                for kind in conditions.values()
                if isinstance(kind, list)
                for each in cast("list[Data]", kind)
            ]
            word = "or" if parameters.get("combineOperation") == "any" else "and"
        return f" {word} ".join(f"({each})" for each in parts) or "true"

    def _new(self, given: Data) -> str:
        operator = cast("Data", given.get("operator") or {})
        operation = str(operator.get("operation") or "equals")
        if operator.get("type") == "boolean" and operation in ("true", "false"):
            return self.asked(given.get("leftValue"), "equals", operation == "true")
        if operator.get("type") == "array" and operation.startswith("length"):
            left = self._side(given.get("leftValue"))
            order = _ORDER.get(operation.removeprefix("length").lower(), "==")
            return f"len({left}) {order} {self._side(given.get('rightValue'))}"
        return self.asked(given.get("leftValue"), operation, given.get("rightValue"))

    def asked(self, left: Any, operation: str, right: Any) -> str:
        """Return one comparison as an expression."""
        is_not = operation.startswith("not") and operation not in ("notEmpty", "notExists")
        plain = operation
        if is_not:
            plain = operation.removeprefix("not")
            plain = plain[:1].lower() + plain[1:]
        here = self._side(left)
        if plain in ("empty", "isEmpty", "notExists"):
            return f"not {here}"
        if plain in ("notEmpty", "isNotEmpty", "exists"):
            return here if not is_not else f"not {here}"
        there = self._side(right)
        if plain in _FAR:
            self.step.approximate(
                f'the comparison "{operation}" is asked as "contains"',
                "Correct the conditions of its out-edges.",
            )
            plain = _FAR[plain]
        if plain == "contains":
            made = f"{there} in {here}"
        elif plain in _ORDER:
            made = f"{here} {_ORDER[plain]} {there}"
        else:
            self.step.approximate(
                f'the comparison "{operation}" is not known, and taken as true',
                "Write the conditions of its out-edges.",
            )
            return "true"
        return f"not ({made})" if is_not else made

    def _side(self, given: Any) -> str:
        if is_expression(given):
            made = value_of(given, self.resolve, self.step)
            if isinstance(made, dict) and "path" in made:
                return state_of(str(cast("Data", made)["path"]))
            if isinstance(made, str) and "{" in made:
                self.step.approximate(
                    "it compares with a text that has places", "Make the text with an assign."
                )
            given = made if isinstance(made, str) else ""
        return self._constant("" if given is None else given)

    def _constant(self, value: Any) -> str:
        if not isinstance(value, str):
            return json.dumps(value) if isinstance(value, bool | int | float) else '""'
        if not set('"\\\n') & set(value):
            return f'"{value}"'
        field = self.draft.field("@constant", value, wanted="constant")
        self.draft.attributes[field] = value
        return f"state.{field}"

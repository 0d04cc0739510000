"""A server's elicitation as a question to a person, and the answer as the server wants it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, cast

from axil import Question
from axil.plugin import legible
from axil_mcp.addresses import host_of, odd_address
from axil_mcp.texts import clean, cleaned

_TEXT: Final = 2000
_MESSAGE: Final = 20_000
"""Characters of what a server says to a person; a longer text could hide its end."""
_FIELDS: Final = 50
_OPTIONS: Final = 200
_WORD: Final = 200
"""Characters of the name of a field, or of an option."""
_SCHEMA: Final = 100_000
DECLINED: Final = frozenset({"decline", "cancel"})
_YES: Final = frozenset({"yes", "y", "true", "ok", "accept"})
_NO: Final = frozenset({"no", "n", "false"})


def question_of(server: str, params: Any, fault: str = "") -> Question:
    """Return the question to the person.

    ``params``: the SDK's, of form or of url; ``fault``: what was wrong with an answer before.
    """
    # further lines are indented: they cannot be taken for another question, or for axil's words
    stated = clean(str(params.message), _MESSAGE).replace("\n", "\n  ")
    text = f'The MCP server "{server}" asks: {stated}'
    data: dict[str, Any] = {"origin": f"mcp:{server}"}
    if params.mode == "url":
        address = clean(str(params.url), _TEXT)
        return Question(
            text=f"{text}\nIt wants you to open {address} (at {host_of(address)})",
            kind="approval",
            data={**data, "url": address, "host": host_of(address)},
        )
    schema = cleaned(params.requested_schema)
    fields = properties_of(schema)
    data |= {
        "schema": schema,
        "fields": {name: _described(name, each) for name, each in fields.items()},
    }
    if fault:
        text = f"{text}\n(The answer before did not fit: {fault})"
    if not fields or (len(fields) == 1 and _kind(next(iter(fields.values()))) == "boolean"):
        return Question(text=text, kind="approval", data=data)
    if len(fields) > 1:
        return Question(text=text, kind="form", data=data)
    name, only = next(iter(fields.items()))
    options = _options(only)
    return Question(
        text=f"{text}\n{_described(name, only)}",
        kind="choice" if options else "text",
        options=options,
        data=data,
    )


def unshowable(params: Any) -> str:
    """Return why a question cannot be shown as it is, and whole; empty: it can be."""
    if len(str(params.message)) > _MESSAGE:
        return f"its text has more than {_MESSAGE} characters"
    if params.mode == "url":
        return odd_address(str(params.url))
    schema = params.requested_schema
    if len(json.dumps(schema)) > _SCHEMA:
        return f"its form is longer than {_SCHEMA} characters"
    fields = properties_of(schema)
    if len(fields) > _FIELDS:
        return f"it has {len(fields)} fields, more than {_FIELDS}"
    for name, each in fields.items():
        options = _options(each)
        if len(options) > _OPTIONS:
            return f"the field {legible(name)[:_WORD]} has more than {_OPTIONS} options"
        odd = [word for word in (name, *options) if len(word) > _WORD or not _is_shown(word)]
        if odd:
            return f'it has an option or a field that hides characters: "{legible(odd[0])[:_WORD]}"'
    return ""


def _is_shown(word: str) -> bool:
    return legible(word) == word and not {"\n", "\t"} & set(word)


def _options(schema: Mapping[str, Any]) -> tuple[str, ...]:
    found = schema.get("enum")
    return tuple(map(str, cast("list[Any]", found))) if isinstance(found, list) else ()


def properties_of(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the fields that are asked for."""
    found = schema.get("properties")
    return (
        {str(n): s for n, s in cast("Mapping[str, Any]", found).items() if isinstance(s, Mapping)}
        if isinstance(found, Mapping)
        else {}
    )


def _described(name: str, schema: Mapping[str, Any]) -> str:
    return clean(str(schema.get("description") or schema.get("title") or name), _TEXT)


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    return kind if isinstance(kind, str) else ""


class Unfit(ValueError):
    """An answer that is not what was asked for."""


def answer_of(params: Any, answer: Any) -> tuple[str, dict[str, Any] | None]:
    """``("accept", content)``, ``("decline", None)`` or ``("cancel", None)``. Raises: Unfit.

    None, False, ``decline`` and ``cancel`` are no answers; a text may be the JSON of an object, and
    answers a form of one field.
    """
    if isinstance(answer, str) and answer.strip().lower() in DECLINED:
        return answer.strip().lower(), None
    if isinstance(answer, Mapping) and cast("Mapping[str, Any]", answer).get("action") in DECLINED:
        return str(cast("Mapping[str, Any]", answer)["action"]), None
    if answer is None:
        return "cancel", None
    fields = {} if params.mode == "url" else properties_of(params.requested_schema)
    if not fields:
        agreed = _boolean(answer)
        if agreed is None:
            raise Unfit("answer yes or no")
        return ("accept", None if params.mode == "url" else {}) if agreed else ("decline", None)
    given = _object(answer)
    if given is None:
        if len(fields) > 1:
            raise Unfit(f"expected an object with {', '.join(fields)}")
        given = {next(iter(fields)): cast("Any", answer)}
    content = {
        name: _fitted(given[name], schema) for name, schema in fields.items() if name in given
    }
    fault = misfit(content, params.requested_schema)
    if fault:
        raise Unfit(fault)
    return "accept", content


def _object(answer: Any) -> Mapping[str, Any] | None:
    if isinstance(answer, str) and answer.lstrip().startswith("{"):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            return None
    return cast("Mapping[str, Any]", answer) if isinstance(answer, Mapping) else None


def _fitted(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the person's text as the requested type."""
    if not isinstance(value, str):
        return value
    kind, text = _kind(schema), value.strip()
    if kind == "boolean":
        known = _boolean(text)
        return value if known is None else known
    if kind in ("integer", "number"):
        for read in (int, float):
            try:
                if math.isfinite(found := read(text)):  # JSON has no others
                    return found
            except (ValueError, OverflowError):
                continue
    if kind == "array":
        return [part.strip() for part in text.split(",") if part.strip()]
    return value


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    return True if word in _YES else False if word in _NO else None


def misfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Return the fault of a value, in words; empty: there is none."""
    from axil.plugin import BoundedSchema, PatternFault, PatternLimit

    try:
        found = BoundedSchema(schema).first_fault(value)
    except (PatternFault, PatternLimit):
        # a form that cannot be met refuses no answer; the server reports its own errors
        return ""
    if found is None:
        return ""
    where = found.path.removeprefix("$").removeprefix(".")
    return clean(f"{where}: {found.message}" if where else found.message, 500)

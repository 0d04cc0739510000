"""Runs, plans and steps in the types of JSON, as the routes and the page have them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from axil import ComponentRef, Question
from axil.plugin import (
    FromEnvironment,
    JournalError,
    Plan,
    PlanNode,
    has_failed,
    kept_field,
    local_field,
    thaw,
)
from axil_journals import (
    Entry,
    PlanScope,
    RunInfo,
    decode_value,
    open_questions,
    outline,
    plan_scopes,
    steps,
)

OVER: Final = frozenset({"done", "failed", "cancelled", "limited", "parked"})
"""Statuses with which a run has ended; it can be resumed unless it is done."""
_DEEPEST: Final = 60
_OWN: Final = (local_field(""), kept_field(""))
"""The beginnings of the names of fields in which a node keeps what is its own."""
_DIGITS: Final = 9
"""Of the number of a step."""
_LISTED: Final = 200
"""Characters of an input in a list."""


def plain(value: Any, depth: int = 0) -> Any:
    r"""Return a value in the types of JSON; what has no counterpart becomes text.

    Values that came from the environment are shown as the placeholders that they were.

    >>> plain({"n": float("nan"), 1: (b"ab", None), "x": "\ud83d"})
    {'n': 'nan', '1': ['<2 bytes>', None], 'x': '?'}
    """
    if isinstance(value, FromEnvironment):
        return value.template
    if isinstance(value, str):  # half a character is no text to clients
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**53) < value < 2**53 else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value)
        return {plain(str(key)): plain(each, depth + 1) for key, each in named.items()}
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if isinstance(value, BaseException):
        return plain(f"{type(value).__name__}: {value}")
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(), depth + 1)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name), depth + 1) for each in fields(value)}
    if isinstance(value, Set):
        listed = [plain(each, depth + 1) for each in cast("Set[Any]", value)]
        return sorted(listed, key=lambda each: json.dumps(each, sort_keys=True))
    if isinstance(value, Sequence):
        return [plain(each, depth + 1) for each in cast("Sequence[Any]", value)]
    return f"<{type(value).__qualname__}>"


def entry_key(entry: Entry) -> str:
    """Return a digest of an entry: it is found again where earlier entries were superseded."""
    result = [entry.kind, list(entry.frame), entry.node, list(entry.ordinal), dict(entry.data)]
    text = json.dumps(result, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def step_data(entry: Entry, number: int) -> dict[str, Any]:
    """Return an entry as a step; ``id`` is that of its event in a stream."""
    data, result = entry.data, dict[str, Any]()
    if entry.kind in ("done", "round", "run", "step", "answer", "asked", "ended", "resumed"):
        [step] = steps([entry])
        result = {"output": plain(thaw(step.output)), "wrote": plain(thaw(dict(step.delta)))}
        sent = cast("dict[str, Any]", step.output) if entry.kind == "done" else {}
        if any(map(has_failed, sent.values())):
            result["failed"] = True  # its program, as data for the next node
    if entry.kind == "step":
        result["name"] = plain(str(data.get("name", "")))
    if entry.kind == "prompt":
        result |= {name: plain(data[name]) for name in ("name", "messages", "request", "reply")}
        # a message is kept once, by its digest, with the first prompt that has it
        result["texts"] = plain(data.get("texts", {}))
    if entry.kind == "asked":
        result["question"] = plain(dict(data))
    if entry.kind == "ended":
        result |= {
            "status": str(data.get("status", "")),
            "error": plain(str(data.get("error", ""))),
        }
        result["failures"] = plain(data.get("failures", []))
    return {
        "id": f"{number}-{entry_key(entry)}",
        "number": number,
        "kind": entry.kind,
        "frame": list(entry.frame),
        "node": entry.node,
        "ordinal": list(entry.ordinal),
        "activation": str(entry.activation) if entry.node else "",
        "at": float(data.get("at", 0.0)),
        "used": plain(data.get("used", {})),
        **result,
    }


def without_prompts(step: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a step for who may not see what is inside a node; None: nothing is left of it.

    What models are asked and reply, what tools are given and say, and what nodes keep for
    themselves is inside; what edges carry and the state has is not.

    >>> without_prompts({"kind": "prompt"}), without_prompts({"kind": "step", "output": {"a": 1}})
    (None, {'kind': 'step', 'output': {}})
    """
    if step["kind"] == "prompt":
        return None
    if step["kind"] == "step":
        return {**step, "output": {}}
    return {**step, "wrote": shared_fields(step["wrote"])} if step.get("wrote") else dict(step)


def step_for(step: Mapping[str, Any], rights: Set[str]) -> dict[str, Any] | None:
    """Return a step as a caller with these rights sees it; None: nothing is left of it."""
    if "prompts" in rights:
        return dict(step)
    found = without_prompts(step)
    if found is None or "answer" in rights:
        return found
    if step["kind"] == "asked":
        return {**found, "output": {}, "question": question_for(found["question"], rights)}
    if step["kind"] == "ended" and step["status"] == "paused":
        return {**found, "output": {}, "error": ""}  # they have the questions
    if step["kind"] == "answer":  # it may have the arguments that it allows
        return {**found, "output": dict.fromkeys(found["output"])}
    return found


def question_for(question: Mapping[str, Any], rights: Set[str]) -> dict[str, Any]:
    """Return a question as a caller with these rights sees it.

    Who answers has to see exactly what will run. Who may neither answer nor see prompts sees of a
    call that a person has to allow which tool it is.

    >>> data = {"tool": "pay", "arguments": {"sum": 4}}
    >>> asked = {"text": "May …?", "data": data, "default": None}
    >>> question_for(asked, {"look"})
    {'text': 'May the tool "pay" be called?', 'data': {'tool': 'pay'}, 'default': None}
    >>> question_for(asked, {"look", "answer"}) == asked
    True
    """
    data: Any = question.get("data")
    is_call = isinstance(data, Mapping) and "arguments" in data
    if not is_call or not rights.isdisjoint({"answer", "prompts"}):
        return dict(question)
    tool = str(cast("Mapping[str, Any]", data).get("tool", ""))
    hidden = {"text": f'May the tool "{tool}" be called?', "data": {"tool": tool}}
    return {**question, **hidden, "default": None}


def shared_fields(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state without what nodes keep for themselves.

    >>> shared_fields({"n": 1, "@node/a": {"history": []}, "@kept/a": {}})
    {'n': 1}
    """
    return {name: value for name, value in state.items() if not name.startswith(_OWN)}


def without_configs(plan: Any) -> Any:
    """Return a plan without the settings of its nodes, in which instructions stand."""
    if isinstance(plan, Mapping):
        found = cast("Mapping[str, Any]", plan).items()
        return {n: None if n == "config" else without_configs(each) for n, each in found}
    if isinstance(plan, list):
        return [without_configs(each) for each in cast("list[Any]", plan)]
    return plan


def place_of(entries: Sequence[Entry], id: str) -> int | None:
    """Return how many entries there are up to that of an event, itself counted; None: it is not
    there any more.
    """
    number, _, key = id.partition("-")
    if not (number.isascii() and number.isdigit()) or len(number) > _DIGITS:
        return None
    guess = min(int(number), len(entries))
    if guess and entry_key(entries[guess - 1]) == key:
        return guess
    return next(
        (at for at in range(len(entries), 0, -1) if entry_key(entries[at - 1]) == key), None
    )


def info_data(info: RunInfo, session: str) -> dict[str, Any]:
    """Return what is known of a run without reading it."""
    return {
        "run_id": info.run_id,
        "workflow": info.graph,
        "status": info.status,
        "session": session,
        "begun": info.begun,
        "touched": info.touched,
        "steps": info.entries,
        "forked_from": info.forked_from,
    }


def run_facts(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return what a list of runs says of one: the beginning of its input, and what it used."""
    seconds, used, input = 0.0, dict[str, Any](), ""
    for entry in entries:
        used.update(entry.data.get("used", ()))
        seconds = max(seconds, float(entry.data.get("at", 0.0)))
        if entry.kind == "run":
            given = plain(thaw(decode_value(entry.data["inputs"])))
            input = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    counts: Mapping[str, Any] = used.get("tokens", {})
    return {
        "input": input[:_LISTED],
        "seconds": seconds,
        "tokens": counts.get("input_tokens", 0) + counts.get("output_tokens", 0),
        "cost": used.get("cost") or 0.0,
    }


def question_data(question: Question) -> dict[str, Any]:
    """Return a question to a person."""
    return {
        "id": question.id,
        "node": question.node,
        "text": plain(question.text),
        "kind": question.kind,
        "options": plain(list(question.options)),
        "default": plain(question.default),
        "data": plain(question.data),
        "due": question.due,
    }


def run_data(entries: Sequence[Entry], status: str) -> dict[str, Any]:
    """Return a recorded run: its outline and its open questions."""
    result = outline(entries)
    waiting = [] if status in OVER else [q for q in open_questions(entries) if q.kind != "timer"]
    return {
        "input": plain(thaw(result.input or _given_state(entries))),
        "output": plain(thaw(result.output)),
        "error": plain(result.error),
        "seconds": result.seconds,
        "used": plain(result.used),
        "nodes": [plain(node) for node in result.nodes],
        "questions": [question_data(question) for question in waiting],
    }


def _given_state(entries: Sequence[Entry]) -> Any:
    """Return what the state of a run began with: the input of a typed graph."""
    for entry in entries:
        if entry.kind == "run":
            return decode_value(entry.data.get("values", {}))
    return {}


# ------------------------------------------------------------------------------------- plans


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as nested scopes, its nodes with their descriptions and settings."""
    return plan_scopes(plan, _details)


def _details(scope: PlanScope, node: PlanNode) -> dict[str, Any]:
    spec = scope.specs.get(node.name)
    use = spec.use if spec is not None else None
    return {
        "description": spec.description if spec is not None else "",
        "config": plain(thaw(dict(use.config))) if isinstance(use, ComponentRef) else {},
    }


def origin_of(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the data that is kept with a run: its workflow, and the caller that started it.

    Raises: JournalError (AX503): there are no entries.
    """
    for entry in entries:
        if entry.kind == "run":
            found: Any = decode_value(entry.data.get("origin", {}))
            return dict(cast("Mapping[str, Any]", found)) if isinstance(found, Mapping) else {}
    raise JournalError(
        "the run's record has no first entry.", id="AX503", hint="Check the run's id."
    )


__all__ = [
    "OVER",
    "entry_key",
    "info_data",
    "origin_of",
    "place_of",
    "plain",
    "plan_data",
    "question_data",
    "question_for",
    "run_data",
    "shared_fields",
    "step_data",
    "step_for",
    "without_configs",
]

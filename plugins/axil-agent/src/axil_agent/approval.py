"""Approval: a person says whether a tool is called, before it is called.

The question has the kind ``tool_approval``, the options ``allow``, ``deny`` and ``edit``, and as
``data`` the tool's name, the arguments, what the tool does and what it changes. What is allowed is
what was shown: the arguments as the tool receives them, with each hidden character written as an
escape. Without a channel the run pauses here, and the call is made after the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from axil import Question
from axil.plugin import Overdue, legible
from axil_models import Refused, Tool, ToolCall, plain_data

if TYPE_CHECKING:
    from axil_agent.stage import Stage

_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("allow", "yes", "y", "ok", "true"), "allow"),
    **dict.fromkeys(("deny", "no", "n", "false"), "deny"),
    "edit": "edit",
}
_NO_ANSWER: Final = "no answer came in time"
_TRIES: Final = 3
"""The number of times that an empty answer is asked for again; then the call is not made."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a call."""

    arguments: Mapping[str, object]
    refusal: str = ""
    """The reason for the model why it is not made; empty: it is made."""
    is_edited: bool = False

    def plain(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "arguments": dict(self.arguments),
            "refusal": self.refusal,
            "is_edited": self.is_edited,
        }


def is_asked_for(tool: Tool, arguments: Mapping[str, object]) -> bool:
    """Return whether a person has to agree.

    A predicate that fails does not let a call through; arguments that do not fit are no call.
    """
    if tool.needs_approval is False:
        return False
    try:
        if tool.validate is not None:
            tool.validate(plain_data(arguments))
    except Refused:
        return False
    if tool.needs_approval is True:
        return True
    try:
        return bool(tool.needs_approval(plain_data(arguments)))
    except Exception:  # noqa: BLE001  # whatever a predicate raises, it has not said no
        return True


async def verdict(tool: Tool, call: ToolCall, ctx: Stage, name: str) -> Verdict:
    """Return the decision about a call, asked for if it has to be.

    Of a tool with a pin it is kept with the pin, and its questions have the pin in their names: an
    answer about another tool of the same name answers none of them, and a call is not made if the
    tool has changed since it was allowed.

    ``name``: the call's own, from which its questions have theirs.
    """
    if tool.needs_approval is False:
        return Verdict(call.arguments)
    # a copy: whatever looks at a call cannot change what is made of it
    arguments: Mapping[str, object] = plain_data(call.arguments)
    if not is_asked_for(tool, arguments):
        return Verdict(arguments)
    if not tool.pin:
        return await _asked(tool, arguments, ctx, name)

    async def agreed() -> dict[str, object]:
        found = await _asked(tool, arguments, ctx, f"{name}:{tool.pin[:16]}")
        return {"pin": tool.pin, **found.plain()}

    kept = dict(await ctx.step(f"agreed:{name}", agreed))
    if kept.pop("pin") != tool.pin:
        return Verdict(
            arguments,
            f'the tool "{tool.name}" has changed since a person allowed this call, which was not '
            f"made. {tool.notice} Call it again: the person is asked anew.",
        )
    return Verdict(**kept)


async def _asked(tool: Tool, arguments: Mapping[str, object], ctx: Stage, name: str) -> Verdict:
    """Ask until there is an answer that says something."""
    fault = ""
    for number in range(_TRIES):
        answer = await ctx.ask(
            _timed(_question(tool, arguments, fault), tool), name=f"approve:{name}:{number}"
        )
        word, reason, edited = _read(answer)
        if word == "allow":
            return Verdict(arguments)
        if word == "deny":
            return Verdict(arguments, f"the call was not allowed{f': {reason}' if reason else '.'}")
        if word == "edit":
            try:
                given: object = edited
                if given is None:
                    form = _form(tool, arguments)
                    given = await ctx.ask(form, name=f"edit:{name}:{number}")
            except Overdue:
                late = tool.approval.late
                if late == "fail":
                    raise
                refusal = "" if late == "allow" else f"the call was not allowed: {_NO_ANSWER}."
                return Verdict(arguments, refusal)
            fault = _misfit(tool, given := _data(given))
            if not fault:
                return Verdict(cast("Mapping[str, object]", given), is_edited=True)
        else:
            fault = "Expected allow, deny or edit."
    return Verdict(arguments, "the call was not allowed: no answer could be understood.")


_CHANGES: Final[Mapping[str, str]] = {
    "none": "It changes nothing.",
    "idempotent": "What it changes, it changes once: a second call changes nothing more.",
    "external": "It changes something outside, and again with each call.",
}


def received(tool: Tool, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments as the tool receives them, as JSON has them: after its ``validate``."""
    taken: Mapping[str, object] = arguments
    if tool.validate is not None:
        positions, named = tool.validate(plain_data(arguments))
        # those by position have no names here
        taken = {**arguments, **named} if positions else named
    return cast("dict[str, object]", json.loads(_json(taken)))


def _json(arguments: Mapping[str, object], indent: int | None = None) -> str:
    return json.dumps(plain_data(arguments), ensure_ascii=False, indent=indent, default=str)


def _question(tool: Tool, arguments: Mapping[str, object], fault: str) -> Question:
    taken = received(tool, arguments)
    shown = legible(_json(taken, indent=2))
    changes = _CHANGES[tool.effects_of(plain_data(arguments))]
    name, does = legible(tool.name), legible(tool.description.strip().partition("\n")[0])
    text = f'May the tool "{name}" be called with these arguments?\n{shown}\n{changes}'
    if tool.notice:
        text = f"{legible(tool.notice)}\n{text}"
    data = {"tool": name, "arguments": taken, "does": does, "changes": changes}
    return Question(
        text=f"{fault}\n{text}" if fault else text,
        kind="tool_approval",
        options=("allow", "deny", "edit"),
        data=data,
    )


def _timed(question: Question, tool: Tool) -> Question:
    """Return the question with the tool's deadline and the answer after it."""
    within, late = tool.approval.within_seconds, tool.approval.late
    if within is None:
        return question
    default = None if late == "fail" else f"{late}: {_NO_ANSWER}"
    return replace(question, within_seconds=within, default=default)


def _form(tool: Tool, arguments: Mapping[str, object]) -> Question:
    """Return the question for edited arguments; its default, unless time would make that the
    answer, are the model's.
    """
    name, within = tool.name, tool.approval.within_seconds
    shown = legible(_json(arguments))
    data = {"tool": name, "arguments": plain_data(arguments)}
    return Question(
        text=f'The arguments for "{name}", as a JSON object:',
        default=shown if within is None else None,
        data=data,
        within_seconds=within,
    )


def _read(answer: object) -> tuple[str, str, object]:
    """Return the word, a reason, and edited arguments if they came with it."""
    if isinstance(answer, Mapping):
        given = cast("Mapping[str, object]", answer)
        word = _WORDS.get(str(given.get("answer", "")).strip().lower(), "")
        edited = given.get("arguments") if word == "edit" else None
        return word, str(given.get("reason") or ""), edited
    word, _, reason = str(answer).partition(":")
    return _WORDS.get(word.strip().lower(), ""), reason.strip(), None


def _data(given: object) -> object:
    if isinstance(given, str):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given
    return given


def _misfit(tool: Tool, arguments: object) -> str:
    """Return why edited arguments cannot be used."""
    if not isinstance(arguments, Mapping):
        return "The arguments have to be a JSON object."
    try:
        if tool.validate is not None:
            tool.validate(cast("Mapping[str, object]", arguments))
    except Refused as error:
        return f"The arguments do not fit: {error}."
    return ""

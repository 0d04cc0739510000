"""Edges, each compiled into one function (condition, keys, processor, filter), and payload kinds,
which join the payloads that meet.

Conditions see text: of each message in a list (those that fail stay behind, none left: the edge is
dead), of the whole payload otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from axil.bounds import BOUNDS
from axil.contract.messages import (
    Message,
    as_fields,
    as_messages,
    fold_payloads,
    gather_messages,
    is_messages,
    message,
    text_of,
)
from axil.contract.views import values_of, without_views
from axil.errors import BodyError, MissingKeys, format_names, nearest
from axil.kernel.plan import Carry, Left, Payloads
from axil.kernel.state import State
from axil.kernel.tokens import ENTRY, Carried, Token, new_tuple
from axil.kernel.values import MAX_SIZE, MISSING, check_size, type_of
from axil.spec.graph import ComponentRef, EdgeSpec


class EdgeInput(NamedTuple):
    """The values that a condition or a processor sees."""

    payload: Any
    """One message, or the whole payload where it is not a list of messages."""
    state: State

    @property
    def text(self) -> str:
        return text_of(self.payload)

    @property
    def fields(self) -> Mapping[str, Any]:
        payload = self.payload
        return (
            cast("Mapping[str, Any]", payload)
            if isinstance(payload, Mapping)
            else as_fields(payload)
        )


class Condition(Protocol):
    """``axil.conditions``: whether an edge is taken.

    Pure; what it raises fails the edge's source.
    """

    def __call__(self, seen: EdgeInput, /) -> bool: ...


class Processor(Protocol):
    """``axil.processors``: what is carried instead.

    A str replaces the text, a mapping the payload; None drops it.
    """

    def __call__(self, seen: EdgeInput, /) -> object: ...


class OfState:
    """A condition or a processor that looks at the state alone."""

    __slots__ = ("ask",)

    def __init__(self, ask: Callable[[State], object]) -> None:
        self.ask = ask

    def __call__(self, seen: EdgeInput) -> object:
        return self.ask(seen.state)

    def then(self, function: Callable[[Any], object]) -> OfState:
        """Return an input whose payload is the result of ``function`` on this one."""
        ask = self.ask
        return OfState(lambda state: function(ask(state)))


def _bounded(function: Callable[[EdgeInput], object]) -> Callable[[EdgeInput], object]:
    """Return the function of a component as a step within the bounds of the run: an edge of a file
    may have any amount of work, and a node any number of edges.
    """
    if isinstance(function, OfState):
        return function

    def step(seen: EdgeInput) -> object:
        if (bounds := BOUNDS.get()) is None:
            return function(seen)
        bounds.left(0.0)
        made = function(seen)
        if made is not None and type(made) is not bool:
            bounds.made(check_size(made))
        return made

    return step


def _is_python(given: object) -> bool:
    """Return whether an edge was given a function, rather than a component."""
    given = getattr(given, "carry", given)  # of an ``axil.Edge``
    return callable(given) and not isinstance(given, ComponentRef)


class EdgeParts(NamedTuple):
    """The resolved parts of one edge."""

    spec: EdgeSpec
    condition: Condition | None = None
    process: Processor | None = None
    view: Callable[[State], Any] | None = None
    """The view of the state for a filter."""


def carry_of(parts: EdgeParts) -> Carry | None:
    """Return the edge's function; None: the output itself is carried, always."""
    spec = parts.spec
    if parts.condition is not None and not _is_python(spec.condition):
        parts = parts._replace(condition=_bounded(parts.condition))
    if parts.process is not None and not _is_python(spec.process):
        parts = parts._replace(process=_bounded(parts.process))
    if spec.keys is None:
        return _filtered(_passing(parts), parts)
    carry = _selecting(spec) if spec.keys and spec.carry_data else _nothing
    if parts.process is not None:
        carry = _then(carry, _processing(parts.process))
    if parts.condition is not None:
        carry = _asking(parts.condition, carry)
    return carry if spec.filter is None else _filtered(carry, parts)


def _then(first: Carry, second: Carry) -> Carry:
    def carry(output: object, state: State) -> object:
        payload = first(output, state)
        return None if payload is None else second(payload, state)

    return carry


def _asking(condition: Condition, carry: Carry) -> Carry:
    if isinstance(condition, OfState):
        holds = condition.ask
        if carry is _nothing:
            return lambda output, state: _NO_FIELDS if holds(state) and output is not None else None
        return lambda output, state: (
            carry(output, state) if holds(state) and output is not None else None
        )

    def ask(output: object, state: State) -> object:
        return (
            carry(output, state)
            if condition(new_tuple(EdgeInput, (output, state))) and output is not None
            else None
        )

    return ask


_NO_FIELDS: Mapping[str, object] = {}


def _nothing(output: object, state: State) -> object:
    return _NO_FIELDS


def _selecting(spec: EdgeSpec) -> Carry:
    keys = spec.keys or {}
    if len(keys) != 1:
        return lambda output, state: _selected(spec, output)
    (only,) = keys

    def select_one(output: Any, state: State) -> object:
        return (
            {only: output[only]}
            if type_of(output) is dict and only in output
            else _selected(spec, output)
        )

    return select_one


def _selected(spec: EdgeSpec, output: Any) -> dict[str, object]:
    fields, keys = output if type_of(output) is dict else as_fields(output), spec.keys or {}
    try:
        return {key: fields[key] for key in keys}
    except KeyError:
        missing = [key for key in keys if key not in fields]
        has = sorted(map(str, fields))
        near = nearest(missing[0], has)
        is_input = spec.source == ENTRY
        giver = "input" if is_input else "payload"
        otherwise = (
            f'Give "{missing[0]}" with the input.'
            if is_input
            else "Return the field, or change the edge's keys."
        )
        error = MissingKeys(
            f"edge {spec.source}->{spec.target} carries {format_names(list(keys))}, and the "
            f"{giver} lacks {format_names(missing)}; "
            f"it has {format_names(has) or 'no fields'}.",
            hint=f'The {giver} has "{near}"; the edge wants "{missing[0]}".' if near else otherwise,
        )
        error.missing, error.has = missing, has
        raise error from None


def _processing(process: Processor) -> Carry:
    def rewrite(payload: object, state: State) -> object:
        new = process(EdgeInput(payload, state))
        if isinstance(new, str) and isinstance(payload, dict):
            one = cast("Message", payload)
            return {**one, "content": new} if "content" in one else {**one, "message": new}
        return new

    return rewrite


def _passing(parts: EdgeParts) -> Carry:
    """Return an edge that carries what comes: each message that the condition lets through, or the
    payload as it is.
    """
    spec, condition = parts.spec, parts.condition
    rewrite = _processing(parts.process) if parts.process is not None else None
    deliver = _delivering(spec)

    def carry(output: object, state: State) -> object:
        if not is_messages(output):
            if condition is not None and not condition(EdgeInput(output, state)):
                return None
            return (
                (rewrite(output, state) if rewrite else output) if spec.carry_data else _NO_FIELDS
            )
        messages = cast("list[Message]", output)
        taken = (
            messages
            if condition is None
            else [m for m in messages if condition(EdgeInput(m, state))]
        )
        if taken and rewrite is not None and spec.carry_data:
            new, used = list[Message](), 0
            for m in taken:
                if (made := rewrite(m, state)) is not None:
                    used += check_size(made, MAX_SIZE, used)
                    new.append(_as_message(made))
            taken = new
        return deliver(taken) if taken else None

    if condition is None and rewrite is None and spec.carry_data:
        return lambda output, state: output if type_of(output) is dict else carry(output, state)
    return carry


def _as_message(new: object) -> Message:
    given = new
    return cast("Message", new) if isinstance(new, dict) and "content" in new else message(given)


def _delivering(spec: EdgeSpec) -> Callable[[list[Message]], list[Message]]:
    """Return messages as a user's words, marked with their source, unless they keep their role or
    come back to their speaker.
    """
    source = "" if spec.source.startswith("@") else spec.source
    to_itself = spec.source == spec.target
    marks = dict(spec.marks)

    def deliver(output: list[Message]) -> list[Message]:
        if not spec.carry_data:
            return [message("", source=source, empty=True, **marks)] if "clear" in marks else []
        if spec.target.startswith("@") or not source:
            return [{**m, **marks} for m in output] if marks else output
        delivered: list[Message] = []
        for m in output:
            role = (
                m.get("role", "user")
                if m.get("preserve_role")
                else "assistant"
                if to_itself
                else "user"
            )
            delivered.append({**m, "role": role, "source": source, **marks})
        return delivered

    return deliver


def filtered(given: object) -> Mapping[str, object]:
    """Return the values that a filter gave, None for none at all.

    Raises: BodyError: it gave something else.
    """
    values: Mapping[str, object] | None = {} if given is MISSING else values_of(given)
    if values is None and given is not None:
        raise BodyError(
            f"a state filter gave {type(given).__name__}; expected the values of the next state."
        )
    return without_views(values or {})


def _filtered(carry: Carry | None, parts: EdgeParts) -> Carry | None:
    keep = parts.spec.filter
    if keep is None:
        return carry
    view = parts.view

    def carry_and_filter(output: object, state: State) -> object:
        payload = output if carry is None else carry(output, state)
        if payload is None:
            return None
        return Carried(payload, filtered(keep(view(state) if view else state)))

    return carry_and_filter


class Fields:
    """Fields, folded into one mapping."""

    by_level = False

    def gather(self, tokens: Sequence[Token]) -> object:
        return fold_payloads([token.payload for token in tokens])

    def output(self, left: Sequence[Left], end: Sequence[str], fired: bool) -> object:
        return fold_payloads([payload for _, payload in left]) if left else None


class TypedState(Fields):
    """Typed state, which is the output itself; fields on edges are folded."""

    def output(self, left: Sequence[Left], end: Sequence[str], fired: bool) -> object:
        """Return ``{}`` where anything fired."""
        return fold_payloads([payload for _, payload in left]) if fired else None


class Messages:
    """Lists of messages, the earliest first."""

    by_level = True

    def gather(self, tokens: Sequence[Token]) -> object:
        return gather_messages(tokens)

    def output(self, left: Sequence[Left], end: Sequence[str], fired: bool) -> object:
        """Return the messages of the first node of ``end`` that gave any, else of any node."""
        if not left:
            return None
        by_source: dict[str, list[Message]] = {}
        for source, payload in left:
            by_source.setdefault(source, []).extend(as_messages(payload))
        for name in end:
            if by_source.get(name):
                return by_source[name]
        return next((messages for messages in by_source.values() if messages), list[Message]())


KINDS: dict[str, Payloads] = {"fields": Fields(), "messages": Messages(), "state": TypedState()}
"""By the name that specs and files have for them."""

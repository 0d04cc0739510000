"""The built-in update strategies, and the way to write your own.

A reducer says how a field takes what is written to it. Each of the built-in ones can be composed,
so what a round or a subgraph did to a field is handed on as one delta:

=================== ========================================================= ====================
name                a field of it                                             cost of a write
=================== ========================================================= ====================
``overwrite``       is what was written last; None is a value                 O(1)
``append``          is a list; what is written is put behind it               O(items written)
``append_messages`` is a list; messages with an id that is there are left out O(messages written)
``sum``             is the sum of what was written                            O(1)
``union``           is a set; members are added                               O(members)
``merge``           is a dict; its keys are overwritten one by one            O(keys)
``maximum``         is the greatest value written; NaN counts as nothing      O(1)
``minimum``         is the least value written; NaN counts as nothing         O(1)
=================== ========================================================= ====================

Nothing written yet (``MISSING``) and None are nothing to add to, for all but ``overwrite``.
Source: EvoFabric has ``overwrite`` and ``append_messages``; its updaters are ``reducer`` here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence, Set as AbstractSet
from numbers import Number
from types import MappingProxyType
from typing import Any, Final, cast, overload

from axil.errors import InvalidValue, Problem, SpecError, did_you_mean
from axil.kernel.state import APPEND, OVERWRITE, Reducer
from axil.kernel.values import ATOMS, MISSING, Log, isolate
from axil.signatures import signature_of

Reduce = Callable[[Any, Any], object]


def message_id(message: object) -> object:
    """Return a message's ``id``, else its ``msg_id``, else None."""
    if isinstance(message, Mapping):
        fields = cast("Mapping[str, Any]", message)
        found = fields.get("id")
        return fields.get("msg_id") if found is None else found
    found = getattr(message, "id", None)
    return getattr(message, "msg_id", None) if found is None else found


def append_messages(old: Any, new: object) -> object:
    """Return ``old`` and those messages of ``new`` whose id is not there yet; the first with an id
    stays.

    Args:
        new: a list of messages (mappings or objects). One without an id is always appended.

    Raises: InvalidValue: it is no such list. Cost: O(messages in ``new``), amortised: versions of
    the list share an index of ids.
    """
    log = Log() if old is MISSING or old is None else old if type(old) is Log else Log(old)
    added: list[object] = []
    ids: set[object] = set()
    for message in _messages(new):
        id = message_id(message)
        if id is not None:
            if id in ids or log.has(id, message_id):
                continue
            ids.add(id)
        added.append(message)
    return log.extended(added) if added or old is not log else log


def _messages(new: object) -> Sequence[object]:
    if not isinstance(new, (list, tuple, Log)):
        raise InvalidValue(
            f"append_messages takes a list of messages; found {_kind(new)}.",
            hint="Write a list: [message].",
        )
    messages: list[object] = list(new.raw() if isinstance(new, Log) else cast("Sequence[Any]", new))
    for position, message in enumerate(messages):
        if type(message) in ATOMS:
            raise InvalidValue(
                f"append_messages takes mappings or message objects; found {_kind(message)} at "
                f"position {position}.",
                hint='Write {"role": "user", "content": …}.',
            )
        id = message_id(message)
        if id is not None and not isinstance(id, Hashable):
            raise InvalidValue(
                f"the id of the message at position {position} is {_kind(id)}, which cannot be "
                "looked up."
            )
    return messages


_ROLES = {
    "ai": "assistant",
    "assistant": "assistant",
    "developer": "developer",
    "human": "user",
    "system": "system",
    "tool": "tool",
    "user": "user",
}
"""Roles as people write them → as messages have them."""


def as_messages(given: Any) -> Any:
    """Return what was given for a conversation as a list of messages; what is no list, mapping or
    text as it is.

    A text is a user's message, a pair the message of a role, a mapping without a role a user's.

    >>> as_messages("Hi."), as_messages([("ai", "Hello.")])
    ([{'role': 'user', 'content': 'Hi.'}], [{'role': 'assistant', 'content': 'Hello.'}])

    Raises: ValueError: one of the list is no message.
    """
    if isinstance(given, (str, Mapping)) or _is_pair(given):
        return [_as_message(given, 0)]
    if not isinstance(given, (list, tuple)):
        return given
    items = cast("Sequence[Any]", given)
    return [_as_message(each, position) for position, each in enumerate(items)]


def _is_pair(given: object) -> bool:
    if not isinstance(given, (list, tuple)) or len(cast("Sequence[Any]", given)) != 2:
        return False
    role, content = cast("Sequence[Any]", given)
    return isinstance(role, str) and role in _ROLES and isinstance(content, str)


def _as_message(given: Any, position: int) -> Any:
    if isinstance(given, str):
        return {"role": "user", "content": given}
    if _is_pair(given):
        return {"role": _ROLES[given[0]], "content": given[1]}
    if isinstance(given, Mapping):
        fields = dict(cast("Mapping[str, Any]", given))
        role = fields.get("role") or "user"
        fields["role"] = _ROLES.get(role, role) if isinstance(role, str) else role
        if "content" not in fields and fields.get("tool_calls"):
            fields["content"] = ""
        if "content" in fields:
            return fields
        found = "a message without content"
    elif isinstance(given, (list, tuple)) or type(given) in ATOMS:
        found = _kind(given)
    else:
        return given  # an object of a class of its own
    raise ValueError(
        f"message {position} is {found}; expected {{role, content}}, a text, or (role, text)"
    )


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _is_nothing(old: object) -> bool:
    return old is MISSING or old is None


def _sum(old: Any, new: Any) -> object:
    for value in (new,) if _is_nothing(old) else (old, new):
        if not isinstance(value, Number):
            raise InvalidValue(f"sum takes numbers; found {_kind(value)}.")
    return new if _is_nothing(old) else _tried("sum", lambda: old + new)


def _union(old: object, new: object) -> object:
    return _union_of(old, (new,))


def _union_of(old: Any, deltas: Sequence[Any]) -> object:
    for value in deltas if _is_nothing(old) else (old, *deltas):
        if not isinstance(value, AbstractSet):
            raise InvalidValue(
                f"union takes sets; found {_kind(value)}.", hint="Write a set: {member}."
            )
    first = deltas[0] if _is_nothing(old) else old
    grown = frozenset[object]().union(first, *deltas)
    return grown if isinstance(first, frozenset) else set(grown)


def _merge(old: object, new: object) -> object:
    return _merge_of(old, (new,))


def _merge_of(old: object, deltas: Sequence[object]) -> object:
    grown: dict[object, object] = {}
    for value in deltas if _is_nothing(old) else (old, *deltas):
        if not isinstance(value, Mapping):
            raise InvalidValue(f"merge takes dicts; found {_kind(value)}.")
        grown.update(cast("Mapping[Any, Any]", value))
    return grown


def _maximum(old: Any, new: Any) -> object:
    return (
        new
        if _is_nothing(old)
        else _tried("maximum", lambda: new if old != old or new > old else old)
    )


def _minimum(old: Any, new: Any) -> object:
    return (
        new
        if _is_nothing(old)
        else _tried("minimum", lambda: new if old != old or new < old else old)
    )


def _tried(name: str, act: Callable[[], object]) -> object:
    try:
        return act()
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InvalidValue(f"{name} cannot take this value: {error}.") from error


def _meet_messages(ours: Any, theirs: Any) -> object:
    for message in (*(ours or ()), *(theirs or ())):
        if message_id(message) is None:
            raise ValueError("messages without an id cannot be told apart.")
    return append_messages(ours, theirs)


APPEND_MESSAGES: Final = Reducer(
    "append_messages",
    append_messages,
    compose=append_messages,
    pure=True,
    whole=True,
    meet=_meet_messages,
)
"""Messages go behind those that are there, each id once."""
SUM: Final = Reducer("sum", _sum, compose=_sum, pure=True, whole=True)
"""A delta is added to what is there."""
UNION: Final = Reducer("union", _union, compose=_union, many=_union_of, pure=True, whole=True)
"""Sets are united."""
MERGE: Final = Reducer("merge", _merge, compose=_merge, many=_merge_of, pure=True, whole=True)
"""Dicts are updated: the later value of a key stays."""
MAXIMUM: Final = Reducer("maximum", _maximum, compose=_maximum, pure=True, whole=True)
"""The greatest value written stays."""
MINIMUM: Final = Reducer("minimum", _minimum, compose=_minimum, pure=True, whole=True)
"""The least value written stays."""

BUILT_IN: Final[Mapping[str, Reducer]] = MappingProxyType(
    {
        each.name: each
        for each in (OVERWRITE, APPEND, APPEND_MESSAGES, SUM, UNION, MERGE, MAXIMUM, MINIMUM)
    }
)
"""By name; the registry offers them as ``axil.reducers``."""


def named(name: str) -> Reducer:
    """Return the built-in reducer called ``name``. Raises: SpecError (AX150)."""
    found = BUILT_IN.get(name)
    if found is None:
        raise SpecError(unknown_strategy(name))
    return found


def unknown_strategy(name: str, where: str = "", hint: str = "") -> Problem:
    """Return the problem that no update strategy is called ``name``."""
    known = ", ".join(BUILT_IN)
    return Problem(
        "AX150",
        where,
        f'no update strategy is called "{name}"; built in: {known}.',
        did_you_mean(name, BUILT_IN) or hint,
    )


@overload
def reducer(name: Reduce, /) -> Reducer: ...
@overload
def reducer(
    name: str | None = None,
    *,
    compose: Reduce | None = None,
    associative: bool = False,
    pure: bool = False,
) -> Callable[[Reduce], Reducer]: ...
def reducer(
    name: str | Reduce | None = None,
    *,
    compose: Reduce | None = None,
    associative: bool = False,
    pure: bool = False,
) -> Reducer | Callable[[Reduce], Reducer]:
    """Turn a function ``f(old, new) -> value`` into a reducer.

    ``old`` is ``MISSING`` where nothing was ever written; ``new`` never is. The result is validated
    against the field.

    Args:
        name: None: the function's name.
        compose: from two deltas to one with the same effect; gets copies of its own.
        associative: ``f`` itself composes two deltas: ``f(f(a, b), c)`` is ``f(a, f(b, c))``.
        pure: ``f`` never changes ``old`` or ``new``; else it gets private copies. Cost:
            O(containers in ``old``) a write.

    Raises: SpecError: ``f`` is not a function of two arguments that returns at once (AX151).

    >>> @reducer(associative=True)
    ... def longest(old, new):
    ...     return new if not old or len(new) > len(old) else old
    >>> longest.name, longest.reduce("ab", "c"), longest.compose("c", "def")
    ('longest', 'ab', 'def')
    """

    def made(function: Reduce) -> Reducer:
        called = (
            name
            if isinstance(name, str)
            else getattr(function, "__name__", type(function).__name__)
        )
        if not takes_two(function):
            raise SpecError(unfit_strategy(called))
        return Reducer(called, function, compose=composing(function), pure=pure)

    def composing(function: Reduce) -> Reduce | None:
        joined = compose if compose is not None else function if associative else None
        if joined is None or pure:
            return joined
        # both are on record and must stay as they are
        return lambda first, second: joined(isolate(first), isolate(second))

    return made if name is None or isinstance(name, str) else made(name)


def takes_two(function: object) -> bool:
    """Return whether ``function`` can be called with two arguments and returns at once."""
    if not callable(function) or inspect.iscoroutinefunction(function):
        return False
    if inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return False
    try:
        signature_of(function).bind(None, None)
    except ValueError:  # a built-in that does not tell
        return True
    except TypeError:
        return False
    return True


def unfit_strategy(name: str, where: str = "") -> Problem:
    """Return the problem that a strategy is not a function ``(old, new)``."""
    return Problem(
        "AX151",
        where,
        f'the update strategy "{name}" is not a plain function of two arguments, (old, new).',
    )


def as_reducer(given: Any, name: str = "") -> Reducer:
    """Return a reducer, made of ``f(old, new)`` if necessary. Raises: SpecError (AX151)."""
    return given if isinstance(given, Reducer) else reducer(name or None)(given)


def register_strategy(
    name: str, *, compose: Reduce | None = None, associative: bool = False, pure: bool = False
) -> Callable[[Reduce], Reducer]:
    """Do as ``reducer``, and make it known by ``name`` to all later schemas of this process; a
    plugin has entry points ``axil.reducers`` instead.

    Raises: SpecError (AX150): the name is a built-in one's; as the registry: it is taken. Source:
    EvoFabric ``StateUpdater.register``.
    """

    def made(function: Reduce) -> Reducer:
        from axil.registry.registry import (
            default_registry,  # not needed by anybody who registers nothing
        )

        if name in BUILT_IN:
            raise SpecError(
                Problem(
                    "AX150",
                    "",
                    f'the update strategy "{name}" is built in.',
                    "Choose another name.",
                )
            )
        own = reducer(name, compose=compose, associative=associative, pure=pure)(function)
        default_registry().register("reducers", name, own)
        return own

    return made

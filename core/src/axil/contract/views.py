"""Views: what bodies see of states and payloads, so that nothing is copied which is not touched.

A value is isolated when it is first read, and kept. What a body assigns to a view of the state is
part of its result; nothing else done to a view changes a state. ``StateView`` shows a state as a
dict, an ``InstanceView`` as an instance of a class, ``Fields`` is a payload as a real ``dict``;
``without_views`` and ``values_of`` lead back.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, cast

from axil.errors import StateError, did_you_mean
from axil.kernel.state import State
from axil.kernel.values import ATOMS, MISSING, Conversation, Log, isolate, thaw, type_of


def what_is_absent(state: State, name: str) -> str:
    """Return why a state has no such field, for messages."""
    if name in state.schema.fields:
        return f'"{name}" of {state.schema.name} was never written and has no default.'
    hint = did_you_mean(name, names_in(state))
    return f'{state.schema.name} has no "{name}".' + (f" {hint}" if hint else "")


def names_in(state: State) -> Iterator[str]:
    """Return the names that bodies see of a state."""
    return (name for name in state if not name.startswith("@"))


_NOTHING_SHOWN: dict[str, Conversation] = {}  # shared by views that showed none; never changed
_NOTHING_YET: dict[str, object] = {}  # shared by views in which nothing was kept; never changed
_READ_ONLY: dict[str, object] = {}  # what was written to a view that takes nothing


def shown_of(
    state: State, name: str, shown: dict[str, Conversation], *, is_fixed: bool
) -> tuple[dict[str, Conversation], Any]:
    """Return the conversations that a view has shown, and a field's value as it shows it."""
    value = state[name]
    field = state.schema.fields.get(name)
    if type(value) is not Log or field is None or field.reducer.name != "append_messages":
        return shown, isolate(value)
    found = Conversation(value, (lambda: read_only(name)) if is_fixed else None)
    return {**shown, name: found}, found


def only_new(
    delta: Mapping[str, object], shown: Mapping[str, Conversation], held: Mapping[str, object]
) -> dict[str, Any]:
    """Return a delta with new messages only; also those that a body appended in place.

    Args:
        shown: the conversations that a view handed out, by field.
        held: what the view holds by now.
    """
    written = dict(delta)
    for name, conversation in shown.items():
        given = written.get(name, held.get(name, conversation))
        new = conversation.unsaid(given)
        if new or name in written:
            written[name] = new
    return written


class StateView(MutableMapping[str, Any]):
    """A state as a dict of its own: keys without a leading ``@``, values isolated when first read.

    What a body assigns to it is part of its result, and what it deletes fails it. Cost: O(1) to
    make; per key, the containers of what is read.
    """

    __slots__ = ("_own", "_state", "shown", "written")

    _own: dict[str, object]
    """The values that were read or assigned; MISSING: deleted."""
    written: dict[str, object]
    """The names that were assigned, in order, and those of the state that were deleted."""
    shown: dict[str, Conversation]
    """The conversations that were read."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._own = self.written = _NOTHING_YET
        self.shown = _NOTHING_SHOWN

    def __axil_writes__(self) -> Mapping[str, object]:
        """Return what was assigned, by field; MISSING: deleted."""
        return {name: self._own[name] for name in self.written}

    def __axil_read_only__(self) -> None:
        """Refuse assignments from now on."""
        self.written = _READ_ONLY

    def _look(self, name: object) -> object:
        """Return the value, isolated and kept, or MISSING."""
        own: dict[Any, Any] = self._own
        if name in own:
            return own[name]
        value = self._peek(name)
        if type(value) not in ATOMS:
            self.shown, value = shown_of(
                self._state, cast("str", name), self.shown, is_fixed=self.written is _READ_ONLY
            )
            self._keep(cast("str", name), value)
        return value

    def __axil_only_new__(self, delta: Mapping[str, object]) -> Mapping[str, object]:
        """Return a delta without the messages that were shown here."""
        return only_new(delta, self.shown, self._own) if self.shown else delta

    def _keep(self, name: str, value: object) -> None:
        if self._own is _NOTHING_YET:
            self._own = {}
        self._own[name] = value

    def _peek(self, name: object) -> object:
        """Return the value as it is, or MISSING."""
        if not isinstance(name, str) or name.startswith("@"):
            return MISSING
        return self._own[name] if name in self._own else self._state.get(name, MISSING)

    def __getitem__(self, name: str) -> Any:
        if name not in self._own:  # the common case, a scalar that was not assigned: at once
            value = self._state.get(name, MISSING)
            if type(value) in ATOMS and value is not MISSING and not name.startswith("@"):
                return value
        value = self._look(name)
        if value is MISSING:
            # anything may be asked for
            asked: Any = name
            raise KeyError(what_is_absent(self._state, name) if isinstance(asked, str) else name)
        return value

    # the usual signature, in one lookup
    def get(self, name: str, default: object = None) -> Any:  # type: ignore[override]
        value = self._look(name)
        return default if value is MISSING else value

    def __contains__(self, name: object) -> bool:
        return self._peek(name) is not MISSING

    def __setitem__(self, name: str, value: object) -> None:
        # anything may be assigned
        asked: Any = name
        if not isinstance(asked, str) or name.startswith("@"):
            raise StateError(
                f"a field's name is text without a leading @; found {name!r}.", id="AX203"
            )
        self._write(name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(what_is_absent(self._state, name))
        self._write(name, MISSING)
        if name not in self._state:
            del self.written[name]

    def _write(self, name: str, value: object) -> None:
        if self.written is _READ_ONLY:
            raise read_only(name)
        self._keep(name, value)
        if self.written is _NOTHING_YET:
            self.written = {}
        self.written[name] = None

    def __iter__(self) -> Iterator[str]:
        own, state = self._own, self._state
        for name in names_in(state):
            if own.get(name, self) is not MISSING:
                yield name
        for name in self.written:
            if name not in state and own[name] is not MISSING:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def raw(self) -> dict[str, Any]:
        """Return everything, untouched values as the state holds them; for code that only reads."""
        return {name: self._peek(name) for name in self}

    def copy(self) -> dict[str, Any]:
        """Return ``dict(view)``: the view's own objects."""
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> dict[str, Any]:
        return copy.deepcopy(self.copy(), memo)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (self.copy(),)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (StateView, Fields)):
            return self.raw() == other.raw()
        return (
            self.raw() == dict(cast("Mapping[str, Any]", other))
            if isinstance(other, Mapping)
            else NotImplemented
        )

    __hash__ = None  # type: ignore[assignment]  # as unhashable as a dict

    def __or__(self, other: Mapping[str, object]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, object]) -> dict[str, Any]:
        return {**other, **self}

    def __ior__(self, other: Any) -> StateView:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return f"StateView({self.raw()!r})"


def read_only(name: str) -> StateError:
    """Return the error of assigning to a read-only view."""
    return StateError(
        f'"{name}" of ctx.state cannot be assigned.',
        id="AX203",
        hint="Return the field, or ask for the parameter state and assign to that.",
    )


class InstanceView:
    """The base of views that show a state as an instance of a class, such as a pydantic model.

    A subclass may pass itself off as that class (``__class__``), so its methods are asked of its
    type.
    """

    __slots__ = ()

    def __axil_instance__(self) -> Any:
        """Return the instance that the view stands for."""
        raise NotImplementedError

    def __axil_read_only__(self) -> None:
        """Refuse assignments from now on."""

    def __axil_writes__(self) -> Mapping[str, object]:
        """Return what was assigned, by field; MISSING: deleted."""
        return {}

    def __axil_only_new__(self, delta: Mapping[str, object]) -> Mapping[str, object]:
        """Return a delta without the messages that were shown here."""
        return delta


class Fields(dict[str, Any]):
    """A payload as a dict of the body's own, each value isolated when it is first read.

    A key is untouched as long as its value is the payload's very object. C code that reads a dict's
    memory directly (pydantic's ``model_validate(inputs)``) sees untouched values as they are.
    """

    __slots__ = ("_source",)
    _source: Mapping[str, object]

    def __init__(self, payload: Mapping[str, object] | Iterable[tuple[str, object]] = ()) -> None:
        source: Any = payload  # it is not written to any more, so it need not be copied
        if type_of(source) is not dict:
            source = source.raw() if isinstance(source, (Fields, StateView)) else dict(source)
        super().__init__(source)
        self._source = source

    def raw(self) -> dict[str, Any]:
        """Return a plain dict, untouched values as they are; for code that only reads."""
        return dict(super().items())

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if type(value) not in ATOMS and value is self._source.get(key, MISSING):
            own = self._own(value)
            if own is not value:
                super().__setitem__(key, own)
            return own
        return value

    def _own(self, value: object) -> Any:
        return isolate(value)

    def _touch(self) -> None:
        if self._source:
            for key in self:
                self.__getitem__(key)
            self._source = {}

    def __iter__(self) -> Iterator[str]:
        # Not a needless override: with it, dict(x), {**x} and update() take values by x[key]
        # instead of from memory.
        return super().__iter__()

    # one signature for dict.get's overloads
    def get(self, key: str, default: object = None) -> Any:  # type: ignore[override]
        if key in self:
            return self[key]
        return default

    def items(self) -> Any:
        self._touch()
        return super().items()

    def values(self) -> Any:
        self._touch()
        return super().values()

    # one signature for dict.pop's overloads
    def pop(self, key: str, *default: object) -> Any:  # type: ignore[override]
        if key in self:
            self.__getitem__(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        if self:
            self.__getitem__(next(reversed(self)))
        return super().popitem()

    # one signature for dict.setdefault's overloads
    def setdefault(self, key: str, default: object = None) -> Any:  # type: ignore[override]
        if key not in self:
            super().__setitem__(key, default)
        return self[key]

    def copy(self) -> Fields:
        new = Fields.__new__(Fields)
        new.update(self.raw())
        new._source = self._source
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.raw().items()}

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (self.raw(),)

    def __or__(self, other: object) -> Any:
        return (
            {**self, **cast("Mapping[str, Any]", other)}
            if isinstance(other, Mapping)
            else NotImplemented
        )

    def __ror__(self, other: object) -> Any:
        return (
            {**cast("Mapping[str, Any]", other), **self}
            if isinstance(other, Mapping)
            else NotImplemented
        )


class Thawed(Fields):
    """A caller's own copy of a state: plain lists and dicts, each made when it is first read."""

    __slots__ = ()

    def _own(self, value: object) -> Any:
        return thaw(value)

    def copy(self) -> Any:
        """Return a plain dict of everything."""
        return dict(self.items())

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> dict[str, Any]:
        return copy.deepcopy(self.copy(), memo)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (self.copy(),)

    def __repr__(self) -> str:
        return repr(self.copy())


def fields_of(payload: Mapping[str, object]) -> dict[str, Any]:
    """Return ``payload`` as a dict of the body's own: a plain one where all values are scalars,
    else ``Fields``.
    """
    if type_of(payload) is not dict and isinstance(payload, (Fields, StateView)):
        payload = payload.raw()
    for value in payload.values():
        if type(value) not in ATOMS:
            return Fields(payload)
    return dict(payload)


def writes_of(view: Any) -> Mapping[str, object] | None:
    """Return what a body assigned to its view of the state; None: nothing.

    Raises: StateError (AX203): it deleted a field.
    """
    kind = type_of(view)
    is_view = kind is StateView or issubclass(kind, InstanceView)
    found: Mapping[str, object] = kind.__axil_writes__(view) if is_view else _NOTHING_YET
    for name, value in found.items():
        if value is MISSING:
            raise undeletable(name)
    return found or None


def undeletable(name: str) -> StateError:
    return StateError(
        f'the body deleted "{name}"; a field of the state is never removed.',
        id="AX203",
        hint=f'Assign another value instead: ["{name}"] = None.',
    )


def without_views(value: Any) -> Any:
    """Return ``value`` without views at any depth: dicts, and instances for ``InstanceView``.

    Untouched values are not copied, and a container without a view in it is returned as it is.
    Cost: O(containers in the value).
    """
    kind = type_of(value)
    if kind is dict or kind is list:
        mine: Any = None  # made at the first view that is met
        for key, item in value.items() if kind is dict else enumerate(value):
            if type(item) not in ATOMS and (own := without_views(item)) is not item:
                mine = value.copy() if mine is None else mine
                mine[key] = own
        return value if mine is None else mine
    if kind in ATOMS or kind is Log:
        return value
    if kind is Conversation:
        return list(value)
    if kind is StateView or kind is Fields or kind is Thawed:
        return {key: without_views(item) for key, item in value.raw().items()}
    if kind is tuple:
        parts = [without_views(item) for item in value]
        return tuple(parts) if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    return kind.__axil_instance__(value) if issubclass(kind, InstanceView) else value


def values_of(given: Any, *, written: bool = False) -> Mapping[str, object] | None:
    """Return field values of a mapping, a view, or a model instance; ``{}`` for None, None for
    anything else.

    Args:
        written: of views and model instances only what was assigned (for a delta); else everything
            (for a replacement).
    """
    if given is None:
        return {}
    if type(given) is StateView:
        shown = given.__axil_writes__() if written else given.raw()
        return without_views({n: value for n, value in shown.items() if value is not MISSING})
    if isinstance(given, Mapping):
        return without_views(
            given if type_of(given) in (dict, Fields) else dict(cast("Mapping[str, Any]", given))
        )
    kind = type_of(given)
    model = kind.__axil_instance__(given) if issubclass(kind, InstanceView) else given
    declared: Mapping[str, object] | None = getattr(type_of(model), "__pydantic_fields__", None)
    if declared is None or isinstance(model, type):
        return None
    extra: Mapping[str, object] = model.__pydantic_extra__ or {}
    held: dict[str, object] = {
        **{name: value for name, value in model.__dict__.items() if name in declared},
        **extra,
    }
    return {
        name: without_views(value)
        for name, value in held.items()
        if not written or name in model.model_fields_set
    }

"""Views: what bodies see of states and payloads, so that nothing is copied which is not touched.

A value is isolated when it is first read, and from then on the view hands out the same object. What
a body does to a view stays in the view: a state changes by deltas only. ``StateView`` shows a state
as a dict, ``ModelView`` as an instance of a pydantic model, ``Fields`` is a payload that is a real
``dict``. ``without_views`` and ``values_of`` go the other way.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from types import FunctionType
from typing import Any, SupportsIndex, cast

from axil.errors import StateError, did_you_mean
from axil.kernel.state import State
from axil.kernel.values import ATOMS, MISSING, Log, isolate, thaw, type_of


def _absent(state: State, name: str) -> str:
    if name in state.schema.fields:
        return f'"{name}" of {state.schema.name} was never written and has no default.'
    hint = did_you_mean(name, _names(state))
    return f'{state.schema.name} has no "{name}".' + (f" {hint}" if hint else "")


def _names(state: State) -> Iterator[str]:
    return (name for name in state if not name.startswith("@"))


_NOTHING_YET: dict[str, Any] = {}  # shared by views in which nothing was kept; never changed


class StateView(MutableMapping[str, Any]):
    """A state as a dict of its own: keys without a leading ``@``, values isolated when first read.

    Assigning and deleting change the view alone. Cost: O(1) to make; per key, the containers of
    what is read.
    """

    __slots__ = ("_own", "_state", "_written")

    _own: dict[str, Any]
    """What was read or assigned; MISSING: deleted."""
    _written: dict[str, Any]
    """The names that were assigned, in order."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._own = self._written = _NOTHING_YET

    @property
    def writes(self) -> dict[str, Any]:
        """What was assigned and not deleted again, in order of first assignment; deletions are not
        in it.
        """
        return {name: self._own[name] for name in self._written if self._own[name] is not MISSING}

    def _look(self, name: object) -> Any:
        """The value, isolated and kept; MISSING if there is none."""
        own: dict[Any, Any] = self._own
        if name in own:
            return own[name]
        value = self._peek(name)
        if type(value) not in ATOMS:
            value = isolate(value)
            self._keep(cast("str", name), value)
        return value

    def _keep(self, name: str, value: Any) -> None:
        if self._own is _NOTHING_YET:
            self._own = {}
        self._own[name] = value

    def _peek(self, name: object) -> Any:
        """The value as it is, not isolated; MISSING if there is none."""
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
            raise KeyError(_absent(self._state, name) if isinstance(asked, str) else name)
        return value

    # the usual signature, in one lookup
    def get(self, name: str, default: Any = None) -> Any:  # type: ignore[override]
        value = self._look(name)
        return default if value is MISSING else value

    def __contains__(self, name: object) -> bool:
        return self._peek(name) is not MISSING

    def __setitem__(self, name: str, value: Any) -> None:
        # anything may be assigned
        asked: Any = name
        if not isinstance(asked, str) or name.startswith("@"):
            raise StateError(
                f"a field's name is text without a leading @; found {name!r}.", id="AX203"
            )
        self._keep(name, value)
        if self._written is _NOTHING_YET:
            self._written = {}
        self._written[name] = None

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(_absent(self._state, name))
        self._keep(name, MISSING)
        self._written.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        own, state = self._own, self._state
        for name in _names(state):
            if own.get(name, self) is not MISSING:
                yield name
        for name in self._written:
            if name not in state and own[name] is not MISSING:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def raw(self) -> dict[str, Any]:
        """Everything, with untouched values as the state holds them; for code that only reads."""
        return {name: self._peek(name) for name in self}

    def copy(self) -> dict[str, Any]:
        """A dict of everything, as ``dict(view)``: the view's own objects, shared with it."""
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(self.copy(), memo)

    def __reduce__(self) -> tuple[Any, ...]:
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

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}

    def __repr__(self) -> str:
        return f"StateView({self.raw()!r})"


# --------------------------------------------------------------------------------------------------

# all other __pydantic_…__ are the class's
_CLASS_SIDE = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_NOT_FORWARDED = frozenset(
    {
        "__init__",
        "__new__",
        "__init_subclass__",
        "__class_getitem__",
        "__del__",
        "__getattr__",
        "__getattribute__",
    }
)


class ModelView:
    """A state as an instance of its pydantic model, for ``isinstance`` too.

    Fields are isolated when first read. Anything else (methods, properties, ``model_dump``) makes a
    real instance with ``model_construct`` once, in O(fields), and asks that; from then on it holds
    the values, and lists are lists. Its ``model_fields_set`` holds what was assigned here, so
    ``state.model_copy(update=…)`` writes its update and no more. Assignments are local and
    validated when they are committed.
    """

    # a field may have any name but these
    __slots__ = ("_axil_kept", "_axil_model", "_axil_state", "_axil_whole", "_axil_written")

    _axil_kept: dict[str, Any]
    _axil_model: Any
    _axil_state: State
    _axil_whole: Any
    _axil_written: set[str]

    def __init__(self, state: State, model: Any) -> None:
        put = object.__setattr__
        put(self, "_axil_state", state)
        put(self, "_axil_model", model)
        put(self, "_axil_kept", {})  # read or assigned; MISSING: deleted
        put(self, "_axil_written", set[str]())
        put(self, "_axil_whole", None)

    @property
    # what makes isinstance(view, Model) true
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._axil_model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_axil_"):
            # not made by __init__: without this line we would ask ourselves for ever
            raise AttributeError(name)
        model, kept = self._axil_model, self._axil_kept
        if _is_field(self, name):
            value = (
                kept[name]
                if name in kept
                else MISSING
                if self._axil_whole is not None
                else self._axil_state.get(name, MISSING)
            )
            if value is MISSING:
                raise AttributeError(_absent(self._axil_state, name), name=name, obj=self)
            if name not in kept:
                value = kept[name] = isolate(value)
            return value
        if name.startswith("__pydantic_") and name not in _CLASS_SIDE:
            return getattr(model, name)
        return getattr(whole(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not _is_field(self, name):
            setattr(whole(self), name, value)
        elif self._axil_model.model_config.get("frozen"):
            raise AttributeError(f"{self._axil_model.__name__} is frozen.", name=name, obj=self)
        else:
            self._axil_kept[name] = value
            self._axil_written.add(name)

    def __delattr__(self, name: str) -> None:
        if not _is_field(self, name):
            delattr(whole(self), name)
        else:
            getattr(self, name)
            self._axil_written.discard(name)
            if self._axil_whole is None:
                self._axil_kept[name] = MISSING
            else:
                del self._axil_kept[name]

    def __dir__(self) -> Iterable[str]:
        return {*dir(self._axil_model), *self._axil_state.schema.fields}

    def __repr__(self) -> str:
        return repr(whole(self))

    def __str__(self) -> str:
        return str(whole(self))

    def __eq__(self, other: object) -> bool:
        return bool(whole(self) == (whole(other) if _is_model_view(other) else other))

    def __hash__(self) -> int:
        return hash(whole(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(whole(self))

    def __copy__(self) -> Any:
        return copy.copy(whole(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(whole(self), memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return whole(self).__reduce_ex__(protocol)


def _is_field(view: ModelView, name: str) -> bool:
    state: State = view._axil_state  # pyright: ignore[reportPrivateUsage]  # this module's own
    if name in state.schema.fields:
        return True
    whole = view._axil_whole  # pyright: ignore[reportPrivateUsage]
    return whole is None and not state.schema.closed and name in state


def whole(view: Any) -> Any:
    """The model instance behind a ``ModelView``, made on first use; view and instance share their
    values from then on.
    """
    made = view._axil_whole
    if made is None:
        kept: dict[str, Any] = view._axil_kept
        state: State = view._axil_state
        for name in _names(state):
            if name not in kept:
                kept[name] = isolate(state[name])
        values = {
            name: list(value) if type(value) is Log else value
            for name, value in kept.items()
            if value is not MISSING
        }
        made = view._axil_model.model_construct(_fields_set=view._axil_written, **values)
        for name in [
            name for name in made.__dict__ if name not in values and name in state.schema.fields
        ]:
            del made.__dict__[name]  # a default of the model for what is not there
        kept.clear()
        put = object.__setattr__
        put(view, "_axil_kept", made.__dict__)
        put(view, "_axil_whole", made)
    return made


def model_view(model: Any) -> Callable[[State], Any]:
    """Makes views of states as instances of ``model``.

    Special methods of the model's own (``__len__``) work on them, too.
    """
    own: dict[str, Any] = {"__slots__": (), "__doc__": ModelView.__doc__}
    for kind in reversed(model.__mro__):
        if kind.__module__.partition(".")[0] in ("builtins", "typing", "pydantic"):
            continue
        for name, method in kind.__dict__.items():
            special = (
                name.startswith("__") and name.endswith("__") and not name.startswith("__pydantic_")
            )
            if (
                special
                and isinstance(method, FunctionType)
                and name not in _NOT_FORWARDED
                and name not in vars(ModelView)
            ):
                own[name] = _forwarded(name)
    made: Any = type("ModelView", (ModelView,), own)
    return lambda state: made(state, model)


def _forwarded(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(whole(self), name)(*args, **kwargs)

    method.__name__ = name
    return method


def _is_model_view(value: Any) -> bool:
    return issubclass(_type(value), ModelView)


def _type(value: Any) -> Any:
    return cast("Any", type(value))


# --------------------------------------------------------------------------------------------------


class Fields(dict[str, Any]):
    """A payload as a dict of the body's own: each value is isolated when it is first read, one that
    is never read is never copied.

    A key is untouched as long as its value is the payload's very object, so nothing has to be kept
    beside the dict. C code that reads a dict's memory directly (pydantic's
    ``model_validate(inputs)``) sees untouched values as they are.
    """

    __slots__ = ("_source",)
    _source: Mapping[str, Any]

    def __init__(self, payload: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        source: Any = payload  # nobody writes to it any more, so it need not be copied
        if type_of(source) is not dict:
            source = source.raw() if isinstance(source, (Fields, StateView)) else dict(source)
        super().__init__(source)
        self._source = source

    def raw(self) -> dict[str, Any]:
        """A plain dict of everything, with untouched values as they are; for code that only
        reads.
        """
        return dict(super().items())

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if type(value) not in ATOMS and value is self._source.get(key, MISSING):
            own = self._own(value)
            if own is not value:
                super().__setitem__(key, own)
            return own
        return value

    def _own(self, value: Any) -> Any:
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
    def get(self, key: str, default: Any = None) -> Any:  # type: ignore[override]
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
    def pop(self, key: str, *default: Any) -> Any:  # type: ignore[override]
        if key in self:
            self.__getitem__(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        if self:
            self.__getitem__(next(reversed(self)))
        return super().popitem()

    # one signature for dict.setdefault's overloads
    def setdefault(self, key: str, default: Any = None) -> Any:  # type: ignore[override]
        if key not in self:
            super().__setitem__(key, default)
        return self[key]

    def copy(self) -> Fields:
        new = Fields.__new__(Fields)
        new.update(self.raw())
        new._source = self._source
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.raw().items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.raw(),)

    def __or__(self, other: Any) -> Any:
        return (
            {**self, **cast("Mapping[str, Any]", other)}
            if isinstance(other, Mapping)
            else NotImplemented
        )

    def __ror__(self, other: Any) -> Any:
        return (
            {**cast("Mapping[str, Any]", other), **self}
            if isinstance(other, Mapping)
            else NotImplemented
        )


class Thawed(Fields):
    """What a caller is given of a state: plain lists and dicts of the caller's own, each made when
    it is first read.
    """

    __slots__ = ()

    def _own(self, value: Any) -> Any:
        return thaw(value)

    def copy(self) -> Any:
        """A plain dict of everything."""
        return dict(self.items())

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(self.copy(), memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.copy(),)

    def __repr__(self) -> str:
        return repr(self.copy())


def thawed(values: dict[str, Any]) -> dict[str, Any]:
    """``values`` for a caller to keep: as they are where every one is a scalar, else ``Thawed``."""
    return values if ATOMS.issuperset(map(type, values.values())) else Thawed(values)


def fields_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """``payload`` as a dict that a body may do with as it likes: a plain one where every value is a
    scalar, else ``Fields``.
    """
    if type_of(payload) is not dict and isinstance(payload, (Fields, StateView)):
        payload = payload.raw()
    for value in payload.values():
        if type(value) not in ATOMS:
            return Fields(payload)
    return dict(payload)


# --------------------------------------------------------------------------------------------------


def without_views(value: Any) -> Any:
    """``value`` without views: dicts for ``StateView`` and ``Fields``, model instances for
    ``ModelView``, at any depth.

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
    if kind is StateView or kind is Fields or kind is Thawed:
        return {key: without_views(item) for key, item in value.raw().items()}
    if kind is tuple:
        parts = [without_views(item) for item in value]
        return tuple(parts) if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    return whole(value) if issubclass(kind, ModelView) else value


def values_of(given: Any, *, written: bool = False) -> Mapping[str, Any] | None:
    """Field values from what a body, a filter or a merge gave: a mapping, a view, a model instance,
    None for nothing.

    Args:
        written: of views and model instances only what was assigned (for a delta: the rest is not
            this body's doing); else everything they show (for a replacement).
    Returns: None if ``given`` is none of these.
    """
    if given is None:
        return {}
    if type(given) is StateView:
        return without_views(given.writes if written else given.raw())
    if isinstance(given, Mapping):
        return without_views(
            given if _type(given) in (dict, Fields) else dict(cast("Mapping[str, Any]", given))
        )
    model = whole(given) if _is_model_view(given) else given
    declared: Mapping[str, Any] | None = getattr(_type(model), "__pydantic_fields__", None)
    if declared is None or isinstance(model, type):
        return None
    extra: Mapping[str, Any] = model.__pydantic_extra__ or {}
    held: dict[str, Any] = {
        **{name: value for name, value in model.__dict__.items() if name in declared},
        **extra,
    }
    return {
        name: without_views(value)
        for name, value in held.items()
        if not written or name in model.model_fields_set
    }


def safe_get_attr(data: Any, name: str, default: Any = MISSING) -> Any:
    """The key ``name`` of a mapping or the attribute ``name`` of an object; ``default`` if there is
    none, or no object.
    """
    if data is None:
        return default
    if isinstance(data, Mapping):
        fields = cast("Mapping[str, Any]", data)
        return fields.get(name, default)
    return getattr(data, name, default)

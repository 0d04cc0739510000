"""Views of states as instances of pydantic models: what a typed body is given.

A body that declares ``state: Model`` reads attributes, calls methods and asks ``isinstance``, so a
mapping will not do. A whole instance for each firing would copy every field, and would not tell
what the body wrote from what it was given.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, MappingProxyType
from typing import Any, SupportsIndex, cast

from axil.contract.views import (
    InstanceView,
    names_in,
    only_new,
    read_only,
    shown_of,
    what_is_absent,
)
from axil.kernel.state import State
from axil.kernel.values import MISSING, Conversation, Log

# all other __pydantic_…__ are the class's
_NONE: Mapping[str, object] = MappingProxyType({})
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


class ModelView(InstanceView):
    """A state as an instance of its pydantic model, for ``isinstance`` too.

    Fields are isolated when first read. Anything else (methods, properties, ``model_dump``) makes a
    real instance with ``model_construct`` once, in O(fields), and asks that; from then on it holds
    the values, and lists are lists. Its ``model_fields_set`` is what was assigned here, so
    ``state.model_copy(update=…)`` writes its update and no more. What a body assigns is part of its
    result, validated when committed; what it deletes fails it.
    """

    # a field may have any name but these
    __slots__ = (
        "_axil_deleted",
        "_axil_kept",
        "_axil_model",
        "_axil_shown",
        "_axil_state",
        "_axil_whole",
        "_axil_written",
    )

    _axil_deleted: set[str]
    _axil_kept: dict[str, Any]
    _axil_model: Any
    _axil_shown: dict[str, Conversation]
    _axil_state: State
    _axil_whole: Any
    _axil_written: set[str] | None
    """The names that were assigned; None: it is read-only."""

    def __init__(self, state: State, model: object) -> None:
        put = object.__setattr__
        put(self, "_axil_state", state)
        put(self, "_axil_model", model)
        put(self, "_axil_kept", {})  # read or assigned; MISSING: deleted
        put(self, "_axil_written", set())
        put(self, "_axil_deleted", set())
        put(self, "_axil_shown", {})
        put(self, "_axil_whole", None)

    @property
    # what makes isinstance(view, Model) true
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._axil_model

    def __axil_instance__(self) -> Any:
        return _whole(self)

    def __axil_read_only__(self) -> None:
        object.__setattr__(self, "_axil_written", None)

    def __axil_writes__(self) -> Mapping[str, object]:
        if not (self._axil_written or self._axil_deleted):
            return _NONE
        names = [*(self._axil_written or ()), *self._axil_deleted]
        return {name: self._axil_kept.get(name, MISSING) for name in names}

    def __axil_only_new__(self, delta: Mapping[str, object]) -> Mapping[str, object]:
        return only_new(delta, self._axil_shown, self._axil_kept) if self._axil_shown else delta

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
                raise AttributeError(what_is_absent(self._axil_state, name), name=name, obj=self)
            if name not in kept:
                value = kept[name] = _shown(self, name)
            return value
        if name.startswith("__pydantic_") and name not in _CLASS_SIDE:
            return getattr(model, name)
        return getattr(_whole(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        if not _is_field(self, name):
            setattr(_whole(self), name, value)
        elif self._axil_model.model_config.get("frozen"):
            raise AttributeError(f"{self._axil_model.__name__} is frozen.", name=name, obj=self)
        else:
            if self._axil_written is None:
                raise read_only(name)
            self._axil_kept[name] = value
            self._axil_written.add(name)
            self._axil_deleted.discard(name)

    def __delattr__(self, name: str) -> None:
        if not _is_field(self, name):
            delattr(_whole(self), name)
        else:
            getattr(self, name)
            if self._axil_written is None:
                raise read_only(name)
            self._axil_written.discard(name)
            self._axil_deleted.add(name)
            if self._axil_whole is None:
                self._axil_kept[name] = MISSING
            else:
                del self._axil_kept[name]

    def __dir__(self) -> Iterable[str]:
        return {*dir(self._axil_model), *self._axil_state.schema.fields}

    def __repr__(self) -> str:
        return repr(_whole(self))

    def __str__(self) -> str:
        return str(_whole(self))

    def __eq__(self, other: object) -> bool:
        return bool(
            _whole(self) == (_whole(other) if issubclass(type(other), ModelView) else other)
        )

    def __hash__(self) -> int:
        return hash(_whole(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(_whole(self))

    def __copy__(self) -> Any:
        return copy.copy(_whole(self))

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return copy.deepcopy(_whole(self), memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return _whole(self).__reduce_ex__(protocol)


def _is_field(view: ModelView, name: str) -> bool:
    state: State = view._axil_state  # pyright: ignore[reportPrivateUsage]  # this module's own
    if name in state.schema.fields:
        return True
    whole = view._axil_whole  # pyright: ignore[reportPrivateUsage]
    return whole is None and not state.schema.closed and name in state


def _shown(view: Any, name: str) -> object:
    shown, fixed = view._axil_shown, view._axil_written is None
    shown, value = shown_of(view._axil_state, name, shown, is_fixed=fixed)
    object.__setattr__(view, "_axil_shown", shown)
    return value


def _whole(view: Any) -> Any:
    """Return the instance behind a ``ModelView``, made on first use; they share their values from
    then on.
    """
    made = view._axil_whole
    if made is None:
        kept: dict[str, Any] = view._axil_kept
        state: State = view._axil_state
        for name in names_in(state):
            if name not in kept:
                kept[name] = _shown(view, name)
        values = {
            name: list(value) if type(value) in (Log, Conversation) else value
            for name, value in kept.items()
            if value is not MISSING
        }
        made = view._axil_model.model_construct(
            _fields_set=set[str]() if view._axil_written is None else view._axil_written, **values
        )
        for name in [
            name for name in made.__dict__ if name not in values and name in state.schema.fields
        ]:
            del made.__dict__[name]  # a default of the model for what is not there
        kept.clear()
        put = object.__setattr__
        put(view, "_axil_kept", made.__dict__)
        put(view, "_axil_whole", made)
    return made


def model_view(model: Any) -> Callable[[State], object]:
    """Return what makes views of states as instances of ``model``; its own special methods
    (``__len__``) work on them; the check reads the model from what is returned.
    """
    own: dict[str, object] = {"__slots__": (), "__doc__": ModelView.__doc__}
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
    made: object = type("ModelView", (ModelView,), own)
    return lambda state: made(state, model)  # its name is part of digests


def _forwarded(name: str) -> object:
    def method(self: object, *args: object, **kwargs: object) -> Any:
        return getattr(_whole(self), name)(*args, **kwargs)

    method.__name__ = name
    return method


def safe_get_attr(data: object, name: str, default: object = MISSING) -> Any:
    """Return a mapping's key or an object's attribute ``name``; ``default`` if there is none."""
    if data is None:
        return default
    if isinstance(data, Mapping):
        fields = cast("Mapping[str, Any]", data)
        return fields.get(name, default)
    return getattr(data, name, default)

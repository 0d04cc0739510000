"""Fields: how a field of the state takes what is written to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from axil.values import MISSING, Log, isolate


class _NoReset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_RESET"


NO_RESET: Final = _NoReset()


@dataclass(frozen=True, slots=True)
class Change:
    """What a frame did to one field, where the reducer cannot compose it into a single delta: a reset, then deltas."""

    deltas: tuple[Any, ...]
    reset: Any = NO_RESET
    """What the field was set to before the deltas; ``MISSING``: to nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Reducer:
    """How a field takes a delta: ``reduce(old, new)``; ``old`` is ``MISSING`` where nothing was ever written.

    ``compose`` turns two deltas into one with the same effect (associativity); without it deltas are kept apart.
    ``many`` takes all deltas of a join at once, where that is cheaper. A reducer that is not ``pure`` may change ``old``
    in place: it is given a private copy. ``whole`` says that deltas are values of the field's own type, so that they can
    be validated before they are reduced; else the result is validated.
    """

    name: str
    reduce: Callable[[Any, Any], Any]
    compose: Callable[[Any, Any], Any] | None = None
    many: Callable[[Any, Sequence[Any]], Any] | None = None
    pure: bool = False
    whole: bool = False

    def fold(self, old: Any, deltas: Sequence[Any]) -> Any:
        """``old`` with all ``deltas``, in order. Cost: one private copy of ``old`` at most, if the reducer works in place."""
        if self.many is not None and len(deltas) > 1:
            return self.many(old, deltas)
        if self.pure:
            for delta in deltas:
                old = self.reduce(old, delta)
            return old
        private: Any = MISSING
        for delta in deltas:
            if private is MISSING or old is not private:
                old = private = isolate(old)
            old = self.reduce(old, isolate(delta))
        return old


def _overwrite(old: Any, new: Any) -> Any:
    return new


OVERWRITE = Reducer("overwrite", _overwrite, compose=lambda a, b: b, many=lambda old, new: new[-1], pure=True, whole=True)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One declared field: how it takes deltas, what it starts as, what it accepts."""

    name: str
    reducer: Reducer = OVERWRITE
    default: Callable[[], Any] | None = None
    """Gives the value a new state starts with; None: the field is absent until it is written."""
    validate: Callable[[Any], Any] | None = None
    """Gives the value as the field's type, or raises; None: anything goes."""
    encode: Callable[[Any], Any] | None = None
    """Gives plain data for the journal; None: the value is plain data already."""
    decode: Callable[[Any], Any] | None = None


def append(old: Any, new: Any) -> Log:
    """``old`` and the items of ``new`` behind it; the reducer of growing lists. Cost: O(len(new))."""
    if old is MISSING or old is None:
        return Log(new)
    return (old if type(old) is Log else Log(old)).extended(new)


APPEND = Reducer("append", append, compose=append, pure=True, whole=True)

"""Values: what may be shared, what is copied, and ``Log``, the sequence that grows without copying.

Values in states and payloads are immutable by contract. ``isolate`` copies the containers of one
value when a body first touches it, ``thaw`` gives a caller plain lists and dicts.
"""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast, overload

from axil.errors import InvalidValue

type_of: Callable[[Any], Any] = type
"""The type of a value, as something that may be compared and called."""


class _Missing:
    """The one value that means "there is no value"; falsy, and itself after copy and reload."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __copy__(self) -> _Missing:
        return self

    def __deepcopy__(self, memo: object) -> _Missing:
        return self

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The sign that there is no value: nothing was written, answered or given."""

ATOMS: Final[frozenset[type]] = frozenset(
    {str, int, float, bool, bytes, complex, type(None), type(Ellipsis), range, _Missing}
)
"""Types whose values cannot change and are never copied."""

_DEEPEST_PREFIX = 16


class Log(Sequence[Any]):
    """An immutable sequence that appends in O(items added).

    Versions made one after another share a buffer; one that branches off keeps a reference to its
    prefix. Items are handed out isolated.

    >>> a = Log([1, 2]); b = a.extended([3]); c = a.extended([4])
    >>> a, b, c, c[-1], len(b), b == [1, 2, 3]
    (Log([1, 2]), Log([1, 2, 3]), Log([1, 2, 4]), 4, 3, True)
    """

    __slots__ = ("_buffer", "_depth", "_index", "_prefix", "_seen", "_size")

    def __init__(self, items: Iterable[object] = ()) -> None:
        self._buffer: list[object] = list(items)
        self._seen = len(self._buffer)  # how much of the buffer is ours
        self._prefix: Log | None = None
        self._depth = 0
        self._size = self._seen
        # id -> position, made by `ids`, shared with the buffer
        self._index: dict[object, int] | None = None

    def extended(self, items: Sequence[object]) -> Log:
        """This log and ``items`` behind it. Cost: O(len(items)), amortised."""
        new = Log.__new__(Log)
        # this is the tip: the room behind it is unused
        if self._seen == len(self._buffer):
            self._buffer.extend(items)
            new._buffer, new._prefix, new._depth, new._index = (
                self._buffer,
                self._prefix,
                self._depth,
                self._index,
            )
        elif self._depth < _DEEPEST_PREFIX:
            new._buffer, new._prefix, new._depth, new._index = (
                list(items),
                self,
                self._depth + 1,
                None,
            )
        else:
            new._buffer, new._prefix, new._depth, new._index = [*self.raw(), *items], None, 0, None
        new._seen = len(new._buffer)
        new._size = self._size + len(items)
        return new

    def raw(self) -> Iterator[Any]:
        """Yield the items, not isolated; for code that only reads."""
        parts: list[Log] = []
        part: Log | None = self
        while part is not None:
            parts.append(part)
            part = part._prefix
        for part in reversed(parts):
            yield from part._buffer[: part._seen]

    def has(self, key: object, key_of: Callable[[Any], object]) -> bool:
        """Return whether an item with this key is here. Cost: O(1), amortised, by an index."""
        part: Log | None = self
        while part is not None:
            if part._index is None:
                part._index = {}
            done = part._index.get(_INDEXED, 0)
            for position in range(done, len(part._buffer)):
                part._index.setdefault(key_of(part._buffer[position]), position)
            part._index[_INDEXED] = len(part._buffer)
            if part._index.get(key, part._seen) < part._seen:
                return True
            part = part._prefix
        return False

    def extends(self, other: Log) -> bool:
        """Return whether ``extended`` made this log of ``other``. Cost: O(1)."""
        part: Log | None = self
        while part is not None:
            if part._buffer is other._buffer:
                return part._seen >= other._seen
            part = part._prefix
        return False

    def after(self, size: int) -> Iterator[Any]:
        """Yield the items behind the first ``size``, as ``raw`` does."""
        return map(self._item, range(size, self._size))

    def _item(self, index: int) -> object:
        part = self
        while True:
            start = part._size - part._seen
            if index >= start or part._prefix is None:
                return part._buffer[index - start]
            part = part._prefix

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> object:
        if isinstance(index, slice):
            return [isolate(self._item(i)) for i in range(*index.indices(self._size))]
        if index < 0:
            index += self._size
        if not 0 <= index < self._size:
            raise IndexError(f"index {index} of a log of {self._size} items")
        return isolate(self._item(index))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return map(isolate, self.raw())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Log, list, tuple)):
            there = cast("Sequence[Any]", other)
            items = there.raw() if isinstance(there, Log) else iter(there)
            return len(there) == self._size and all(
                a == b for a, b in zip(self.raw(), items, strict=True)
            )
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal to lists, so as unhashable as they are

    def __add__(self, other: Iterable[object]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Iterable[object]) -> list[Any]:
        return [*other, *self]

    def __repr__(self) -> str:
        return f"Log({list(self.raw())!r})"


_INDEXED = object()  # the key under which an index remembers how far it has read


def isolate(value: Any) -> Any:
    """Return ``value`` with containers of its own.

    Scalars, logs and frozen objects are returned as they are; dicts, lists, sets, dataclasses and
    pydantic models are copied all the way down; any other object is shared (immutable by contract).
    Cost: O(containers in the value); O(1) for a scalar.
    """
    kind = type_of(value)
    if kind in ATOMS or kind is Log:
        return value
    if kind is dict:
        for item in value.values():
            if type(item) not in ATOMS:
                return {k: v if type(v) in ATOMS else isolate(v) for k, v in value.items()}
        return {**value}
    if kind is list:
        return [v if type(v) in ATOMS else isolate(v) for v in value]
    if kind is set or kind is bytearray:
        return copy.copy(value)
    if isinstance(value, tuple):
        found = cast("tuple[Any, ...]", value)
        items = [isolate(v) for v in found]
        if all(map(operator.is_, items, found)):
            return found
        return tuple(items) if kind is tuple else kind._make(items)  # a named one
    if isinstance(value, (list, deque, dict, set)):
        own: Any = copy.copy(cast("Any", value))
        if isinstance(value, dict):
            for key in own:
                own[key] = isolate(own[key])
        elif not isinstance(value, set):
            own.clear()
            own.extend(isolate(v) for v in cast("Any", value))
        return own
    if hasattr(kind, "model_copy") and hasattr(kind, "model_config"):
        return value if kind.model_config.get("frozen") else value.model_copy(deep=True)
    if dataclasses.is_dataclass(kind) and not cast("Any", kind).__dataclass_params__.frozen:
        own = copy.copy(value)
        for field in dataclasses.fields(kind):
            setattr(own, field.name, isolate(getattr(value, field.name)))
        return own
    return value


class Conversation(Sequence[Any]):
    """The messages of a field as a body is given them: each is isolated when it is first read.

    It knows what it handed out, so a body may return ``[*state.messages, new]``, or append here.
    """

    __slots__ = ("_added", "_given", "_own", "_refuse")

    def __init__(self, given: Log, refuse: Callable[[], Exception] | None) -> None:
        """``refuse``: makes the error of appending, where nothing can be written."""
        self._given, self._refuse = given, refuse
        self._own: dict[int, object] = {}
        self._added: list[object] = []

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> object:
        size = len(self)
        if isinstance(index, slice):
            return [self._at(i) for i in range(*index.indices(size))]
        if not -size <= index < size:
            raise IndexError(f"index {index} of a conversation of {size} messages")
        return self._at(index % size)

    def _at(self, index: int) -> object:
        if index >= len(self._given):
            return self._added[index - len(self._given)]
        if index not in self._own:
            self._own[index] = self._given[index]
        return self._own[index]

    def __len__(self) -> int:
        return len(self._given) + len(self._added)

    def __iter__(self) -> Iterator[Any]:
        if len(self._own) < len(self._given):
            for index, item in enumerate(self._given.raw()):
                if index not in self._own:
                    self._own[index] = isolate(item)
        yield from (self._own[index] for index in range(len(self._given)))
        yield from self._added

    def append(self, message: object) -> None:
        """Say a message."""
        self.extend([message])

    def extend(self, messages: Iterable[object]) -> None:
        """Say messages."""
        if self._refuse is not None:
            raise self._refuse()
        self._added.extend(messages)

    def __iadd__(self, messages: Iterable[object]) -> Conversation:
        self.extend(messages)
        return self

    def __add__(self, other: Iterable[object]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Iterable[object]) -> list[Any]:
        return [*other, *self]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Conversation, Log, list, tuple)):
            return list(self) == list(cast("Sequence[Any]", other))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal to lists, so as unhashable as they are

    def __repr__(self) -> str:
        return repr(list(self))

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, object]) -> list[Any]:
        return [isolate(each) for each in self]

    def __reduce__(self) -> tuple[object, ...]:
        return list, (list(self),)

    def unsaid(self, messages: object) -> Any:
        """Return those of ``messages`` that this conversation did not hand out."""
        if messages is self:
            return self._added
        found: Any = messages
        if not isinstance(messages, (list, tuple)) or not self._own:
            return found
        known = {id(each) for each in self._own.values()}
        return [each for each in found if id(each) not in known]


EMPTY: Final[frozenset[Any]] = frozenset()
"""No names, nodes or tasks: one object for all runs, as the collector looks at each."""

MAX_CHARACTERS: Final = 10_000_000
"""Characters of one text of a firing or a field."""

MAX_SIZE: Final = 32_000_000
"""Size of all that a firing gives: its characters, 16 for each value, and 256 for each container.
It takes up to 20 times as many bytes of memory.
"""

MAX_WAITING: Final = 2 * MAX_SIZE
"""Size of all that waits on the edges of a run."""

MAX_STATES: Final = 3 * MAX_SIZE
"""Size of all that the states of a run hold, what was appended included."""


def check_size(
    value: object, most: int = MAX_SIZE, used: int = 0, seen: set[int] | None = None
) -> int:
    """Return the size of a value.

    What is found in several places counts in each, but for texts in ``seen``, by their ids, which
    grows. A log counts by its items alone. Cost: O(values in it), up to the bound.

    Args:
        used: what other values take of ``most``.

    Raises: InvalidValue (AX639): it is larger than ``most``.
    """
    found: list[Any] = [value]
    left = most - used - 16
    for each in found:  # which grows meanwhile, by what there is room for
        kind = type_of(each)
        if kind is str:
            if len(each) > MAX_CHARACTERS:
                raise _too_large("a text", MAX_CHARACTERS, "characters")
            if seen is None:
                left -= len(each)
            elif id(each) not in seen:
                seen.add(id(each))
                left -= len(each)
        elif kind is dict:
            left -= 256 + 16 * len(each)
            if left > 0:
                found += each.values()
        elif kind is list or kind is tuple:
            left -= 256 + 16 * len(each)
            if left > 0:
                found += each
        elif kind is bytes:
            left -= len(each)
        elif kind is Log:
            left -= 256 + 16 * len(each)
        if left < 0:
            raise _too_large("a value", most, "bytes, as it is counted here")
    return most - used - left


def bounded_text(pieces: Iterable[str]) -> str:
    """Return pieces as one text. Raises: InvalidValue (AX639): it would be too long; it is not
    made.
    """
    found, length = list[str](), 0
    for piece in pieces:
        length += len(piece)
        if length > MAX_CHARACTERS:
            raise _too_large("a text", MAX_CHARACTERS, "characters")
        found.append(piece)
    return "".join(found)


def _too_large(what: str, most: int, unit: str) -> InvalidValue:
    return InvalidValue(
        f"{what} that a run makes has more than {most:,} {unit}.",
        id="AX639",
        hint="Put less into it: what repeats its input doubles it in every round of a cycle.",
    )


def unshared(values: Mapping[str, object]) -> dict[str, Any]:
    """Return ``values`` with logs of their own, for runs that append at the same time."""
    return {
        name: Log(value.raw()) if type(value) is Log else value for name, value in values.items()
    }


def thaw(value: Any) -> Any:
    """Return ``value`` for a caller to keep: logs become lists, containers are fresh."""
    kind = type_of(value)
    if kind in ATOMS:
        return value
    if kind is Log:
        return [thaw(v) for v in value.raw()]
    if kind is dict:
        return {k: thaw(v) for k, v in value.items()}
    if kind is list:
        return [thaw(v) for v in value]
    if kind is tuple:
        return tuple(thaw(v) for v in value)
    return isolate(value)


def same_value(a: Any, b: Any) -> bool:
    """Return whether two values are identical, or equal without an error."""
    if a is b:
        return True
    try:
        if type(a) is not type(b):
            return False
        if type(a) is dict:
            one, other = cast("dict[Any, Any]", a), cast("dict[Any, Any]", b)
            return list(one) == list(other) and all(same_value(one[key], other[key]) for key in one)
        if type(a) in (list, tuple):
            return len(a) == len(b) and all(map(same_value, a, b))
        return bool(a == b)
    except Exception:  # noqa: BLE001
        # a value with a broken or array-like __eq__ is simply not known to be the same
        return False

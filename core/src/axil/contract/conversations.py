"""The conversation of a typed state as a body is given it: what it was given is not said again.

A field that takes messages (``append_messages``) is shown as a ``Conversation``. It knows the
messages that it handed out, so a body may return ``[*state.messages, new]``, or append to
``state.messages``: only what is new is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, overload

from axil.kernel.state import Schema
from axil.kernel.values import Log, isolate


class Conversation(Sequence[Any]):
    """The messages of a field, each isolated when it is first read, and those appended here."""

    __slots__ = ("_added", "_given", "_own", "_refuse")

    def __init__(self, given: Log, refuse: Callable[[], Exception] | None) -> None:
        """``refuse``: makes the error of appending, where nothing can be written."""
        self._given, self._refuse = given, refuse
        self._own: dict[int, Any] = {}
        self._added: list[Any] = []

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        size = len(self)
        if isinstance(index, slice):
            return [self._at(i) for i in range(*index.indices(size))]
        if not -size <= index < size:
            raise IndexError(f"index {index} of a conversation of {size} messages")
        return self._at(index % size)

    def _at(self, index: int) -> Any:
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

    def append(self, message: Any) -> None:
        """Say a message."""
        self.extend([message])

    def extend(self, messages: Iterable[Any]) -> None:
        """Say messages."""
        if self._refuse is not None:
            raise self._refuse()
        self._added.extend(messages)

    def __iadd__(self, messages: Iterable[Any]) -> Conversation:
        self.extend(messages)
        return self

    def __add__(self, other: Iterable[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
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

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [isolate(each) for each in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def unsaid(self, messages: Any) -> Any:
        """Return those of ``messages`` that this conversation did not hand out."""
        if messages is self:
            return self._added
        found: Any = messages
        if not isinstance(messages, (list, tuple)) or not self._own:
            return found
        known = {id(each) for each in self._own.values()}
        return [each for each in found if id(each) not in known]


def is_conversation(schema: Schema, name: str) -> bool:
    """Return whether a field takes messages."""
    field = schema.fields.get(name)
    return field is not None and field.reducer.name == "append_messages"


def only_new(
    delta: Mapping[str, Any], shown: Mapping[str, Conversation], held: Mapping[str, Any]
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

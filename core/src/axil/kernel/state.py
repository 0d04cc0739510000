"""State: a frozen mapping that remembers which writes it knows, so that branches can be joined.

Theory of operation
-------------------
A state has *values* and, since the last point at which its path was the only one alive, a
*history*: for each field the chain of writes that led to its value, and a set of all the writes it
knows. Writes are numbered by the frame's ``History``; a set of writes is one Python integer, a bit
for each.

``apply`` adds one write. ``join`` is the union of histories, each write once, in the order of the
given states. Per field:

- where one side knows all the writes that the other knows, its value is the result;
- else they are concurrent. An ``overwrite`` field takes the later state's value, unless the earlier
  state knows the write that made it (then the earlier one's is newer). Any other field takes the
  earlier value and applies the writes of the later one that it does not know, in their order;
- a write that *reset* a field (by a filter or a custom merge) knows its past and cannot be added
  to: meeting writes it does not know is an error that asks for a merge;
- where the reducer says how two whole values ``meet``, a reset that the other side does not know is
  none: both values meet, and the result is a reset that knows both sides.

Nothing is copied that is not written: values and histories are small overlays over a shared base.
Where one path is alone, where a round and where a frame begins, ``History.fold`` forgets the
chains; what a frame has to hand to its parent is kept as one composed change per field.

Two shorter ways are wrong: skipping a state because its *last* writer is known loses writes (a
join's result shows one writer and knows many), and rebuilding the result for each branch is
quadratic in a wide fan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from axil.errors import (
    ConcurrentReset,
    InvalidValue,
    SchemaMismatch,
    StateError,
    UndeclaredField,
    did_you_mean,
    format_names,
)
from axil.kernel.values import (
    ATOMS,
    EMPTY,
    MAX_SIZE,
    MISSING,
    Log,
    check_size,
    isolate,
    same_value,
    type_of,
    unshared,
)


class _NoReset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_RESET"


NO_RESET: Final = _NoReset()
"""Of a ``FieldChange``: no reset."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The change of a frame to one field: a reset, if any, then deltas."""

    deltas: tuple[object, ...]
    reset: object = NO_RESET
    """The value before the deltas; ``MISSING``: none."""


@dataclass(frozen=True, slots=True, eq=False)
class Reducer:
    """The rule by which a field takes a delta: ``reduce(old, new)``; ``old`` is ``MISSING`` where
    nothing was ever written.

    ``compose`` turns two deltas into one with the same effect; without it deltas are kept apart.
    ``many`` takes all deltas of a join at once, where that is cheaper. A reducer that is not
    ``pure`` may change ``old`` in place: it is given a private copy. ``whole``: deltas are values
    of the field's own type and validated before they are reduced; else the result is. ``meet``
    turns two whole values into one, where a reset meets writes that it does not know; without it
    that is an error.
    """

    name: str
    reduce: Callable[[Any, Any], object]
    compose: Callable[[Any, Any], object] | None = None
    many: Callable[[Any, Sequence[Any]], object] | None = None
    pure: bool = False
    whole: bool = False
    meet: Callable[[Any, Any], object] | None = None

    def fold(self, old: object, deltas: Sequence[object]) -> object:
        """Return ``old`` with all ``deltas``, in order; copied once at most."""
        if self.many is not None and len(deltas) > 1:
            return self.many(old, deltas)
        if self.pure:
            for delta in deltas:
                old = self.reduce(old, delta)
            return old
        private: object = MISSING
        for delta in deltas:
            if private is MISSING or old is not private:
                old = private = isolate(old)
            old = self.reduce(old, isolate(delta))
        return old


def _overwrite(old: object, new: object) -> object:
    return new


OVERWRITE = Reducer(
    "overwrite",
    _overwrite,
    compose=lambda a, b: b,
    many=lambda old, new: new[-1],
    pure=True,
    whole=True,
)
"""The last write stays."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One declared field."""

    name: str
    reducer: Reducer = OVERWRITE
    default: Callable[[], object] | None = None
    """Returns the value of a new state; None: the field is absent until it is written."""
    validate: Callable[[Any], object] | None = None
    """Returns the value as the field's type, or raises; None: anything fits."""
    encode: Callable[[Any], object] | None = None
    """Returns plain data for the journal; None: the value is plain data."""
    decode: Callable[[Any], object] | None = None


def append(old: Any, new: Any) -> Log:
    """Return ``old`` with the items of ``new`` behind it. Cost: O(len(new))."""
    if old is MISSING or old is None:
        return Log(new)
    return (old if type(old) is Log else Log(old)).extended(new)


APPEND = Reducer("append", append, compose=append, pure=True, whole=True)
"""The items of a delta go behind those that are there."""


Delta = Mapping[str, object]
Values = Mapping[str, object]


bare = object.__new__
"""Makes an object without its constructor."""
_PLAIN = Field("")
_NOTHING: Values = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The fields of a state: the declared ones (closed), or any key, all overwrite (open)."""

    name: str = "attributes"
    fields: Mapping[str, Field] = field(default_factory=dict[str, Field])
    closed: bool = False
    view: Callable[[State], Any] | None = None
    """From a state to what a body sees as ``state``; None: a mapping."""

    def of(self, name: str) -> Field:
        """Return the field called ``name``. Raises: UndeclaredField (closed schemas)."""
        found = self.fields.get(name)
        if found is not None:
            return found
        if not self.closed or name.startswith("@"):
            return _PLAIN
        raise UndeclaredField(
            f'"{name}" is not a field of {self.name}; declared: '
            f"{format_names(sorted(self.fields))}.",
            hint=did_you_mean(name, self.fields),
        )

    def check(self, delta: object, *, whole: bool = False) -> dict[str, object]:
        """Return ``delta`` as it will be applied: declared keys, validated values, containers of
        its own.

        ``whole``: every value is one of the field's type (an input or a replacement). Raises:
        StateError, UndeclaredField, InvalidValue.
        """
        if not self.fields and type(delta) is dict:
            # to cast would be a call
            given: dict[Any, Any] = delta  # pyright: ignore[reportUnknownVariableType]
            copied: dict[str, Any] | None = None
            for name, value in given.items():
                if type(name) is not str:
                    break
                if type(value) not in ATOMS:
                    copied = dict(given) if copied is None else copied
                    copied[name] = self._own(name, value)
            else:
                return {**given} if copied is None else copied
        if not isinstance(delta, Mapping):
            raise StateError(
                f"a delta is a mapping of field names to values; found {type(delta).__name__}."
            )
        checked: dict[str, object] = {}
        for name, value in delta.items():  # pyright: ignore[reportUnknownVariableType]
            if not isinstance(name, str):
                raise StateError(f"a delta's keys are field names; found {name!r}.")
            declared = self.of(name)
            own = self._own(name, value)
            if declared.validate is not None and (whole or declared.reducer.whole):
                own = self._valid(declared, own)
            checked[name] = own
        return checked

    def _own(self, name: str, value: Any) -> Any:
        try:
            return isolate(value)
        except RecursionError:
            raise InvalidValue(
                f'field "{name}": the value contains itself, or is nested too deeply.'
            ) from None

    def _valid(self, declared: Field, value: object) -> object:
        assert declared.validate is not None
        try:
            return declared.validate(value)
        except Exception as error:
            lines = str(error).splitlines()
            message = "; ".join(line.strip() for line in lines[1:3]) or str(error)
            awaited = "Await it: a function that asks or waits is an `async def`."
            raise InvalidValue(
                f'field "{declared.name}" of {self.name} does not take {_short(value)}: {message}',
                hint=awaited if isinstance(value, Coroutine) else "",
            ) from error

    def reduced(self, declared: Field, old: object, deltas: Sequence[object]) -> object:
        """Return ``old`` and ``deltas`` by the field's reducer, validated if the deltas were
        not.
        """
        reducer = declared.reducer
        value: Any = deltas[-1] if reducer is OVERWRITE else reducer.fold(old, deltas)
        if declared.validate is not None and not reducer.whole:
            value = self._valid(declared, value)
        # the delta was checked when it was given; what it was added to may be long by now
        kind = type_of(value)
        if (kind is str or kind is Log or kind is list) and len(value) > MAX_SIZE // 16:
            check_size(value)
        return value

    def start(self, values: Values | None = None) -> State:
        """Return a state with every field's default, and ``values`` over them."""
        start: dict[str, object] = {}
        for name, declared in self.fields.items():
            if declared.default is not None:
                start[name] = declared.default()
        start = {**unshared(start), **(values or {})} if start else {**(values or {})}
        return State(self, start, {}, None, 0)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


class Write:
    """One write of one field, and the write before it on the same path."""

    __slots__ = ("delta", "id", "prev", "reset")

    def __init__(self, id: int, delta: object, prev: Write | None, reset: bool = False) -> None:
        self.id, self.delta, self.prev, self.reset = id, delta, prev, reset


class State(Mapping[str, Any]):
    """A frozen mapping of field names to values."""

    __slots__ = ("_base", "_over", "_writes", "known", "schema")

    def __init__(
        self,
        schema: Schema,
        base: dict[str, object],
        over: dict[str, object],
        writes: dict[str, Write] | None,
        known: int,
    ) -> None:
        if len(over) > 16 and len(over) * len(over) > len(base):
            base = {**base, **over}
            over = {}
        self.schema, self._base, self._over, self._writes = schema, base, over, writes
        self.known = known
        """The set of writes this state knows, a bit for each."""

    @property
    def parts(self) -> tuple[dict[str, object], dict[str, object]]:
        """The values that it may share with other states, and its own, to be counted only."""
        return self._base, self._over

    def __getitem__(self, name: str) -> Any:
        over = self._over
        value = over[name] if name in over else self._base.get(name, MISSING)
        if value is MISSING:
            raise KeyError(name)
        return value

    # the usual signature, in one lookup
    def get(self, name: str, default: object = None) -> Any:  # type: ignore[override]
        over = self._over
        value = over[name] if name in over else self._base.get(name, MISSING)
        return default if value is MISSING else value

    def __contains__(self, name: object) -> bool:
        over: dict[Any, Any] = self._over
        base: dict[Any, Any] = self._base
        return over[name] is not MISSING if name in over else base.get(name, MISSING) is not MISSING

    def __iter__(self) -> Iterator[str]:
        over = self._over
        for name, value in self._base.items():
            if name not in over and value is not MISSING:
                yield name
        for name, value in over.items():
            if value is not MISSING:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"State({self.schema.name}, {dict(self)!r})"

    def apply(self, delta: Delta, history: History | None = None) -> State:
        """Return this state with one write.

        Args:
            delta: checked by ``Schema.check``, or a frame's changes.
            history: numbers it; None: the path is alone and nothing needs to be remembered.

        Cost: O(fields in the delta), amortised.
        """
        if not delta:
            return self
        schema = self.schema
        over = {**self._over, **delta}
        if schema.closed or schema.fields:
            for name, new in delta.items():
                if (
                    name not in schema.fields
                    or schema.fields[name].reducer is not OVERWRITE
                    or type(new) is FieldChange
                ):
                    over[name] = self._taken(name, new)
        if history is None:
            if len(over) > 16:
                return State(schema, self._base, over, None, 0)
            new = bare(State)
            new.schema, new._base, new._over, new._writes, new.known = (
                schema,
                self._base,
                over,
                None,
                0,
            )
            return new
        writes = dict(self._writes) if self._writes else {}
        bit = history.number(delta)
        for name, new in delta.items():
            chain = schema.of(name).reducer is not OVERWRITE
            if type(new) is FieldChange:
                prev = writes.get(name)
                if new.reset is not NO_RESET:
                    prev = Write(history.count - 1, new.reset, None, True)
                    history.resets |= {name} if schema.of(name).reducer.meet else EMPTY
                for part in new.deltas:
                    prev = Write(history.count - 1, part, prev)
                assert prev is not None
                writes[name] = prev
            else:
                writes[name] = Write(history.count - 1, new, writes.get(name) if chain else None)
        return State(schema, self._base, over, writes, self.known | bit)

    def _taken(self, name: str, new: object) -> object:
        declared = self.schema.of(name)
        if type(new) is FieldChange:
            old = self.get(name, MISSING) if new.reset is NO_RESET else new.reset
            return self.schema.reduced(declared, old, new.deltas) if new.deltas else old
        if declared.reducer is OVERWRITE:
            return new
        return self.schema.reduced(declared, self.get(name, MISSING), (new,))

    def replace(
        self,
        values: Values,
        history: History | None = None,
        anew: Collection[str] = (),
    ) -> State:
        """Return exactly ``values`` (checked), other fields at their defaults or gone; ``@`` fields
        stay.

        An unchanged field keeps its history, unless it is one of ``anew``; a changed one becomes a
        reset that knows its past.
        """
        changed: dict[str, object] = {}
        for name in dict.fromkeys((*self, *values, *self.schema.fields, *anew)):
            if name.startswith("@"):
                continue
            declared = self.schema.of(name)
            new = (
                values[name]
                if name in values
                else declared.default()
                if declared.default is not None
                else MISSING
            )
            if name in anew or not same_value(new, self.get(name, MISSING)):
                changed[name] = new
        if not changed:
            return self
        if history is not None:
            history.resets |= {n for n in changed if self.schema.of(n).reducer.meet is not None}
        over = {**self._over, **changed}
        if history is None:
            return State(self.schema, self._base, over, None, 0)
        bit = history.number(changed)
        writes = dict(self._writes) if self._writes else {}
        for name, new in changed.items():
            writes[name] = Write(history.count - 1, new, None, True)
        return State(self.schema, self._base, over, writes, self.known | bit)

    def among(self, values: Values) -> Values:
        """Return the part of ``values`` whose names are here. Cost: O(values)."""
        over, base = self._over, self._base
        if not over and not base:
            return _NOTHING
        found: dict[str, object] = {}
        for name, value in values.items():
            if (
                over[name] if name in over else base.get(name, MISSING)
            ) is not MISSING and not name.startswith("@"):
                found[name] = value
        return found

    def plain(self) -> dict[str, Any]:
        """Return all values by name, as they are, without ``@`` fields."""
        whole = {**self._base, **self._over} if self._over else self._base
        return {
            name: value
            for name, value in whole.items()
            if value is not MISSING and not name.startswith("@")
        }

    def rooted(self) -> State:
        """Return the same values without a history, for another frame."""
        return State(self.schema, self._base, self._over, None, 0) if self._writes else self

    @property
    def writes(self) -> Mapping[str, Write]:
        """The last write of each field since history was folded."""
        return self._writes or {}


class History:
    """The numbering of one frame's writes, and, with ``keeps``, the changes for its parent."""

    __slots__ = ("changes", "count", "keeps", "resets", "schema", "writers")

    def __init__(self, schema: Schema, keeps: bool = False) -> None:
        self.schema = schema
        self.keeps = keeps
        self.count = 0
        self.writers: dict[str, int] = {}
        self.changes: dict[str, object] = {}
        self.resets: frozenset[str] = EMPTY
        """The fields that were reset, of those whose whole values can meet."""

    def restart(self) -> None:
        """Begin again."""
        self.count, self.changes = 0, {}
        self.resets = EMPTY
        if self.writers:
            self.writers = {}

    def number(self, names: Iterable[str]) -> int:
        """Return the bit of a new write of these fields."""
        bit = 1 << self.count
        self.count += 1
        writers = self.writers
        for name in names:
            writers[name] = writers.get(name, 0) | bit
        return bit

    def fold(self, state: State) -> State:
        """Return ``state`` with its history turned into values: its path is the only one."""
        if state.writes:
            if self.keeps:
                for name, write in state.writes.items():
                    self._note(name, _changes_of(write), state.get(name, MISSING))
            state = state.rooted()
        self.count = 0
        self.writers.clear()
        self.resets = EMPTY
        return state

    def note(self, delta: Delta) -> None:
        """Remember a write without a number, of a path that was alone."""
        if self.keeps:
            fields = self.schema.fields
            for name, new in delta.items():
                if type(new) is FieldChange or (
                    name in fields and fields[name].reducer is not OVERWRITE
                ):
                    self._note(name, new, new)
                else:
                    self.changes[name] = new

    def note_replace(self, old: State, new: State) -> None:
        """Remember what ``replace`` changed on a path that was alone."""
        if self.keeps:
            for name in {**dict.fromkeys(old), **dict.fromkeys(new)}:
                value = new.get(name, MISSING)
                if value is not old.get(name, MISSING):
                    self._note(name, FieldChange((), value), value)

    def _note(self, name: str, new: object, value: object) -> None:
        reducer = self.schema.of(name).reducer
        if reducer is OVERWRITE:
            self.changes[name] = value.reset if type(value) is FieldChange else value
            return
        old: object = self.changes.get(name, MISSING)
        if type(new) is not FieldChange:
            if old is MISSING:
                self.changes[name] = new
                return
            if type(old) is not FieldChange and reducer.compose is not None:
                self.changes[name] = reducer.compose(old, new)
                return
            new = FieldChange((new,))
        if old is MISSING or new.reset is not NO_RESET:
            base = FieldChange((), new.reset)
        else:
            base = old if type(old) is FieldChange else FieldChange((old,))
        deltas = list(base.deltas)
        for delta in new.deltas:
            if deltas and reducer.compose is not None:
                deltas[-1] = reducer.compose(deltas[-1], delta)
            else:
                deltas.append(delta)
        self.changes[name] = (
            deltas[0]
            if base.reset is NO_RESET and len(deltas) == 1
            else FieldChange(tuple(deltas), base.reset)
        )


def _changes_of(write: Write | None) -> FieldChange:
    deltas: list[object] = []
    while write is not None:
        if write.reset:
            return FieldChange(tuple(reversed(deltas)), write.delta)
        deltas.append(write.delta)
        write = write.prev
    return FieldChange(tuple(reversed(deltas)))


def join(states: Sequence[State], history: History) -> State:
    """Return the union of histories: every write since history was folded, once, in the given
    order.

    Args:
        states: one per live token, in edge order; at least one; all of one schema and one frame.

    Returns: the first state if it already knows all the others know, else a new one. Raises:
    SchemaMismatch (AX212), ConcurrentReset (AX213).

    Cost: O(writes unknown to the first + fields written in each); values are not copied. Source:
    EvoFabric's tree of deltas; see docs/explanation/divergences.md.
    """
    first = states[0]
    joined: _Join | None = _Join(first, history) if history.resets else None
    for state in states:
        if state is first:
            continue
        if state.schema is not first.schema:
            raise SchemaMismatch(
                f"states of {first.schema.name} and {state.schema.name} meet in one join."
            )
        known = first.known if joined is None else joined.known
        if state.known | known == known and not history.resets:
            continue
        if joined is None:
            if state.known & known == known:
                first = state
                continue
            joined = _Join(first, history)
        joined.add(state)
    return first if joined is None else joined.state()


def merged(states: Sequence[State], values: Values, history: History) -> State:
    """Return a custom merge: it knows all writes of ``states`` and shows ``values`` (checked).

    ``@`` fields are joined. A field to which others wrote what the first state does not know is
    reset, even where the value is that of the first state: else a plain join of the same states
    would know as much and show another value.
    """
    first = states[0]
    joining = _Join(first, history, local=True)
    written: dict[str, object] = {}
    for state in states[1:]:
        joining.add(state)
        written.update(state.writes)
    decided = [name for name in written if (joining.known ^ first.known) & history.writers[name]]
    return joining.state().replace(values, history, decided)


class _Join:
    __slots__ = (
        "first",
        "history",
        "known",
        "later",
        "local",
        "met",
        "resets",
        "values",
        "writes",
    )

    def __init__(self, first: State, history: History, local: bool = False) -> None:
        """``local``: join only ``@`` fields."""
        self.first, self.history, self.local = first, history, local
        self.known = first.known
        self.writes = dict(first.writes)
        self.values: dict[str, object] = {}  # fields whose value is not first's
        self.later: dict[str, list[Write]] = {}  # writes still to be reduced into a field, in order
        self.resets: dict[str, int] = {}  # the reset below what is in `later`, -1 for none
        self.met: dict[str, object] = {}  # whole values that were made of two

    def add(self, state: State) -> None:
        writers, known, theirs = self.history.writers, self.known, state.known
        for name in () if self.local else self.history.resets:
            self._meet_resets(name, state)
        for name, write in state.writes.items():
            if self.writes.get(name) is write and name not in self.later:
                continue
            if self.local and not name.startswith("@"):
                continue
            mask = writers[name]
            here, there = known & mask, theirs & mask
            if there | here == here:
                continue
            if name in self.met:
                continue
            if here & there == here:
                self.later.pop(name, None)
                self._take(name, write, state)
            elif self.first.schema.of(name).reducer is OVERWRITE:
                if not here >> write.id & 1:
                    self._take(name, write, state)
            else:
                self._unknown(name, write, here, there)
        self.known = known | theirs

    def _take(self, name: str, write: Write, state: State) -> None:
        self.writes[name] = write
        self.values[name] = state.get(name, MISSING)

    def _meet_resets(self, name: str, state: State) -> None:
        ours, theirs = self.writes.get(name), state.writes.get(name)
        if ours is theirs and name not in self.met and name not in self.later:
            return
        if name not in self.met and not (
            _is_unknown(_reset_of(ours), state.known) or _is_unknown(_reset_of(theirs), self.known)
        ):
            return
        declared = self.first.schema.of(name)
        assert declared.reducer.meet is not None
        try:
            value = declared.reducer.meet(self._value(name), state.get(name, MISSING))
        except ValueError:  # they cannot; it is as for other fields
            return
        self.met[name] = value if declared.validate is None else declared.validate(value)
        self.later.pop(name, None)

    def _value(self, name: str) -> object:
        """Return what a field is so far."""
        old = self.met.get(name, self.values.get(name, self.first.get(name, MISSING)))
        deltas = [write.delta for write in self.later.get(name, ())]
        return self.first.schema.reduced(self.first.schema.of(name), old, deltas) if deltas else old

    def _unknown(self, name: str, write: Write, here: int, there: int) -> None:
        pending = self.later.setdefault(name, [])
        if not pending:
            self.resets[name] = _reset_of(self.writes.get(name))
        reset = self.resets[name]
        # asked of each state that comes, not of the first alone
        if _is_unknown(reset, there):
            raise _reset_meets_writes(name)
        new: list[Write] = []
        step: Write | None = write
        while step is not None:
            if not here >> step.id & 1:
                if step.reset:
                    raise _reset_meets_writes(name)
                new.append(step)
            step = step.prev
        pending.extend(reversed(new))

    def state(self) -> State:
        first, over = self.first, dict(self.first._over)  # pyright: ignore[reportPrivateUsage]
        over.update(self.values)
        for name, pending in self.later.items():
            over[name] = self._value(name)
            last = self.writes.get(name)
            for write in pending:
                last = Write(write.id, write.delta, last)
            assert last is not None
            self.writes[name] = last
        if self.met:
            over.update(self.met)
            self.known |= self.history.number(self.met)
            for name, value in self.met.items():
                self.writes[name] = Write(self.history.count - 1, value, None, True)
        base = first._base  # pyright: ignore[reportPrivateUsage]
        return State(first.schema, base, over, self.writes, self.known)


def _reset_of(write: Write | None) -> int:
    """Return the id of the last reset of a field; -1: none."""
    while write is not None and not write.reset:
        write = write.prev
    return -1 if write is None else write.id


def _is_unknown(reset: int, known: int) -> bool:
    return reset >= 0 and not known >> reset & 1


def _reset_meets_writes(name: str) -> ConcurrentReset:
    return ConcurrentReset(
        f'field "{name}" was reset on one path while another path wrote to it; what the reset '
        "should do with those writes is not known.",
        hint="Give the node where they meet a merge, or keep the field unchanged in the filter.",
    )

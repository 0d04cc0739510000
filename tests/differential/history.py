"""States of the reference model: values at the beginning of a frame, and all writes since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

NOTHING: Any = type("Nothing", (), {"__repr__": lambda self: "NOTHING"})()
"""The value of a field that was never written."""

REDUCE: dict[str, Callable[[Any, Any], Any]] = {
    "log": lambda old, new: [*old, *new],
    "total": lambda old, new: new if old is NOTHING else old + new,
    "said": lambda old, new: ("" if old is NOTHING else old) + new,
    "best": lambda old, new: new if old is NOTHING else max(old, new),
    "bag": lambda old, new: {**({} if old is NOTHING else old), **new},
}
"""The reducers of the accumulating fields of a typed state; all other fields overwrite."""
DEFAULTS: dict[str, Any] = {"log": [], "total": 0}


class Failed(Exception):
    """The run fails."""


class Write(NamedTuple):
    """One write of one field; ``is_reset``: it sets the value, whatever was there."""

    id: int
    value: Any
    is_reset: bool = False


Change = tuple[Write, ...]
"""The writes of a frame to one field, from the last reset on. They count as one write."""


@dataclass(frozen=True)
class State:
    """Values at the beginning of a frame, and the writes since."""

    is_typed: bool
    base: Mapping[str, Any]
    chains: Mapping[str, Change] = field(default_factory=dict[str, Change])
    """By written field: the writes that make its value."""
    known: Mapping[str, frozenset[int]] = field(default_factory=dict[str, "frozenset[int]"])
    """By written field: all writes that this state knows of."""

    def accumulates(self, name: str) -> bool:
        """Return whether a field adds up what is written to it."""
        return self.is_typed and name in REDUCE

    def value(self, name: str) -> Any:
        """Return a field's value, or ``NOTHING``."""
        value = self.base.get(name, NOTHING)
        for write in self.chains.get(name, ()):
            is_set = write.is_reset or not self.accumulates(name)
            value = write.value if is_set else REDUCE[name](value, write.value)
        return value

    def values(self) -> dict[str, Any]:
        """Return all fields that have a value."""
        found = {name: self.value(name) for name in {**self.base, **self.chains}}
        return {name: value for name, value in found.items() if value is not NOTHING}

    def seen(self) -> dict[str, Any]:
        """Return what a body sees: the values, without what nodes keep for themselves."""
        return {name: value for name, value in self.values().items() if not name.startswith("@")}

    def apply(self, delta: Mapping[str, Any], id: int) -> State:
        """Return this state and one write, ``id``.

        Args:
            delta: by field its new contribution, or the ``Change`` of a frame.
        """
        written: dict[str, Change] = {}
        for name, value in delta.items():
            change = value if is_change(value) else (Write(id, value),)
            own = tuple(Write(id, write.value, write.is_reset) for write in change)
            goes_on = self.accumulates(name) and not own[0].is_reset
            written[name] = (*self.chains.get(name, ()), *own) if goes_on else own
        return self._with(id, written)

    def _with(self, id: int, written: Mapping[str, Change]) -> State:
        known = {name: self.known.get(name, frozenset()) | {id} for name in written}
        return replace(self, chains={**self.chains, **written}, known={**self.known, **known})

    def replaced(self, values: Mapping[str, Any], id: int, anew: Collection[str] = ()) -> State:
        """Return a state with exactly ``values``; ``@`` fields stay.

        A field whose value changes is reset, and so is one of ``anew``.
        """
        defaults = DEFAULTS if self.is_typed else {}
        changed: dict[str, Change] = {}
        for name in {*self.values(), *values, *anew, *defaults}:
            new = values.get(name, defaults.get(name, NOTHING))
            if not name.startswith("@") and (name in anew or new != self.value(name)):
                changed[name] = (Write(id, new, True),)
        return self._with(id, changed) if changed else self

    def join(self, other: State, only: Callable[[str], bool] = lambda name: True) -> State:
        """Return the union of both histories, this state's writes first.

        Args:
            only: of other fields this state's writes are shown.
        Raises: Failed: a reset of an accumulating field meets writes that it does not know.
        """
        chains = dict(self.chains)
        for name in filter(only, other.chains):
            mine, theirs = self.known.get(name, frozenset()), other.known[name]
            chain = other.chains[name]
            if theirs <= mine:
                continue
            if mine <= theirs:
                chains[name] = chain
            elif not self.accumulates(name):
                if chain[-1].id not in mine:  # else it is older than what this state shows
                    chains[name] = chain
            else:
                unknown = [write for write in chain if write.id not in mine]
                resets = [each for each in chains[name] if each.is_reset and each.id not in theirs]
                if resets or any(write.is_reset for write in unknown):
                    raise Failed(f"a reset of {name} meets concurrent writes")
                chains[name] = (*chains[name], *unknown)
        known = dict(self.known)
        for name, ids in other.known.items():
            known[name] = known.get(name, frozenset()) | ids
        return replace(self, chains=chains, known=known)

    def rooted(self) -> State:
        """Return the same values, as the beginning of a frame."""
        return State(self.is_typed, self.values())

    def changes(self) -> dict[str, Any]:
        """Return what was written since the frame began, by field."""
        return {
            name: chain if self.accumulates(name) else chain[-1].value
            for name, chain in self.chains.items()
        }


def is_change(value: Any) -> bool:
    """Return whether a written value is the ``Change`` of a frame."""
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Write)


def joined(states: Sequence[State]) -> State:
    """Return the join of states, in their order."""
    state = states[0]
    for other in states[1:]:
        state = state.join(other)
    return state


def merged(states: Sequence[State], values: Mapping[str, Any], id: int) -> State:
    """Return what a custom merge makes of states: ``values``, knowing all that they know."""
    state = states[0]
    for other in states[1:]:
        state = state.join(other, lambda name: name.startswith("@"))
    decided = {name for name, ids in state.known.items() if ids != states[0].known.get(name)}
    return state.replaced(values, id, decided)


def composed(is_typed: bool, several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the changes of frames that follow one another as those of one frame."""
    state = State(is_typed, {})
    for id, changes in enumerate(several):
        state = state.apply(changes, id)
    return state.changes()

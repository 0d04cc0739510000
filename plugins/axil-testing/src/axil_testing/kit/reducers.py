"""The kit of update strategies: how a field takes what is written to it, whatever is written,
however it is grouped.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from axil import MISSING, AxilError, Reducer
from axil.plugin import Log, as_reducer, thaw
from axil_journals import decode_value, encode_value
from axil_testing.kit.base import Kit, require
from axil_testing.kit.hostile import is_clumsy, shown
from axil_testing.kit.watch import watched

_TRIALS: Sequence[Sequence[Any]] = (
    ([1, 2], [3], []),
    ([{"id": "a", "content": "x"}], [{"id": "b"}], [{"id": "a"}], []),
    ({"a": 1}, {"b": [2]}, {}, {"a": {"c": 3}}),
    ({1, 2}, {2, 3}, set[int](), {4}),
    (3, 1, 2, 0),
    (0.5, 2.5, 1.0),
    ("a", "bc", ""),
    (True, False, True),
)
"""Values of one type each; those that a strategy takes are what it is tried with."""


class ReducerKit(Kit):
    """The laws of every update strategy. A plain function ``(old, new)`` is one, too."""

    kind = "reducers"
    values: ClassVar[Sequence[Any]] = ()
    """Values that may be written, at least two; empty: those of common types that it takes."""

    def make(self) -> Any:
        """Return the strategy; it is not configured."""
        if type(self).component is None:
            raise NotImplementedError("Give component: the function, or the axil.Reducer.")
        return type(self).component

    @property
    def reducer(self) -> Reducer:
        """The strategy, as a schema uses it."""
        made = self.make()
        return as_reducer(made() if isinstance(made, type) else made)

    def written(self) -> list[Sequence[Any]]:
        """Series of values that may be written one after another."""
        if type(self).values:
            return [type(self).values]
        return [trial for trial in _TRIALS if self._takes(trial)]

    def _takes(self, trial: Sequence[Any]) -> bool:
        try:
            self.reducer.fold(MISSING, copy.deepcopy(list(trial)))
        except Exception:  # noqa: BLE001  # whatever it raises, these are not its values
            return False
        return True

    def pairs(self) -> list[tuple[Any, Any]]:
        """Old values and what is written to them."""
        return [
            (self.reducer.fold(MISSING, [copy.deepcopy(a)]), b)
            for series in self.written()
            for a, b in itertools.pairwise(series)
        ]

    # -- laws

    def test_it_takes_values_of_some_type(self) -> None:
        """Also as the first thing that is written to a field."""
        require(self.written(), "it takes none of the values it was tried with. Give values.")

    def test_it_is_deterministic(self) -> None:
        """The same old and new value give the same value."""
        reducer = self.reducer
        for old, new in self.pairs():
            first, second = (
                same(reducer.fold(copy.deepcopy(old), [copy.deepcopy(new)])) for _ in range(2)
            )
            require(
                first == second,
                f"{shown(old)} and {shown(new)} give {shown(first)}, and then {shown(second)}",
            )

    def test_a_pure_one_changes_neither_what_was_nor_what_is_written(self) -> None:
        """One that says ``pure`` is given the values themselves; other states share them."""
        reducer = self.reducer
        if not reducer.pure:
            self.skip("it does not say that it is pure: it is given copies")
        for old, new in self.pairs():
            before = same(old), same(new)
            reducer.reduce(old, new)
            if reducer.compose is not None:
                reducer.compose(new, new)
            require((same(old), same(new)) == before, f"{shown(before)} became {shown((old, new))}")

    def test_what_it_gives_is_not_what_was_written(self) -> None:
        """A later change of what a body wrote must not reach the state."""
        reducer = self.reducer
        for series in self.written():
            deltas = copy.deepcopy(list(series))
            given = copy.deepcopy(deltas)
            value = reducer.fold(MISSING, deltas)
            before = same(value)
            again = reducer.fold(MISSING, given)
            require(
                same(again) == before,
                f"{shown(series)} gives {shown(again)} the second time, "
                f"and {shown(before)} the first",
            )
            require(
                list(map(same, deltas)) == list(map(same, series)),
                f"folding {shown(series)} changed what was written: {shown(deltas)}",
            )

    def test_composing_writes_changes_nothing(self) -> None:
        """``fold(old, [a, b])`` is ``reduce(old, compose(a, b))``, and composing is associative:
        what a frame hands over is one delta.
        """
        reducer = self.reducer
        compose = reducer.compose
        if compose is None:
            self.skip("it does not compose")
        assert compose is not None
        for series in self.written():
            for start in (MISSING, series[0]):
                old = (
                    reducer.fold(MISSING, [copy.deepcopy(start)])
                    if start is not MISSING
                    else MISSING
                )
                for a, b, c in itertools.product(series, repeat=3):
                    one, two, three = (copy.deepcopy(each) for each in (a, b, c))
                    left = same(
                        reducer.fold(
                            copy.deepcopy(old), [copy.deepcopy(each) for each in (a, b, c)]
                        )
                    )
                    whole = compose(compose(one, two), three)
                    right = same(reducer.fold(copy.deepcopy(old), [whole]))
                    other = compose(copy.deepcopy(a), compose(copy.deepcopy(b), copy.deepcopy(c)))
                    third = same(reducer.fold(copy.deepcopy(old), [other]))
                    message = (
                        f"onto {shown(start)}, {shown((a, b, c))} give {shown(left)} one by one"
                    )
                    require(
                        left == right == third,
                        f"{message}, and composed {shown(right)} or {shown(third)}",
                    )

    def test_many_at_once_are_the_same_as_one_by_one(self) -> None:
        """``many`` is only faster."""
        reducer = self.reducer
        if reducer.many is None:
            self.skip("it has no many")
        for series in self.written():
            single: Any = MISSING
            for delta in series:
                single = reducer.reduce(single, copy.deepcopy(delta))
            together = reducer.fold(MISSING, copy.deepcopy(list(series)))
            require(
                same(single) == same(together),
                f"{shown(series)} gives {shown(single)} one by one, {shown(together)} at once",
            )

    def test_what_it_gives_can_be_journaled(self) -> None:
        """Exactly."""
        for series in self.written():
            value = self.reducer.fold(MISSING, copy.deepcopy(list(series)))
            kept = decode_value(encode_value(value))
            require(
                same(kept) == same(value),
                f"{shown(value)} comes back from a journal as {shown(kept)}",
            )

    def test_what_it_does_not_take_is_refused_in_words(self) -> None:
        """A value of the wrong type is an error that says so, or is taken; it is no accident."""
        reducer = self.reducer
        strange: Sequence[Any] = (
            None,
            object(),
            b"bytes",
            2.5,
            "text",
            [None],
            {"a": None},
            frozenset({1}),
            float("nan"),
            2**70,
        )
        for old in (MISSING, *(old for old, _ in self.pairs()[:3])):
            for new in strange:
                try:
                    reducer.fold(
                        copy.deepcopy(old), [new if type(new) is object else copy.deepcopy(new)]
                    )
                except (AxilError, ValueError):
                    continue
                except TypeError as error:
                    require(
                        str(error),
                        f"{shown(new)} onto {shown(old)} raises a TypeError without words",
                    )
                except Exception as error:  # noqa: BLE001  # that is the question
                    require(
                        not is_clumsy(error),
                        f"{shown(new)} onto {shown(old)} fails by accident: "
                        f"{type(error).__name__}: {error}",
                    )

    def test_it_has_no_effects(self) -> None:
        """It is asked whenever states are joined, as often as it takes."""
        pairs = self.pairs()
        with watched() as seen:
            for old, new in pairs:
                self.reducer.fold(copy.deepcopy(old), [copy.deepcopy(new)])
        require(
            not seen.effects and not seen.blocked, f"it {', '.join([*seen.effects, *seen.blocked])}"
        )


def same(value: Any) -> str:
    """Return a value's text for comparison: lists that grow are lists, and sets have an order."""
    plain: Any = list(value) if isinstance(value, Log) else thaw(value)
    if isinstance(plain, (set, frozenset)):
        members = cast("frozenset[Any]", plain)
        return f"{type(members).__name__}{sorted(map(repr, members))}"
    return repr(plain)

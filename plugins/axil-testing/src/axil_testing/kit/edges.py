"""The kits of what edges ask: conditions and processors are pure functions that answer at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar

from axil import Schema, State
from axil.plugin import EdgeInput, is_async, message
from axil_testing.kit.base import Kit, require
from axil_testing.kit.hostile import FIELDS, TEXTS, is_clumsy, shown
from axil_testing.kit.watch import watched


class EdgeKit(Kit):
    """The laws that conditions and processors share.

    A plain function of the text is a component, too.
    """

    payloads: ClassVar[Sequence[Any]] = ()
    """Payloads that it works on, besides the hostile ones."""
    state: ClassVar[Mapping[str, Any]] = {"n": 1, "list": [1, 2]}
    """Fields of the state that it sees."""

    def ask(self, component: Any, payload: Any, state: State) -> Any:
        """Return the answer of the component: a function is called with the text."""
        seen = EdgeInput(payload, state)
        return component(seen.text) if hasattr(component, "__code__") else component(seen)

    def answered(self, component: Any, payload: Any, state: State | None = None) -> tuple[str, Any]:
        """Return the answer, or the words of the refusal. Raises: AssertionError: it fails by
        accident.
        """
        try:
            return "answer", self.ask(component, payload, self._state() if state is None else state)
        except Exception as error:  # noqa: BLE001  # that is the question
            require(
                not is_clumsy(error),
                f"{shown(payload)} makes it fail by accident: {type(error).__name__}: {error}",
            )
            return "refusal", f"{type(error).__name__}: {error}"

    def given(self) -> list[Any]:
        """Everything that it is asked about."""
        texts = [message(text) for text in TEXTS]
        return [
            *map(copy.deepcopy, self.payloads),
            *texts,
            *map(copy.deepcopy, FIELDS),
            [message("one"), message("two")],
            "text",
        ]

    def _state(self) -> State:
        return state_of(self.state)

    # -- laws

    def test_it_answers_at_once(self) -> None:
        """An edge does not wait: what waits is a node."""
        component = self.make()
        require(callable(component), "it cannot be called")
        require(not is_async(component), "it is async; an edge answers at once")

    def test_hostile_payloads_are_answered_or_refused_in_words(self) -> None:
        """No payload makes it fail by accident."""
        component = self.make()
        for payload in self.given():
            self.answered(component, payload)

    def test_the_same_question_has_the_same_answer(self) -> None:
        """Ask again, after others, in several threads, and another one of the same config."""
        component, other = self.make(), self.make()
        first = [repr(self.answered(component, payload)) for payload in self.given()]
        again = [repr(self.answered(component, payload)) for payload in reversed(self.given())][
            ::-1
        ]
        fresh = [repr(self.answered(other, payload)) for payload in self.given()]
        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(partial(self.answered, component), self.given())
            threads = [repr(each) for each in answers]
        for payload, *answers in zip(self.given(), first, again, fresh, threads, strict=True):
            require(
                len(set(answers)) == 1,
                f"about {shown(payload)} it answers "
                f"{', '.join(map(shown, dict.fromkeys(answers)))}",
            )

    def test_what_it_looks_at_stays_as_it_is(self) -> None:
        """Neither the payload nor the state is changed."""
        component = self.make()
        for payload in self.given():
            before, state = repr(payload), self._state()
            kept = repr(dict(state))
            self.answered(component, payload, state)
            require(repr(payload) == before, f"it changes its payload {before[:60]}")
            require(repr(dict(state)) == kept, "it changes the state")

    def test_it_has_no_effects(self) -> None:
        """It is pure: no file, no network, no process, no waiting."""
        component = self.make()
        self.answered(component, message("warm"))
        with watched() as seen:
            for payload in self.given():
                self.answered(component, payload)
        require(
            not seen.effects and not seen.blocked,
            f"asking it {', '.join([*seen.effects, *seen.blocked])}",
        )


class ConditionKit(EdgeKit):
    """The laws of every condition: yes or no."""

    kind = "conditions"

    def test_it_says_yes_or_no(self) -> None:
        """The answer is a truth value, not something to be interpreted."""
        component = self.make()
        for payload in self.given():
            how, answer = self.answered(component, payload)
            if how == "answer":
                require(
                    isinstance(answer, bool),
                    f"about {shown(payload)} it says {shown(answer)}, "
                    "which is neither True nor False",
                )


class ProcessorKit(EdgeKit):
    """The laws of every processor: a text, a payload, or nothing."""

    kind = "processors"

    def test_what_it_gives_can_be_journaled(self) -> None:
        """Plain data, and none that is shared with what it was given."""
        from axil_journals import decode_value, encode_value

        component = self.make()
        for payload in self.given():
            how, answer = self.answered(component, payload)
            if how == "answer" and answer is not None:
                require(
                    repr(decode_value(encode_value(answer))) == repr(answer),
                    f"from {shown(payload)} it makes {shown(answer)}, which a journal changes",
                )


def state_of(values: Mapping[str, Any]) -> State:
    """Return a state with these fields."""
    return Schema().start(dict(values))

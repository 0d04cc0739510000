"""The kit of scorers: a score is from 0 to 1, the same for the same trial, and no accident."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from axil import AxilError, RootGraph, run_sync
from axil_evals import Case, Score, Trial
from axil_testing.kit.base import Kit, require
from axil_testing.kit.hostile import TEXTS, is_clumsy, shown


class ScorerKit(Kit):
    """The laws of scorers. A scorer that asks a model is given one that answers: ``models``."""

    cases: ClassVar[Sequence[Case]] = (
        Case(name="text", inputs={"text": "a"}, expected="b", metadata={"tools": ["look"]}),
        Case(name="fields", inputs={"n": 1}, expected={"n": 2, "m": [1, {"k": None}]}),
        Case(name="nothing", inputs="a"),
    )
    """Cases that it is asked about."""
    asks_a_model: ClassVar[bool] = False
    """True if it needs a model that the kit does not have."""

    def trials(self) -> list[Trial]:
        """Return the trials that it is asked about: hostile outputs, and none."""
        outputs: list[Any] = [*TEXTS, {"text": text_of(TEXTS)}, {"n": 2, "m": [1]}, None, 7, [], {}]
        return [
            Trial(status="done", output=each, nodes=("a", "b"), tools=("look",)) for each in outputs
        ]

    def scored(self, component: Any, case: Case, trial: Trial) -> Score | str:
        """Return the score, or the words of the refusal.

        Raises: AssertionError: it fails by accident, or gives no score.
        """
        try:
            given = run_sync(_asked(component, case, trial))
        except AxilError as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:
            require(
                not is_clumsy(error),
                f"{shown(trial.output)} makes it fail by accident: {type(error).__name__}: {error}",
            )
            raise
        require(
            isinstance(given, (Score, bool, int, float)),
            f"it gave {type(given).__name__}; a scorer gives a Score, a number or a bool",
        )
        try:
            return Score.of(given)
        except ValueError as error:
            raise AssertionError(f"it gave {given!r}: {error}") from error

    def answers(self) -> list[tuple[Score | str, Score | str]]:
        """Return what it says twice of each trial of each case."""
        if self.asks_a_model:
            self.skip("it asks a model that the kit does not have")
        first, second = self.make(), self.make()
        return [
            (self.scored(first, case, trial), self.scored(second, case, trial))
            for case in self.cases
            for trial in self.trials()
        ]

    # -- laws

    def test_a_score_is_from_0_to_1_or_a_refusal_in_words(self) -> None:
        """No output makes it fail by accident."""
        require(self.answers(), "it was asked nothing")

    def test_the_same_trial_has_the_same_score(self) -> None:
        """Comparisons of versions compare versions, and not moods."""
        apart = [pair for pair in self.answers() if pair[0] != pair[1]]
        require(not apart, f"one trial has two scores: {apart[:1]}")

    def test_it_leaves_cases_and_trials_as_they_are(self) -> None:
        """Other scorers look at them, too."""
        if self.asks_a_model:
            self.skip("it asks a model that the kit does not have")
        component = self.make()
        for case in self.cases:
            for trial in self.trials():
                before = copy.deepcopy((case.plain(), trial.plain()))
                self.scored(component, case, trial)
                require(
                    before == (case.plain(), trial.plain()), f"it changes {shown(trial.output)}"
                )


def text_of(texts: Sequence[Any]) -> Any:
    """Return the longest text."""
    return max(map(str, texts), key=len)


async def _asked(component: Any, case: Case, trial: Trial) -> Any:
    """Return what a scorer says, asked in a body of a run."""
    import inspect

    said: list[Any] = []

    async def body(inputs: Any, ctx: Any) -> dict[str, Any]:
        try:
            given = component.score(case, trial, ctx)
            said.append(await given if inspect.isawaitable(given) else given)
        except Exception as error:  # noqa: BLE001  # raised below, as it is
            said.append(error)
        return {}

    graph = RootGraph("kit")
    node = graph.create_node(body, name="scorer")
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, {})
    await graph.build().run({})
    if isinstance(said[0], Exception):
        raise said[0]
    return said[0]

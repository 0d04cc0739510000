"""The kit of joins: what decides when a node fires is a rule of three numbers, and stays one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from axil import EdgeSpec, GraphSpec, NodeSpec, Out, Result, Workflow
from axil.plugin import thaw
from axil_journals import MemoryJournal
from axil_testing.clock import JumpingClock
from axil_testing.kit.base import Kit, require
from axil_testing.kit.hostile import shown
from axil_testing.kit.nodes import Tape, left_behind
from axil_testing.kit.watch import watched

Counts = tuple[int, int, int]
_MOST: Final = 7
"""Trigger edges: all that can become of so many is tried."""
_LARGE: Final = 100
"""Ways of edges that are decided one by one, of up to a thousand each."""
_NAMES: Final = ("a", "b", "c", "d", "e")
_AT: Final = "joined"


class JoinKit(Kit):
    """The laws of every join: a class with ``fires``, ``early``, ``per_token`` and ``rest``."""

    kind = "joins"

    def counts(self) -> Iterator[Counts]:
        """Yield what it may be asked: live, dead and all edges; all are decided, unless it is
        early.
        """
        is_early = self.make().early
        for total in range(1, _MOST + 1):
            for live in range(total + 1):
                for dead in range(total - live + 1) if is_early else (total - live,):
                    yield live, dead, total

    def asked(self, join: Any = None) -> Callable[[Counts], bool | None]:
        """Return its rule; a join that fires for each token has none, which skips the law."""
        made = self.make() if join is None else join
        if made.per_token:
            self.skip("it fires for each token, and is never asked")

        def ask(counts: Counts) -> bool | None:
            try:
                return made.fires(*counts)
            except Exception as error:
                raise AssertionError(
                    f"asked about {described(counts)} it raises {type(error).__name__}: {error}"
                ) from error

        return ask

    # -- laws

    def test_it_is_a_join(self) -> None:
        """It says what it is, and says the same whenever it is asked."""
        join = self.make()
        require(callable(getattr(join, "fires", None)), "it has no method fires.")
        for name in ("early", "per_token"):
            texts = [getattr(join, name, None) for _ in range(2)]
            require(
                type(texts[0]) is bool and texts[0] is texts[1],
                f"{name} is {shown(texts[0])}, and then {shown(texts[1])}; say True or False.",
            )
        rest = getattr(join, "rest", None)
        require(rest in ("ignore", "cancel"), f'rest is {shown(rest)}; say "ignore" or "cancel".')
        require(
            not (join.early and join.per_token),
            "it is early and fires for each token: it cannot be both.",
        )

    def test_the_same_counts_have_the_same_answer(self) -> None:
        """In any order, asked often, and asked of another one that is made the same way."""
        ask, other = self.asked(), self.asked()
        first = {counts: ask(counts) for counts in self.counts()}
        mixed = [*first, *first]
        random.Random(1).shuffle(mixed)
        for counts in mixed:
            for again in (ask(counts), other(counts)):
                require(
                    again is first[counts],
                    f"{described(counts)} gives {shown(first[counts])}, and then {shown(again)}",
                )

    def test_it_answers_yes_or_no(self) -> None:
        """True or False; None only from an early join."""
        ask, is_early = self.asked(), self.make().early
        for counts in self.counts():
            answer = ask(counts)
            require(
                type(answer) is bool or (is_early and answer is None),
                f"{described(counts)} gives {shown(answer)}; expected True or False"
                f"{' or None' if is_early else ''}.",
            )

    def test_it_answers_when_all_edges_are_decided(self) -> None:
        """There is nothing more to wait for."""
        ask = self.asked()
        for live, dead, total in self.counts():
            if live + dead == total:
                require(
                    ask((live, dead, total)) is not None,
                    f"{described((live, dead, total))} gives None, and nothing more will come.",
                )

    def test_an_early_answer_stands(self) -> None:
        """Give the same answer before all edges are decided as after, however the others are
        decided.
        """
        ask = self.asked()
        if not self.make().early:
            self.skip("it is asked once")
        for counts in self.counts():
            answer = ask(counts)
            if answer is None:
                continue
            for after in _next(counts):
                require(
                    ask(after) is answer,
                    f"{described(counts)} gives {shown(answer)}, "
                    f"then {described(after)} {shown(ask(after))}",
                )

    def test_many_edges_are_as_few(self) -> None:
        """Answer for a thousand edges, and keep an early answer."""
        ask, is_early, chance = self.asked(), self.make().early, random.Random(2)
        for _ in range(_LARGE):
            total, likely = chance.randint(1, 1000), chance.choice((0, 1, chance.random()))
            live, answer = 0, None
            for decided in range(1, total + 1):
                live += chance.random() < likely
                if not is_early and decided < total:
                    continue
                now = ask((live, decided - live, total))
                where = described((live, decided - live, total))
                require(answer is None or now is answer, f"{where} gives {shown(now)}, after more")
                answer = now
            require(type(answer) is bool, f"of {total} edges, {live} live, it gives {answer!r}")

    def test_it_has_no_effects(self) -> None:
        """It is asked whenever an edge is decided, between firings."""
        join = self.make()
        if not callable(getattr(join, "fires", None)) or join.per_token:
            self.skip("it is never asked")
        counts = list(self.counts())
        join.fires(*counts[0])
        with watched() as seen:
            for each in counts:
                join.fires(*each)
        found = [*seen.effects, *seen.blocked]
        require(not found, f"asking it has effects: {', '.join(found)}")

    def test_runs_share_nothing(self) -> None:
        """A run with it gives the same result as the run before: a plan is used by many runs."""
        shared = self.make()
        for order in _orders():
            alone, _ = self._come_to(self.make(), order)
            for _ in range(2):
                again, _ = self._come_to(shared, order)
                require(
                    again == alone,
                    f"used again, a run gives {shown(again)}; alone it gave {shown(alone)}",
                )

    def test_a_run_that_broke_off_goes_on_as_if_it_had_not(self) -> None:
        """From every prefix of the journal: a node that has fired is not fired with other edges,
        though another one would be the first now.
        """
        for order in _orders():
            whole = Tape()
            expected, _ = self._come_to(self.make(), order, journal=whole, run_id="kit")
            fired = [n for n, each in enumerate(whole.appended) if _is_firing(each)]
            turned = tuple(reversed(order))
            for cut in range(1, len(whole.appended)):
                # what comes first now matters only as long as it is not written down
                is_known = bool(fired) and cut > fired[0]
                found, bodies = self._come_to(
                    self.make(),
                    turned if is_known else order,
                    journal=left_behind(whole.appended[:cut], "kit"),
                    run_id="kit",
                    resuming=True,
                )
                same = found == expected if is_known or not self.make().early else True
                require(
                    same and found[0] == expected[0],
                    f"resumed after {cut} entries it gives {shown(found)}; "
                    f"in one go it gave {shown(expected)}",
                )
                again = is_known and not self.make().per_token and _AT in bodies
                require(not again, f"resumed after {cut} entries, its node fires again")

    # -- running it

    def _come_to(
        self, join: Any, order: Sequence[str | None], **options: Any
    ) -> tuple[tuple[Any, ...], list[str]]:
        """Run a fan into the join: what it comes to, and which bodies ran, in order.

        Args:
            order: who sends, the first one first; the others send nothing.
        """
        bodies: list[str] = []

        async def run() -> Result:
            flow = Workflow(_fan(join, order, bodies))
            async with flow:
                given: dict[str, Any] = {"clock": _Turns(), "journal": MemoryJournal()}
                given = {**given, "run_id": "kit", **options}
                return await flow.start({}, **given).result()

        result = self.wait(run())
        error = "" if result.error is None else f"{result.error.__cause__ or result.error}"
        return (result.status, thaw(result.output), error), bodies


class _Turns(JumpingClock):
    """A clock on which who sleeps for longer wakes later, in turns of the loop."""

    async def sleep(self, seconds: float) -> None:
        """Let the others run, so many times."""
        for _ in range(round(seconds) * 20):
            await super().sleep(0.05)


def _fan(join: Any, order: Sequence[str | None], bodies: list[str]) -> GraphSpec:
    """Return a graph of senders and a node that joins them."""

    def sends(name: str) -> Callable[..., Any]:
        async def send(inputs: dict[str, Any], ctx: Any) -> Any:
            bodies.append(name)
            await ctx.sleep(order.index(name) + 1 if name in order else 1)
            return {name: name}

        return send

    def joined(inputs: dict[str, Any]) -> Any:
        bodies.append(_AT)
        return Out({"from": sorted(inputs)})

    def live(name: str) -> Callable[[Any], bool]:
        return lambda payload: name in order

    return GraphSpec(
        id="kit",
        nodes=(
            *(NodeSpec(id=name, body=sends(name)) for name in _NAMES),
            NodeSpec(id=_AT, body=joined, join=join),
        ),
        edges=(
            *(EdgeSpec(source="@entry", target=name, keys={}) for name in _NAMES),
            *(
                EdgeSpec(source=name, target=_AT, keys={name: ""}, condition=live(name))
                for name in _NAMES
            ),
            EdgeSpec(source=_AT, target="@exit", keys={"from": ""}),
        ),
    )


def _orders() -> list[tuple[str, ...]]:
    """Return who sends, and in which order."""
    return [_NAMES, tuple(reversed(_NAMES)), ("d", "a", "c"), ("b",), ()]


def _is_firing(entry: Any) -> bool:
    return entry.kind == "done" and entry.node == _AT


def _next(counts: Counts) -> Iterator[Counts]:
    """Yield what may be asked when one more edge is decided."""
    live, dead, total = counts
    if live + dead < total:
        yield live + 1, dead, total
        yield live, dead + 1, total


def described(counts: Counts) -> str:
    """Return what is asked, in words."""
    live, dead, total = counts
    return f"{live} live and {dead} dead of {total} edges"

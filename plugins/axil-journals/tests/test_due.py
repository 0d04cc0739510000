"""Deadlines of questions: kept with the run, on time while somebody waits, the default afterwards,
once.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axil import MISSING, NodeFailed, Out, Question, Workflow, run_sync
from axil.plugin import JournalError, Overdue
from axil_journals import MemoryJournal, open_questions
from axil_testing import VirtualClock
from axil_testing.specs import Tape, node, workflow

ASKED = Question(text="Send it?", within_seconds=3600.0, default="no")


def asking(question: Question = ASKED, **more: Any) -> Workflow:
    async def body(task: Any, ctx: Any) -> Out:
        return Out({"said": await ctx.ask(question)})

    return workflow([node("a", body, mode="async", ctx=True, **more)], ["in a", "a out"])


def run(flow: Workflow, clock: VirtualClock, **options: Any) -> Any:
    return run_sync(flow.start({}, clock=clock, **options).result())


def again(
    flow: Workflow, clock: VirtualClock, journal: MemoryJournal, answers: Any = None, **options: Any
) -> Any:
    return run_sync(
        flow.resume("r", journal=journal, clock=clock, answers=answers or {}, **options)
    )


class Slow:
    """A channel that answers after some time, and says what it was shown."""

    def __init__(self, clock: VirtualClock, seconds: float, answer: Any = "yes") -> None:
        self.clock, self.seconds, self.answer = clock, seconds, answer
        self.asked: list[Question] = []
        self.taken_back = 0

    async def ask(self, question: Question) -> Any:
        self.asked.append(question)
        try:
            await self.clock.sleep(self.seconds)
        except asyncio.CancelledError:
            self.taken_back += 1
            raise
        return self.answer


def test_a_channel_that_is_too_slow_is_left_and_the_default_is_the_answer():
    clock, journal = VirtualClock(1000), MemoryJournal()
    slow = Slow(clock, 7200)
    result = run(asking(), clock, channel=slow, journal=journal, run_id="r")
    assert (result.output, clock.now(), slow.taken_back) == ({"said": "no"}, 4600, 1)
    assert slow.asked[0].due == 4600
    quick = Slow(clock, 3599)
    assert run(asking(), clock, channel=quick).output == {"said": "yes"}


def test_a_question_without_a_default_fails_its_node_when_it_is_late():
    clock, journal = VirtualClock(), MemoryJournal()
    flow = asking(Question(text="Send it?", within_seconds=5))
    with pytest.raises(NodeFailed, match=r'AX520.*there was no answer to "Send it') as failed:
        run_sync(flow.run({}, clock=clock, channel=Slow(clock, 6), journal=journal, run_id="r"))
    assert isinstance(failed.value.__cause__, Overdue)
    with pytest.raises(NodeFailed, match="AX520"):  # it is known: whoever resumes it gets the same
        again(flow, clock, journal, channel=Slow(clock, 1))


def test_a_body_may_do_something_else_when_it_is_late():
    async def body(task: Any, ctx: Any) -> Out:
        try:
            return Out({"said": await ctx.ask(Question(text="?", within_seconds=5))})
        except Overdue:
            return Out({"said": "escalated"})

    clock = VirtualClock()
    flow = workflow([node("a", body, mode="async", ctx=True)], ["in a", "a out"])
    assert run(flow, clock, channel=Slow(clock, 6)).output == {"said": "escalated"}


def test_a_paused_run_says_when_its_question_is_due_and_takes_the_default_afterwards():
    journal = MemoryJournal()
    paused = run(asking(), VirtualClock(1000), journal=journal, run_id="r")
    assert (paused.status, paused.questions[0].due) == ("paused", 4600)
    assert [question.due for question in open_questions(journal.entries("r"))] == [4600]
    assert again(asking(), VirtualClock(4599), journal).status == "paused"
    assert [question.due for question in open_questions(journal.entries("r"))] == [4600]
    assert again(asking(), VirtualClock(4600), journal).output == {"said": "no"}


def test_an_answer_in_time_counts_and_a_late_one_is_refused():
    journal = MemoryJournal()
    (question,) = run(asking(), VirtualClock(0), journal=journal, run_id="r").questions
    with pytest.raises(JournalError, match=r"AX522.*was due at 1970-01-01 01:00:00 UTC"):
        again(asking(), VirtualClock(3601), journal, {question.id: "yes"})
    assert again(asking(), VirtualClock(3500), journal, {question.id: "yes"}).output == {
        "said": "yes"
    }


def test_an_answer_is_given_once():
    journal = MemoryJournal()
    (question,) = run(asking(), VirtualClock(0), journal=journal, run_id="r").questions
    again(asking(), VirtualClock(1), journal, {question.id: "yes"})
    with pytest.raises(JournalError, match=r"AX521.*has been answered"):
        again(asking(), VirtualClock(1), journal, {question.id: "no"})
    # said again, and the same
    assert again(asking(), VirtualClock(1), journal, {question.id: "yes"}).output == {"said": "yes"}


def test_a_resumed_run_waits_for_the_rest_and_never_more_than_was_meant():
    # the clock on the wall may have been put back or on
    for now, waits in ((600, 3000), (0, 3600), (-50_000, 3600), (99_999, 0)):
        journal = MemoryJournal()
        run(asking(), VirtualClock(0), journal=journal, run_id="r")
        clock = VirtualClock(now)
        assert again(asking(), clock, journal, channel=Slow(clock, 99_999)).output == {"said": "no"}
        assert clock.now() - now == waits


def test_a_crash_while_somebody_is_asked_does_not_begin_the_time_anew():
    clock, journal = VirtualClock(0), MemoryJournal()

    class Dies(Slow):
        async def ask(self, question: Question) -> Any:
            await self.clock.sleep(1000)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asking(), clock, journal=journal, run_id="r", channel=Dies(clock, 0))
    assert [question.due for question in open_questions(journal.entries("r"))] == [3600]
    later = VirtualClock(2000)
    assert again(asking(), later, journal, channel=Slow(later, 9999)).output == {"said": "no"}
    assert later.now() == 3600


def test_several_questions_are_open_at_once_each_with_its_own_time():
    async def body(task: Any, ctx: Any) -> Out:
        name = ctx.activation.node
        return Out(
            {name: await ctx.ask(Question(text="?", within_seconds=waits[name], default="-"))}
        )

    waits = {"a": 10, "b": 100}
    flow = workflow(
        [node(name, body, mode="async", ctx=True) for name in waits],
        ["in a", "in b", "a out", "b out"],
    )
    journal = MemoryJournal()
    paused = run(flow, VirtualClock(0), journal=journal, run_id="r")
    assert {question.node: question.due for question in paused.questions} == {"a": 10, "b": 100}
    half = again(flow, VirtualClock(50), journal)
    assert ([question.node for question in half.questions], half.status) == (["b"], "paused")
    assert again(flow, VirtualClock(60), journal, {half.questions[0].id: "yes"}).output == {
        "a": "-",
        "b": "yes",
    }


def test_what_was_shown_to_somebody_does_not_pass_for_a_pause_before_an_effect():
    """A body with effects outside that got its answer and broke off behind it may have done
    something.
    """
    clock, journal = VirtualClock(0), MemoryJournal()
    ran: list[str] = []

    async def body(task: Any, ctx: Any) -> Out:
        answer = await ctx.ask(ASKED)
        ran.append(answer)
        if len(ran) == 1:
            raise KeyboardInterrupt
        return Out({"said": answer})

    flow = workflow(
        [node("a", body, mode="async", ctx=True, effects="external")], ["in a", "a out"]
    )
    with pytest.raises(KeyboardInterrupt):
        run(flow, clock, journal=journal, run_id="r", channel=Slow(clock, 1))
    broken = again(flow, clock, journal)
    assert (broken.status, broken.questions[0].kind) == ("paused", "uncertain")


def test_a_missing_answer_is_a_pause_and_not_a_late_answer():
    clock = VirtualClock(0)
    assert run(asking(), clock, channel=Slow(clock, 1, MISSING)).status == "paused"


def test_a_crash_at_any_write_changes_neither_when_it_is_due_nor_what_the_answer_is():
    for seconds, answer in ((7200, "no"), (60, "yes")):
        clock, tape = VirtualClock(0), Tape()
        run(asking(), clock, journal=tape, run_id="r", channel=Slow(clock, seconds))
        assert [entry.kind for entry in tape.lines] == ["run", "asked", "answer", "done", "ended"]
        for written in range(1, len(tape.lines) + 1):
            later, again_on = VirtualClock(1800), Tape(tape.lines[:written])
            result = run(
                asking(),
                later,
                journal=again_on,
                run_id="r",
                resuming=True,
                channel=Slow(later, 99_999),
            )
            was_answered = written > 2
            assert result.output == {"said": answer if was_answered else "no"}
            assert later.now() == (1800 if was_answered else 5400 if written == 1 else 3600)


def test_an_answer_to_a_question_that_was_not_asked_names_the_open_ones_and_is_not_kept():
    clock, journal = VirtualClock(1000), MemoryJournal()
    flow = asking()
    (question,) = run(flow, clock, journal=journal, run_id="r").questions
    before = list(journal.entries("r"))
    with pytest.raises(JournalError) as caught:
        again(flow, clock, journal, {"b?1": "yes"})
    assert str(caught.value) == (f"AX519 the run asked no question 'b?1'. Open: {question.id}.")
    assert list(journal.entries("r")) == before
    assert again(flow, clock, journal, {question.id: "yes"}).output == {"said": "yes"}

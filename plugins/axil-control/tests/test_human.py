"""Laws of ``human`` and of channels."""

from __future__ import annotations

import asyncio
import io
import threading
from typing import Any

import pytest

from axil import MISSING, Question
from axil.plugin import message
from axil_control import Replies
from axil_control.channels import Terminal, asked, read
from axil_control.human import Human, answered, shown
from axil_testing import VirtualClock


class Asked:
    """A context that answers every question with one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Any:
        self.questions.append(question)
        return self.answer


def reply(answer: Any, *came: Any, **config: Any) -> tuple[Any, Question]:
    ctx = Asked(answer)
    # a context that can only be asked
    gave = asyncio.run(Human(Human.Config(**config)).run(list(came), ctx))  # type: ignore[arg-type]
    return gave, ctx.questions[0]


def test_a_person_sees_texts_behind_their_sources():
    _, question = reply(
        "ok",
        message("a", source="A"),
        message("b", "assistant", source="B"),
        description="Review it",
    )
    assert question.text == "A: a\n\nB: b"
    assert question.data == {"description": "Review it"}


def test_a_person_sees_one_text_alone():
    assert shown([message("hi", source="A")]) == "hi"


def test_where_nothing_came_the_person_sees_the_description():
    assert reply("ok", description="Say something")[1].text == "Say something"


def test_the_answer_is_one_user_message():
    assert reply("yes", message("a"))[0] == [message("yes")]


def test_an_empty_answer_is_an_empty_message():
    assert reply("")[0] == [message("")]


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ([{"type": "text", "text": "a"}], [message([{"type": "text", "text": "a"}])]),
        ([message("a"), message("b")], [message("a"), message("b")]),
        ({"content": "a"}, [message("a")]),
        ({"verdict": "no", "score": 2}, {"verdict": "no", "score": 2}),
        (True, [message("true")]),
    ],
)
def test_an_answer_may_be_parts_messages_or_fields(answer, output):
    assert answered(answer) == output


HUMANS = {
    "nodes": [
        {"id": "H", "type": "human", "config": {"description": "Name it"}},
        {"id": "Z", "type": "passthrough", "config": {}},
    ],
    "edges": [{"from": "H", "to": "Z"}],
    "start": ["H"],
}


def test_a_run_without_a_channel_pauses_with_the_question(run):
    result = run(HUMANS)
    assert result.status == "paused"
    assert result.questions[0].data["description"] == "Name it"


def test_replies_answer_in_order_and_then_no_more(run):
    channel = Replies(["axil"])
    assert run(HUMANS, channel=channel).output == "axil"
    assert run(HUMANS, channel=channel).status == "paused"
    assert [q.node for q in channel.asked] == ["H", "H"]


def test_replies_may_be_written_as_config():
    channel = Replies(Replies.Config(answers=("a", {"b": 1})))
    assert [asyncio.run(channel.ask(Question(text="?"))) for _ in range(3)] == [
        "a",
        {"b": 1},
        MISSING,
    ]


# ---------------------------------------------------------------------- terminal


class Keyboard(io.StringIO):
    """A terminal at which somebody typed."""

    def isatty(self) -> bool:
        return True


def typed(text: str, question: Question) -> tuple[Any, str]:
    screen = io.StringIO()
    return asyncio.run(
        Terminal(stdin=Keyboard(text), stdout=screen).ask(question)
    ), screen.getvalue()


def test_a_terminal_shows_the_question_and_reads_a_line():
    answer, screen = typed(
        "fine\n", Question(text="Well?", node="H", data={"description": "Say it"})
    )
    assert answer == "fine"
    assert screen == "\n── H asks\nSay it\nWell?\n> "


def test_the_end_of_the_input_is_no_answer():
    assert typed("", Question(text="?"))[0] is MISSING


def test_without_a_terminal_there_is_no_answer():
    assert (
        asyncio.run(
            Terminal(stdin=io.StringIO("x\n"), stdout=io.StringIO()).ask(Question(text="?"))
        )
        is MISSING
    )


def test_a_choice_is_asked_until_it_is_one():
    answer, screen = typed("blue\n2\n", Question(text="?", kind="choice", options=("red", "green")))
    assert answer == "green"
    assert "1. red\n2. green" in screen
    assert "Please give one of the answers above." in screen


@pytest.mark.parametrize(
    ("line", "more", "answer"),
    [
        ("", {}, ""),
        ("", {"default": "d"}, "d"),
        ("x", {"default": "d"}, "x"),
        ("Yes", {"kind": "approval"}, True),
        ("n", {"kind": "approval"}, False),
        ("maybe", {"kind": "approval"}, MISSING),
        ("red", {"options": ("red",)}, "red"),
        ("3", {"options": ("red",)}, MISSING),
    ],
)
def test_a_line_is_read_as_the_question_wants(line, more, answer):
    assert read(Question(text="?", **more), line) == answer


def test_a_default_is_shown():
    assert "(empty: d)" in asked(Question(text="?", default="d"))


# ---------------------------------------------------------------------- time


def late(**config: Any) -> dict[str, Any]:
    nodes = [
        {"id": "H", "type": "human", "config": {"within": "1h", **config}},
        *({"id": name, "type": "passthrough"} for name in "YL"),
    ]
    return {
        "nodes": nodes,
        "edges": [{"from": "H", "to": "Y"}, {"from": "H", "to": "L"}],
        "start": ["H"],
        "end": ["Y", "L"],
    }


class Never:
    """A channel without answers."""

    async def ask(self, question: Question) -> Any:
        await asyncio.Event().wait()


def test_a_person_who_is_late_gave_the_default(run):
    clock = VirtualClock()
    assert run(late(default="no"), channel=Never(), clock=clock).output == "no"
    assert clock.now() == 3600


def test_without_an_answer_another_node_continues_with_what_came(run, watch):
    result = run(late(late="L"), "Please sign.", channel=Never(), clock=VirtualClock(), watch=watch)
    assert (result.output, watch.fired) == ("Please sign.", ["H", "L"])
    watch.fired.clear()
    assert (
        run(late(late="L"), channel=Replies(["yes"]), clock=VirtualClock(), watch=watch).output
        == "yes"
    )
    assert watch.fired == ["H", "Y"]


def test_without_an_answer_and_a_default_the_node_fails(run):
    result = run(late(), channel=Never(), clock=VirtualClock())
    assert (result.status, "AX520" in str(result.error)) == ("failed", True)


@pytest.mark.parametrize(
    "config",
    [
        {"within": None, "default": "no"},
        {"default": "no", "late": "L"},
        {"within": "soon"},
        {"within": 0},
    ],
)
def test_times_that_make_no_sense_are_refused(run, config):
    with pytest.raises(Exception, match=r"AX523|duration above zero"):
        run(late(**config))


def test_another_node_has_to_be_one_that_an_edge_leads_to(run):
    with pytest.raises(Exception, match="AX611"):
        run(late(late="Nobody"))


def test_a_line_that_was_being_typed_when_a_question_was_taken_back_answers_the_next_one():

    class Typing(Keyboard):
        pressed = threading.Event()

        def readline(self, *size: Any) -> str:
            self.pressed.wait(60)
            return super().readline()

    async def go() -> Any:
        screen = io.StringIO()
        terminal = Terminal(stdin=Typing("mine\n"), stdout=screen)
        first = asyncio.ensure_future(terminal.ask(Question(text="first?")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        Typing.pressed.set()
        return await terminal.ask(Question(text="second?", within_seconds=90)), screen.getvalue()

    answer, screen = asyncio.run(go())
    assert answer == "mine"
    assert "(not answered)" in screen
    assert "(within 1m 30s)" in screen


class Slowly(Keyboard):
    """A keyboard at which a line is typed when ``press`` allows one."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.reads, self.press = threading.Semaphore(0), threading.Semaphore(0)

    def readline(self, *size: Any) -> str:
        self.reads.release()
        assert self.press.acquire(timeout=60)
        return super().readline()


def test_what_is_typed_after_a_question_was_taken_back_answers_the_next_one_in_another_event_loop():
    keys = Slowly("mine\nnot mine\n")
    terminal = Terminal(stdin=keys, stdout=io.StringIO())

    async def taken_back() -> None:
        asking = asyncio.ensure_future(terminal.ask(Question(text="first?")))
        assert await asyncio.to_thread(keys.reads.acquire, timeout=60)
        asking.cancel()
        await asyncio.wait([asking])

    asyncio.run(taken_back())
    keys.press.release()

    async def asked_again() -> Any:
        async with asyncio.timeout(60):
            return await terminal.ask(Question(text="second?"))

    try:
        assert asyncio.run(asked_again()) == "mine"
    finally:
        keys.press.release()


def test_questions_of_several_event_loops_are_asked_one_after_the_other():
    keys, screen = Slowly("1\n2\n3\n"), io.StringIO()
    terminal = Terminal(stdin=keys, stdout=screen)
    answers: list[Any] = []

    def asks(name: str) -> None:
        try:
            answers.append((name, asyncio.run(terminal.ask(Question(text=f"{name}?")))))
        except Exception as error:  # noqa: BLE001  # it is looked at below
            answers.append((name, error))

    async def gives_up() -> None:
        asking = asyncio.ensure_future(terminal.ask(Question(text="never?")))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])

    first = threading.Thread(target=asks, args=("first",))
    first.start()
    assert keys.reads.acquire(timeout=60)
    asyncio.run(gives_up())  # while it waits for its turn, which is still the first one's
    second = threading.Thread(target=asks, args=("second",))
    second.start()
    second.join(0.1)
    assert "second?" not in screen.getvalue()
    for thread in (first, second):
        keys.press.release()
        thread.join(60)
    assert answers == [("first", "1"), ("second", "2")]
    assert "never?" not in screen.getvalue()


def test_questions_that_were_given_up_let_the_next_one_through_however_many_they_are():
    keys = Slowly("1\n2\n")
    terminal = Terminal(stdin=keys, stdout=io.StringIO())

    async def go() -> list[Any]:
        first = asyncio.create_task(terminal.ask(Question(text="first?")))
        assert await asyncio.to_thread(keys.reads.acquire, timeout=60)
        others = [asyncio.create_task(terminal.ask(Question(text="?"))) for _ in range(2000)]
        await asyncio.sleep(0)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        keys.press.release(2)
        async with asyncio.timeout(60):
            return [await first, await terminal.ask(Question(text="last?"))]

    assert asyncio.run(go()) == ["1", "2"]

"""The progress of a run as it is shown."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from axil import Activation, RootGraph
from axil.plugin import message
from axil_cli.page import Page, Paragraph, columns, shortened
from axil_cli.progress import Progress, where

A, B = Activation((), "ann"), Activation((), "bob")


@pytest.fixture(autouse=True)
def plain(monkeypatch) -> Iterator[None]:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    # on no machine does anything here take so long
    monkeypatch.setattr("axil_cli.progress._NOTICE_SECONDS", 1000)
    return None


class Paper(io.TextIOWrapper):
    """A stream that has all signs, and what was written on it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()


class Terminal(Paper):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def text(words: str) -> dict[str, Any]:
    return {"kind": "text", "text": words}


def shown(*deeds: Callable[[Progress], None]) -> list[str]:
    """Return the lines that are written when these things happen, the first heading apart."""
    stream = Paper()

    async def watch() -> None:
        progress = Progress(stream)
        for deed in deeds:
            deed(progress)
        progress.run_finished("run")

    asyncio.run(watch())
    return stream.text().splitlines()[1:]


def says(who: Activation, words: str) -> Callable[[Progress], None]:
    return lambda progress: progress.chunk(who, text(words))


def starts(who: Activation) -> Callable[[Progress], None]:
    return lambda progress: progress.firing_started(who, "node")


def ends(who: Activation, output: Any = None) -> Callable[[Progress], None]:
    return lambda progress: progress.firing_finished(who, "node", output)


def test_two_who_speak_at_once_are_heard_one_after_the_other():
    lines = shown(
        says(A, "I am "), says(B, "and I "), says(A, "Ann."), says(B, "am Bob."), ends(B), ends(A)
    )
    assert lines == ["ann    I am Ann.", "bob    and I am Bob."]


def test_words_come_as_they_are_said():
    stream = Paper()
    progress = Progress(stream)
    progress.chunk(A, text("one two thr"))
    assert stream.text().endswith("ann    one two")
    progress.chunk(A, text("ee four "))
    assert stream.text().endswith("ann    one two three four")


def test_thoughts_are_one_line_before_what_is_said():
    thinks = [lambda p, piece=piece: p.chunk(A, piece) for piece in thought("Hm,\n", "leaves.")]
    lines = shown(*thinks, says(A, "There are two."), ends(A))
    assert lines == ["ann    ∴ Hm, leaves.", "       There are two."]


def thought(*pieces: str) -> list[dict[str, str]]:
    return [{"kind": "reasoning", "text": piece} for piece in pieces]


def test_a_tool_call_is_shown_with_its_result_between_what_is_said():
    call = {
        "kind": "tool_call",
        "id": "1",
        "name": "find",
        "arguments": {"term": "axil", "most": 3},
    }
    result = {
        "kind": "tool_result",
        "id": "1",
        "name": "find",
        "content": '{"found": 2}',
        "failed": False,
    }
    wrong = {
        "kind": "tool_result",
        "id": "2",
        "name": "find",
        "content": "Error: no",
        "failed": True,
    }
    lines = shown(
        says(A, "Let me look."),
        lambda p: p.chunk(A, call),
        lambda p: p.chunk(A, result),
        lambda p: p.chunk(A, wrong),
        says(A, "There are two."),
        ends(A),
    )
    assert lines == [
        "ann    Let me look.",
        '       ⚙ find(term="axil", most=3) → found 2',
        "       ⚙ find() → Error: no",
        "       There are two.",
    ]


def test_a_service_that_is_asked_again_is_seen_and_its_reply_begins_anew():
    again = {
        "kind": "retry",
        "try": 2,
        "of": 5,
        "wait_seconds": 0.5,
        "status": None,
        "error": "the reply broke off.",
    }
    lines = shown(
        says(A, "An axil is"),
        lambda p: p.chunk(A, {"kind": "reset", "chunks": 1}),
        lambda p: p.chunk(A, again),
        says(A, "An angle."),
        ends(A),
    )
    assert lines == [
        "ann    An axil is  (taken back)",
        "       ↻ 2 of 5: the reply broke off.",
        "       An angle.",
    ]


def test_thoughts_of_a_reply_that_broke_off_are_not_shown():
    thought = {"kind": "reasoning", "text": "A leaf?"}
    lines = shown(
        lambda p: p.chunk(A, thought),
        lambda p: p.chunk(A, {"kind": "reset", "chunks": 1}),
        says(A, "An angle."),
        ends(A),
    )
    assert lines == ["ann    An angle."]


def test_a_reply_that_is_data_is_shown_as_fields_when_it_is_whole():
    assert shown(
        says(A, '{"score": 3, '), says(A, '"why": "so"}'), ends(A, {"score": 3, "why": "so"})
    ) == [
        "ann    score: 3",
        "       why: so",
    ]


def fields(**known: Any) -> Callable[[Progress], None]:
    return lambda progress: progress.chunk(A, {"kind": "output", "fields": known})


def test_fields_are_written_when_they_are_whole_and_those_of_a_repaired_reply_once():
    first = [fields(), says(A, "x {"), fields(n=1), says(A, ","), fields(n=1, to=["a"])]
    again = [fields(), says(A, "{"), fields(n=2), fields(n=2, to=["a"]), fields(n=2, to=["a", "b"])]
    lines = shown(
        *first,
        lambda p: p.chunk(A, {"kind": "reset", "chunks": 5}),
        *again,
        ends(A, '{"n": 2, "to": ["a", "b"]}'),
    )
    assert lines == ["ann    n: 1  (taken back)", "       n: 2", '       to: ["a", "b"]']


def test_a_text_inside_of_what_is_tried_again_is_taken_back():
    inner = Activation(("ann",), "cy")
    lines = shown(
        says(inner, "Half a"),
        lambda p: p.chunk(A, {"kind": "reset", "chunks": 1, "inside": True}),
        says(B, "I go on."),
        ends(B),
    )
    assert [line for line in lines if "──" not in line] == [
        "cy     Half a  (taken back)",
        "bob    I go on.",
    ]


def test_what_is_passed_on_is_not_repeated_and_nothing_is_said_so():
    said = [message("a  b", "assistant")]
    assert shown(says(A, "a b"), ends(A, said), ends(B, said), ends(A, None)) == [
        "ann    a b",
        "bob    (passed on)",
        "ann    (nothing)",
    ]


def test_long_speech_is_cut_and_counted():
    lines = shown(says(A, "word " * 200), ends(A))
    assert len(lines) == 8
    spoken, _, left = lines[-1].partition(" … ")
    assert left == f"{200 - ' '.join([*lines[:-1], spoken]).count('word')} more words"


def test_rounds_and_inner_graphs_have_headings():
    first = Activation(("cycle(a,b)", 0), "a")
    second = Activation(("cycle(a,b)", 1), "a")
    inner = Activation(("sub",), "c")
    item = Activation(("each", 1), "each")
    lines = shown(
        ends(first, "x"), ends(second, "y"), ends(inner, "z"), ends(A, "end"), ends(item, "i")
    )
    assert [line.partition(" ─")[0].rstrip() for line in lines] == [
        "a      x",
        "── round 2",
        "a      y",
        "── sub",
        "c      z",
        "── run",
        "ann    end",
        "each 2  i",
    ]


def test_who_works_for_long_is_announced_once():
    stream = Paper()

    async def watch() -> None:
        progress = Progress(stream)
        progress.firing_started(A, "node")
        progress._announce(A)
        progress._announce(A)
        progress.firing_finished(A, "node", "done")
        progress.run_finished("run")

    asyncio.run(watch())
    assert stream.text().splitlines()[1:] == ["ann    ▸ …", "       done"]


def test_the_input_comes_first():
    graph = RootGraph("flow")
    graph.create_node(lambda inputs: inputs, name="a-node")
    graph.edge_from_entry("a-node", ["topic", "tone"])
    graph.edge_to_exit("a-node", ["topic"])
    stream = Paper()
    graph.build().invoke(
        {"topic": "axils", "tone": "dry"},
        observers=[Progress(stream, {"topic": "axils", "tone": "dry"})],
    )
    assert [line.partition(" ─")[0] for line in stream.text().splitlines()] == [
        "── flow",
        "input   topic: axils",
        "        tone: dry",
        "a-node  topic: axils",
    ]


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    def written(stream: Paper) -> str:
        Page(stream).rule("x")
        return stream.text()

    assert "\x1b[" in written(Terminal())
    assert "\x1b[" not in written(Paper())
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in written(Terminal())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in written(Paper())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in written(Terminal())


def test_nothing_that_is_said_steers_the_terminal():
    lines = shown(says(A, "a\x1b[2Jb \x07 c"), ends(A), ends(B, "x\x1b[2J"))
    assert lines == ["ann    a\\x1b[2Jb \\x07 c", "bob    x\\x1b[2J"]


def test_a_terminal_that_lacks_signs_gets_others():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    page = Page(stream)
    page.rule("x" * 99)
    page.write(page.sign("⚙") + page.sign("→") + "\n")
    assert raw.getvalue().splitlines() == [b"-- " + b"x" * 51 + b"... --", b"*->"]


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="ab 日\n\u0301", max_size=30), max_size=12),
    st.integers(0, 30),
    st.integers(0, 3),
)
def test_a_paragraph_is_as_wide_as_its_page_and_loses_no_word(parts, margin, most):
    stream = Paper()
    paragraph = Paragraph(Page(stream), margin, lines=most)
    for part in parts:
        paragraph.feed(part)
    paragraph.end()
    body, _, reported = stream.text().removesuffix("\n").partition(" … ")
    if not reported:
        assert "".join(body.split()) == "".join("".join(parts).split())
        assert all(
            columns(line) + (margin if number == 0 else 0) < 60
            for number, line in enumerate(body.split("\n"))
        )
    assert bool(reported) == bool(paragraph.left_out)
    assert not most or body.count("\n") < most


@given(st.text(max_size=80), st.integers(3, 40))
def test_a_shortened_text_fits(given_text, room):
    assert columns(shortened(given_text, room)) <= room + 1
    assert "\n" not in shortened(given_text, room)


@pytest.mark.parametrize(
    ("frame", "path", "reported"),
    [
        (("square", 1), "square/square", ("", "2", "square")),
        (("team", "item", 1, 0), "team/item/item", ("", "2:1", "team/item")),
        (("m", 0, "n", 2), "m/n/n", ("", "1/3", "m/n")),
        (("sub",), "sub/a", ("", "", "sub/a")),
        (("cycle(a)", 0, "cycle(b)", 4), "b", ("round 1.5", "", "b")),
    ],
)
def test_frames_are_described_in_words(frame, path, reported):
    assert where(frame, path) == reported

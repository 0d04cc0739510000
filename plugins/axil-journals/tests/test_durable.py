"""Promises of a journal to a run: one holder, nothing done twice unasked, threads, and a bounded
record of long loops.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from axil import CycleLimit, NodeFailed, Out, RootGraph, Schema, run_sync
from axil.plugin import APPEND, Field, JournalError, Uncertain
from axil_control import Loop
from axil_journals import Compactor, Entry, MemoryJournal, ReplayIndex
from axil_testing import VirtualClock
from axil_testing.specs import Tape, edge, node, workflow, written


def run(flow: Any, given: Any = None, **options: Any) -> Any:
    return run_sync(flow.start({} if given is None else given, **options).result())


# ------------------------------------------------------------------------------------------------ o


def test_a_run_that_is_at_work_is_refused_to_a_second_holder_and_free_again_when_it_is_over():
    journal = MemoryJournal()
    first, second = journal.open("r"), journal.open("r")
    first.append(Entry("run"))
    with pytest.raises(JournalError, match="AX506"):
        second.append(Entry("resumed"))
    first.close()
    third = journal.open("r")
    third.append(Entry("resumed"))
    with pytest.raises(JournalError, match="AX506"):
        first.append(Entry("ended"))
    assert [entry.kind for entry in journal.entries("r")] == ["run", "resumed"]


def test_a_book_that_was_opened_before_somebody_else_wrote_is_refused():
    journal = written([Entry("run")])
    late = journal.open("r")
    writer = journal.open("r")
    writer.append(Entry("resumed"))
    writer.close()
    with pytest.raises(JournalError, match="AX506"):
        late.append(Entry("resumed"))


def test_two_runs_of_one_id_at_once_are_refused_and_neither_body_runs_twice():
    journal, ran = MemoryJournal(), list[str]()

    async def body(task: Any, ctx: Any) -> Out:
        ran.append("a")
        with pytest.raises(JournalError, match="AX506"):
            await flow.start({}, run_id="r", journal=journal).result()
        return Out({"done": True})

    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    assert run(flow, run_id="r", journal=journal).output == {"done": True}
    assert ran == ["a"]


def test_a_journal_says_how_a_run_ended():
    flow = workflow(["a"], ["in a", "a out"])
    journal = MemoryJournal()
    run(flow, run_id="r", journal=journal, origin={"file": "a.yaml"})
    replay = ReplayIndex(journal.entries("r"))
    assert replay.ended is not None
    assert replay.header is not None
    assert replay.ended.data["status"] == "done"
    assert replay.ended.data["output"] == {"by": "a"}
    assert (replay.header.data["graph"], replay.header.data["origin"]) == ("g", {"file": "a.yaml"})


# ------------------------------------------------------------------------------------------------ e


def breaking(journal: Tape) -> Any:
    """Return a node that tells the world, with a journal that breaks right after; and the same
    without the break.
    """
    reported: list[str] = []
    broken = [True]

    async def tell(task: Any, ctx: Any) -> Out:
        reported.append(ctx.key())
        if broken[0]:
            raise KeyboardInterrupt  # the process is gone
        return Out({"said": len(reported)})

    return (
        workflow([node("mail", tell, mode="async", effects="external")], ["in mail", "mail out"]),
        reported,
        broken,
    )


def broken_off() -> tuple[Any, list[str], Tape]:
    tape = Tape()
    flow, reported, broken = breaking(tape)
    with pytest.raises(KeyboardInterrupt):
        run(flow, run_id="r", journal=tape)
    broken[0] = False
    tape.lines = [entry for entry in tape.lines if entry.kind != "ended"]
    return flow, reported, tape


def test_an_effect_that_may_have_happened_is_not_repeated_unasked():
    flow, reported, tape = broken_off()
    assert [entry.kind for entry in tape.lines] == ["run", "began"]
    result = run(flow, run_id="r", journal=tape, resuming=True)
    assert result.status == "paused"
    [question] = result.questions
    assert (question.kind, question.node, question.options) == (
        "uncertain",
        "mail",
        ("retry", "fail"),
    )
    assert question.data["key"] == reported[0]
    assert len(reported) == 1


@pytest.mark.parametrize(("answer", "times"), [("retry", 2), ({"output": {"said": "by hand"}}, 1)])
def test_a_callback_decides_whether_to_repeat_it_or_states_the_result(answer: Any, times: int):
    flow, reported, tape = broken_off()
    question = run(flow, run_id="r", journal=tape, resuming=True).questions[0]
    result = run(flow, run_id="r", journal=tape, resuming=True, answers={question.id: answer})
    assert result.status == "done", result.error
    assert result.output == {"said": 2 if answer == "retry" else "by hand"}
    assert len(reported) == times
    assert len(set(reported)) == 1  # the key is the same each time


def test_giving_it_up_fails_the_node():
    flow, _, tape = broken_off()
    question = run(flow, run_id="r", journal=tape, resuming=True).questions[0]
    result = run(flow, run_id="r", journal=tape, resuming=True, answers={question.id: "fail"})
    assert isinstance(result.error, NodeFailed)
    assert isinstance(result.error.__cause__, Uncertain)


def test_what_is_not_external_is_simply_run_again():
    reported: list[str] = []

    async def body(task: Any, ctx: Any) -> Out:
        reported.append(ctx.key("call"))
        if len(reported) == 1:
            raise KeyboardInterrupt
        return Out({})

    tape = Tape()
    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    with pytest.raises(KeyboardInterrupt):
        run(flow, run_id="r", journal=tape)
    assert run(flow, run_id="r", journal=tape, resuming=True).status == "done"
    assert reported[0] == reported[1]


def test_an_external_step_is_asked_about_like_an_external_node():
    sent: list[int] = []
    broken = True

    async def send() -> int:
        sent.append(1)
        if broken:
            raise KeyboardInterrupt
        return len(sent)

    async def body(task: Any, ctx: Any) -> Out:
        return Out({"sent": await ctx.step("send", send, effects="external")})

    tape = Tape()
    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    with pytest.raises(KeyboardInterrupt):
        run(flow, run_id="r", journal=tape)
    broken = False
    question = run(flow, run_id="r", journal=tape, resuming=True).questions[0]
    assert question.text.startswith("a: send was about to run")
    assert run(
        flow, run_id="r", journal=tape, resuming=True, answers={question.id: "retry"}
    ).output == {"sent": 2}


def test_an_external_step_that_happened_is_not_done_again():
    sent: list[int] = []

    async def send() -> int:
        sent.append(1)
        raise KeyboardInterrupt

    async def body(task: Any, ctx: Any) -> Out:
        return Out({"sent": await ctx.step("send", send, effects="external")})

    tape = Tape()
    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    with pytest.raises(KeyboardInterrupt):
        run(flow, run_id="r", journal=tape)
    question = run(flow, run_id="r", journal=tape, resuming=True).questions[0]
    answered = {question.id: {"output": "by post"}}
    assert run(flow, run_id="r", journal=tape, resuming=True, answers=answered).output == {
        "sent": "by post"
    }
    assert sent == [1]


def test_a_body_that_stopped_at_its_own_question_is_not_uncertain():
    """Its question ended what it had begun: it runs again from its top, as every body that asks
    does.
    """
    sent: list[str] = []

    async def body(task: Any, ctx: Any) -> Out:
        async def send() -> str:
            sent.append(await ctx.ask("to whom?"))
            return sent[-1]

        return Out({"to": await ctx.step("send", send, effects="external")})

    journal = MemoryJournal()
    flow = workflow([node("mail", body, mode="async", effects="external")], ["in mail", "mail out"])
    for is_known in (False, True, True):
        paused = run(flow, run_id="r", journal=journal, resuming=is_known)
        assert [question.text for question in paused.questions] == ["to whom?"]
    done = run(
        flow, run_id="r", journal=journal, resuming=True, answers={paused.questions[0].id: "Ada"}
    )
    assert (done.output, sent) == ({"to": "Ada"}, ["Ada"])


def test_a_question_of_one_step_says_nothing_of_another_that_was_at_work():
    posted: list[int] = []

    async def post() -> int:
        posted.append(1)
        while "asked" not in [entry.kind for entry in tape.lines]:  # noqa: ASYNC110  # no event
            await asyncio.sleep(0)
        if len(posted) == 1:
            raise KeyboardInterrupt
        return 2

    async def body(task: Any, ctx: Any) -> Out:
        async def ask() -> Any:
            return await ctx.ask("which shelf?")

        posting = ctx.step("post", post, effects="external")
        asking = ctx.step("ask", ask, effects="external")
        both = await asyncio.gather(posting, asking, return_exceptions=True)
        for each in both:
            if isinstance(each, BaseException):
                raise each
        return Out({"both": both})

    tape = Tape()
    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    with pytest.raises(KeyboardInterrupt):
        run(flow, run_id="r", journal=tape)
    paused = run(flow, run_id="r", journal=tape, resuming=True)
    asked = {each.kind: each for each in paused.questions}
    assert asked["uncertain"].text.startswith("a: post was about to run")
    answers = {asked["uncertain"].id: {"output": "sent"}, asked["text"].id: "the top one"}
    done = run(flow, run_id="r", journal=tape, resuming=True, answers=answers)
    assert (done.output, posted) == ({"both": ["sent", "the top one"]}, [1])


def test_what_was_begun_as_external_is_asked_about_though_its_step_says_otherwise_now():
    sent: list[str] = []

    async def send() -> int:
        sent.append("a letter")
        if effects == "external":
            raise KeyboardInterrupt
        return 1

    async def body(task: Any, ctx: Any) -> Out:
        return Out({"sent": await ctx.step("send", send, effects=effects)})

    effects, tape = "external", Tape()
    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    with pytest.raises(KeyboardInterrupt):
        run(flow, run_id="r", journal=tape)
    effects = "none"
    [question] = run(flow, run_id="r", journal=tape, resuming=True).questions
    assert (question.kind, sent) == ("uncertain", ["a letter"])


# ------------------------------------------------------------------------------------------------ s


def test_a_recorded_step_is_used_only_for_the_same_request():
    calls: list[str] = []
    prompt, broken = "first", True

    async def body(task: Any, ctx: Any) -> Out:
        async def ask(what: str) -> str:
            calls.append(what)
            return what.upper()

        one = await ctx.step("model", lambda: ask(prompt), request={"prompt": prompt})
        two = await ctx.step("model", lambda: ask("same"), request={"prompt": "same"})
        if broken:
            raise RuntimeError("power cut")
        return Out({"said": [one, two]})

    tape = Tape()
    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    assert run(flow, run_id="r", journal=tape).status == "failed"
    broken = False
    assert run(flow, run_id="r", journal=Tape(tape.lines), resuming=True).output == {
        "said": ["FIRST", "SAME"]
    }
    assert calls == ["first", "same"]
    prompt = "second"
    assert run(flow, run_id="r", journal=Tape(tape.lines), resuming=True).output == {
        "said": ["SECOND", "SAME"]
    }
    # what came after it in the record followed from another answer
    assert calls == ["first", "same", "second", "same"]


@pytest.mark.parametrize("is_old", [False, True])
def test_a_recorded_reply_is_used_where_the_model_is_offered_other_tools(is_old):
    asked: list[Any] = []
    request: dict[str, Any] = {"messages": ["pay"], "tools": ["pay"]}

    async def body(task: Any, ctx: Any) -> Out:
        async def ask() -> str:
            asked.append((request["messages"], request["tools"]))
            return "paid"

        said = await ctx.step("model:0", ask, request=lambda: dict(request), kind="model")
        if is_broken:
            raise RuntimeError("power cut")
        return Out({"said": said})

    tape, is_broken = Tape(), True
    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    assert run(flow, run_id="r", journal=tape).status == "failed"
    is_broken = False
    if is_old:  # earlier versions recorded a digest of the tools as well
        text = json.dumps(request, sort_keys=True)
        old = hashlib.sha256(text.encode()).hexdigest()[:16]
        tape.lines = [
            replace(line, data={**line.data, "request": old}) if line.kind == "step" else line
            for line in tape.lines
        ]
    else:
        request["tools"] = ["pay", "look"]
    again = run(flow, run_id="r", journal=Tape(tape.lines), resuming=True)
    assert (again.output, len(asked)) == ({"said": "paid"}, 1)
    request["messages"] = ["do not pay"]
    run(flow, run_id="r", journal=Tape(tape.lines), resuming=True)
    assert len(asked) == 2


# ------------------------------------------------------------------------------------------------ t


def talk() -> RootGraph:
    """Return a graph that counts its turns in an attribute, and keeps what it heard."""
    graph = RootGraph("talk", attributes={"turns": 0})

    def hear(inputs: Any, attributes: Any, ctx: Any) -> dict[str, Any]:
        ctx.kept.setdefault("heard", []).append(inputs["message"])
        ctx.local["times"] = ctx.local.get("times", 0) + 1
        attributes["turns"] += 1
        return {
            "heard": list(ctx.kept["heard"]),
            "times": ctx.local["times"],
            "turns": attributes["turns"],
        }

    ear = graph.create_node(hear, name="ear", pull_keys={"turns": ""}, push_keys={"turns": ""})
    graph.edge_from_entry(ear, keys={"message": ""})
    graph.edge_to_exit(ear, keys={"heard": "", "times": "", "turns": ""})
    graph.build()
    return graph


def test_a_thread_continues_with_the_state_and_what_nodes_keep_and_not_with_what_is_local():
    graph, journal = talk(), MemoryJournal()
    said = [
        run_sync(graph.run({"message": word}, journal=journal, thread="ada")).output
        for word in ("hi", "how are you?")
    ]
    assert said == [
        {"heard": ["hi"], "times": 1, "turns": 1},
        {"heard": ["hi", "how are you?"], "times": 1, "turns": 2},
    ]
    assert (
        run_sync(graph.run({"message": "hi"}, journal=journal, thread="bob")).output["turns"] == 1
    )
    assert run_sync(graph.run({"message": "hi"}, journal=journal)).output["turns"] == 1


def test_given_attributes_go_over_those_of_the_thread():
    graph, journal = talk(), MemoryJournal()
    run_sync(graph.run({"message": "hi"}, journal=journal, thread="ada"))
    assert (
        run_sync(graph.run({"message": "hi"}, {"turns": 40}, journal=journal, thread="ada")).output[
            "turns"
        ]
        == 41
    )


def test_a_run_of_a_thread_that_is_resumed_begins_with_what_it_began_with():
    graph, journal = talk(), MemoryJournal()
    run_sync(graph.run({"message": "hi"}, journal=journal, thread="ada"))
    run_sync(graph.run({"message": "you"}, journal=journal, thread="ada", run_id="two"))
    again = run_sync(graph.resume("two", journal=journal))
    assert again.output["heard"] == ["hi", "you"]
    assert journal.thread("ada")[1:] == ("two",)


def test_a_failed_run_leaves_the_thread_where_it_was():
    broken = True

    def body(attributes: Any) -> dict[str, Any]:
        attributes["n"] += 1
        if broken:
            raise RuntimeError("no")
        return {"n": attributes["n"]}

    graph = RootGraph("g", attributes={"n": 0})
    a = graph.create_node(body, name="a", pull_keys={"n": ""}, push_keys={"n": ""})
    graph.edge_from_entry(a, keys={})
    graph.edge_to_exit(a, keys={"n": ""})
    graph.build()
    journal = MemoryJournal()
    with pytest.raises(NodeFailed):
        run_sync(graph.run({}, journal=journal, thread="t"))
    broken = False
    assert run_sync(graph.run({}, journal=journal, thread="t")).output == {"n": 1}


def test_two_runs_on_one_thread_never_interleave():
    journal = MemoryJournal()

    async def body(task: Any, ctx: Any) -> Out:
        with pytest.raises(JournalError, match="AX509"):
            flow.start({}, journal=journal, thread="t")
        return Out({})

    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    assert run(flow, journal=journal, thread="t").status == "done"
    # both have seen the same last run
    one, two = (flow.start({}, journal=journal, thread="t") for _ in range(2))
    assert run_sync(one.result()).status == "done"
    with pytest.raises(JournalError, match="AX508"):
        run_sync(two.result())


def test_a_run_of_a_thread_that_was_begun_elsewhere_meanwhile_is_refused_as_at_work():
    """Its record was not there yet, and the thread has the run already."""
    journal = MemoryJournal()
    flow = workflow([node("a", lambda task, ctx: Out({}))], ["in a", "a out"])

    class Late(MemoryJournal):
        def thread(self, name: str) -> Any:
            run(flow, journal=journal, run_id="r", thread=name)
            return journal.thread(name)

    with pytest.raises(JournalError, match="AX506"):
        flow.start({}, journal=Late(), run_id="r", thread="t")


def test_a_run_that_its_session_left_behind_is_not_continued():
    journal, broken = MemoryJournal(), True

    def body(task: Any, ctx: Any) -> Out:
        if broken:
            raise ValueError("broken")
        return Out({})

    flow = workflow([node("a", body)], ["in a", "a out"])
    run(flow, journal=journal, thread="t", run_id="first")
    broken = False
    later = flow.start({}, journal=journal, thread="t")  # it has seen how the first one ended
    again = flow.start({}, journal=journal, run_id="first", resuming=True)
    assert run_sync(later.result()).status == "done"
    with pytest.raises(JournalError, match="AX529"):
        run_sync(again.result())
    with pytest.raises(JournalError, match=r'AX529.*the run "first" is not the last'):
        run(flow, journal=journal, run_id="first", resuming=True)
    assert run(flow, journal=journal, run_id=later.id, resuming=True).status == "done"


def test_a_thread_waits_for_its_paused_run_and_needs_a_journal():
    async def body(task: Any, ctx: Any) -> Out:
        return Out({"said": await ctx.ask("?")})

    flow, journal = workflow([node("a", body, mode="async")], ["in a", "a out"]), MemoryJournal()
    paused = run(flow, journal=journal, thread="t", run_id="p")
    assert paused.status == "paused"
    with pytest.raises(JournalError, match=r"AX509.*paused"):
        flow.start({}, journal=journal, thread="t")
    with pytest.raises(JournalError, match="AX507"):
        flow.start({}, thread="t")
    run(flow, run_id="p", journal=journal, resuming=True, answers={paused.questions[0].id: "yes"})
    assert flow.start({}, journal=journal, thread="t").id


# ------------------------------------------------------------------------------------------------ l


def growing(rounds: int) -> Any:
    loop = Loop("loop", max_iterations=rounds)

    def work(attributes: Any) -> dict[str, Any]:
        attributes["n"] = attributes["n"] + 1
        return {"said": "x" * 200}

    worker = loop.create_node(work, name="w", pull_keys={"n": ""}, push_keys={"n": ""})
    loop.edge_from_controller(worker, keys={})
    loop.edge_to_controller(worker, keys={"said": ""})
    graph = RootGraph("g", attributes={"n": 0})
    graph.create_node(loop)
    graph.edge_from_entry(loop, keys={})
    graph.edge_to_exit(loop, keys={"said": ""})
    graph.build()
    return graph


def kept_after(rounds: int) -> tuple[MemoryJournal, int]:
    journal, most, count = MemoryJournal(), 0, 0

    class Watch:
        def firing_finished(self, activation: Any, kind: str, output: Any) -> None:
            nonlocal most, count
            count += 1
            if count % 17 == 0:
                most = max(most, len(journal.entries("r")))

    run_sync(growing(rounds).run({}, journal=journal, run_id="r", observers=[Watch()]))
    return journal, most


def test_what_is_kept_of_a_loop_does_not_grow_with_its_rounds():
    small, large = kept_after(300)[1], kept_after(3000)[1]
    assert small > 10
    assert large <= small + 3


def test_a_loop_continues_from_rounds_that_were_recorded_again_as_one():
    whole = Tape()
    graph = growing(300)
    result = run_sync(graph.run({}, journal=whole, run_id="r"))
    totals = [i for i, entry in enumerate(whole.lines) if "total" in entry.data]
    assert len(totals) > 1
    cut = written(whole.lines[: totals[1] + 3])
    ran = 0

    class Watch:
        def firing_started(self, activation: Any, kind: str) -> None:
            nonlocal ran
            ran += activation.node == "w"

    again = run_sync(graph.resume("r", journal=cut, observers=[Watch()]))
    assert (again.output, again.attributes) == (result.output, result.attributes)
    # the round after the total had done its work
    assert ran == 300 - whole.lines[totals[1]].data["round"] - 1 - 1
    assert len(cut.entries("r")) < len(whole.lines) / 20


def logging(rounds: int) -> Any:
    schema = Schema(
        "log",
        {"n": Field("n", default=int), "log": Field("log", APPEND, default=list)},
        closed=True,
    )
    graph = RootGraph("g", state=schema, cycles="allow")
    graph.create_node(
        lambda state: {"n": state["n"] + 1, "log": ["m" * 1000]}, name="w", inline=True
    )
    graph.edge_from_entry("w")
    graph.create_edge("w", "w", when=lambda state: state["n"] < rounds)
    graph.edge_to_exit("w", when=lambda state: state["n"] >= rounds)
    return graph.build()


def test_rounds_whose_total_would_be_no_shorter_are_not_recorded_again():
    tape = Tape()
    run_sync(logging(90).run(journal=tape, run_id="r"))
    rounds = [i for i, entry in enumerate(tape.lines) if entry.kind == "round"]
    assert len(rounds) == 90
    assert not any("total" in entry.data for entry in tape.lines)
    again = run_sync(logging(90).resume("r", journal=written(tape.lines[: rounds[40] + 1])))
    assert len(again.attributes["log"]) == 90


def test_data_that_left_a_cycle_early_is_in_the_total():
    counts = iter(range(10_000))

    def turn(task: Any, ctx: Any) -> Out:
        return Out({"n": next(counts), "pad": "x" * 300})

    def data(payload: Any, state: Any) -> bool:
        return payload["n"] == 1

    def build() -> Any:
        edges = [
            "in a",
            "a b",
            edge("b", "a", condition=lambda p, s: p["n"] < 399),
            edge("b", "z", trigger=False, condition=data),
            edge("b", "z", condition=lambda p, s: p["n"] >= 399),
            "z out",
        ]
        seen = node("z", lambda task, ctx: Out({"tokens": [t.payload["n"] for t in task.tokens]}))
        return workflow(
            ["a", node("b", turn), seen], edges, cycle_limits={"": CycleLimit(rounds=None)}
        )

    tape = Tape()
    assert run(build(), run_id="r", journal=tape).output == {"tokens": [1, 399]}
    last = max(i for i, entry in enumerate(tape.lines) if "total" in entry.data)
    counts = iter(range(tape.lines[last].data["round"] + 1, 10_000))
    assert run(build(), run_id="r", journal=written(tape.lines[: last + 1])).output == {
        "tokens": [1, 399]
    }


def test_superseding_tells_what_is_said_again_and_forgets_it():
    known = Compactor[str]()
    entries = [
        ("step", Entry("step", ("c", 0), "a", (), {"name": "s"})),
        ("a0", Entry("done", ("c", 0), "a")),
        ("r0", Entry("round", (), "c", (), {"round": 0})),
        ("a1", Entry("done", ("c", 1), "a")),
        ("r1", Entry("round", (), "c", (), {"round": 1, "total": {}})),
        ("c", Entry("done", (), "c")),
    ]
    assert [(name, known.add(entry, name)) for name, entry in entries] == [
        ("step", []),
        ("a0", ["step"]),
        ("r0", ["a0"]),
        ("a1", []),
        ("r1", ["r0", "a1"]),
        ("c", ["r1"]),
    ]


def test_entries_are_json():
    graph, journal = talk(), MemoryJournal()
    run_sync(
        graph.run({"message": "hi"}, journal=journal, thread="t", run_id="r", clock=VirtualClock())
    )
    assert [
        json.loads(json.dumps(dict(entry.data))) == entry.data for entry in journal.entries("r")
    ] == [True] * 3


def test_a_run_that_goes_on_leaves_what_was_recorded_before_as_it_was():
    async def asks(task: Any, ctx: Any) -> Out:
        return Out({"n": task.tokens[0].payload["n"] + int(await ctx.ask("by how much?"))})

    def counts(task: Any, ctx: Any) -> Out:
        return Out({"n": task.tokens[0].payload["n"] + 1})

    edges = [
        "in s",
        "s a",
        edge("a", "a", condition=lambda payload: payload["n"] % 3 > 0),
        edge("a", "b", condition=lambda payload: payload["n"] % 3 == 0),
        edge("b", "s", condition=lambda payload: payload["n"] < 9),
        edge("b", "out", condition=lambda payload: payload["n"] >= 9),
    ]
    nodes = [node("s", counts), node("a", counts), node("b", asks, mode="async", ctx=True)]
    flow = workflow(nodes, edges)
    tape = Tape()
    result = run(flow, {"n": 0}, run_id="r", journal=tape)
    while result.status == "paused":
        entries, before = list(tape.lines), copy.deepcopy(tape.lines)
        answers = {result.questions[0].id: "0"}
        result = run(flow, run_id="r", journal=tape, resuming=True, answers=answers)
        assert entries == before
    assert result.output == {"n": 9}

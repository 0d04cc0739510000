"""Laws of steps, moments, forks, breakpoints and differences."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from axil import Out, RootGraph, Workflow, run_sync
from axil.plugin import JournalError, hook_manager
from axil_control import Map
from axil_journals import Breakpoints, MemoryJournal, differences, fork, snapshot, steps
from axil_testing.specs import Tape, edge, never, node, workflow


def run(flow: Workflow, given: Any = None, **options: Any) -> Any:
    return run_sync(flow.start({} if given is None else given, **options).result())


def line(ran: list[str] | None = None, add: int = 1) -> Workflow:
    """in → a → b → c → out; each adds to ``n`` and writes what it saw."""

    def body(name: str) -> Any:
        def call(task: Any, ctx: Any) -> Out:
            if ran is not None:
                ran.append(name)
            n = task.tokens[0].payload["n"] + add
            return Out({"n": n}, {name: n})

        return call

    return workflow([node(name, body(name)) for name in "abc"], ["in a", "a b", "b c", "c out"])


def test_steps_state_the_result_of_each_activation():
    tape = Tape()
    run(line(), {"n": 0}, journal=tape, run_id="r")
    found = [(s.number, s.kind, s.activation, s.output, s.delta) for s in steps(tape.lines)]
    assert found == [
        (1, "run", "", {"n": 0}, {}),
        (2, "done", "a", {"a->b": {"n": 1}}, {"a": 1}),
        (3, "done", "b", {"b->c": {"n": 2}}, {"b": 2}),
        (4, "done", "c", {"c->@exit": {"n": 3}}, {"c": 3}),
        (5, "ended", "", {"status": "done", "output": {"n": 3}}, {}),
    ]


def test_a_step_states_each_write_of_a_frame_that_made_several_to_one_field():
    class Notes(TypedDict):
        items: list[str]
        item: str
        seen: Annotated[list[str], operator.add]
        last: str

    graph = RootGraph("notes", state=Notes)
    read = graph.create_node(
        lambda state: {"seen": [state["item"]], "last": state["item"]},
        name="read",
        wrappers=[Map(over="items", item="item")],
    )
    graph.edge_from_entry(read)
    graph.edge_to_exit(read)
    journal = MemoryJournal()
    graph.build().invoke({"items": ["a", "b"]}, journal=journal, run_id="r")
    *_, done = (step for step in steps(journal.entries("r")) if step.kind == "done")
    assert done.delta == {"seen": {"writes": [["a"], ["b"]]}, "last": "b"}


def test_a_moment_is_found_without_running_anything():
    tape, ran = Tape(), list[str]()
    flow = line(ran)
    run(flow, {"n": 0}, journal=tape, run_id="r")
    ran.clear()
    stood = run_sync(snapshot(flow, tape.lines, at=3))
    assert stood.state == {"a": 1, "b": 2}
    (due,) = stood.due
    assert (due.activation, due.inputs, due.state) == ("c", {"n": 2}, {"a": 1, "b": 2})
    assert stood.result.status == "paused"
    begun = run_sync(snapshot(flow, tape.lines, at=1))
    assert ([due.activation for due in begun.due], begun.state) == (["a"], {})
    over = run_sync(snapshot(flow, tape.lines))
    assert (over.due, over.result.status, over.result.output) == ((), "done", {"n": 3})
    assert ran == []


def test_a_moment_inside_a_round_is_seen_where_its_entries_are_kept():
    def count(task: Any, ctx: Any) -> Out:
        return Out({"n": task.state.get("n", 0) + 1}, {"n": task.state.get("n", 0) + 1})

    back = edge("b", "a", condition=lambda p, s: s["n"] < 6)
    out = edge("b", "out", condition=lambda p, s: s["n"] >= 6)
    flow = workflow([node("a", count), node("b", count)], ["in a", "a b", back, out])
    tape = Tape()
    assert run(flow, journal=tape, run_id="r").attributes == {"n": 6}
    stood = [run_sync(snapshot(flow, tape.lines, at=at)) for at in range(1, len(tape.lines) - 1)]
    due = [each.due[0].activation.removeprefix("cycle(a,b)/") for each in stood if each.due]
    assert due[:4] == ["0/a", "0/b", "1/a", "1/a"]
    assert stood[1].due[0].state == {"n": 1}


def test_nothing_is_known_of_no_run():
    with pytest.raises(JournalError, match="AX503"):
        run_sync(snapshot(line(), []))
    with pytest.raises(JournalError, match="AX503"):
        run_sync(fork(MemoryJournal(), "nobody", "new"))


def test_a_fork_goes_on_from_where_it_was_cut_and_leaves_the_first_run_alone():
    journal, ran = MemoryJournal(), list[str]()
    flow = line(ran)
    run(flow, {"n": 0}, journal=journal, run_id="r")
    before = list(journal.entries("r"))
    ran.clear()
    run_sync(fork(journal, "r", "f", at=2))
    result = run_sync(flow.resume("f", journal=journal))
    assert (result.output, ran) == ({"n": 3}, ["b", "c"])
    assert list(journal.entries("r")) == before
    assert {info.run_id: info.forked_from for info in journal.runs()} == {"r": "", "f": "r"}
    with pytest.raises(JournalError, match=r'AX506.*"f"'):
        run_sync(fork(journal, "r", "f"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_of_a_fork_that_breaks_off_nothing_is_left_and_it_can_be_made_again(error):
    class Breaks(MemoryJournal):
        left = 100

        def open(self, run_id: str) -> Any:
            writer = super().open(run_id)
            append = writer.append

            def breaks(entry: Any) -> None:
                self.left -= 1
                if not self.left:
                    raise error
                append(entry)

            writer.append = breaks  # type: ignore[method-assign]
            return writer

    journal = Breaks()
    run(line(), {"n": 0}, journal=journal, run_id="r")

    async def forks() -> None:
        journal.left = 3
        with pytest.raises(error):
            await fork(journal, "r", "f")
        assert [info.run_id for info in journal.runs()] == ["r"]
        await fork(journal, "r", "f")
        assert [entry.kind for entry in journal.entries("f")] == ["run", "done", "done", "done"]

    run_sync(forks())


def test_a_fork_that_is_refused_leaves_the_one_of_its_name_alone():
    journal = MemoryJournal()
    run(line(), {"n": 0}, journal=journal, run_id="r")
    run_sync(fork(journal, "r", "same"))
    opens = journal.open

    def somebody_was_quicker(run_id: str) -> Any:
        writer, quicker = opens(run_id), opens(run_id)
        for entry in journal.entries("same"):
            quicker.append(entry)
        quicker.close()
        return writer

    journal.open = somebody_was_quicker  # type: ignore[method-assign]
    with pytest.raises(JournalError, match="AX506"):
        run_sync(fork(journal, "r", "f"))
    assert journal.entries("f") == journal.entries("same")


def test_a_fork_may_continue_with_another_version_of_the_graph():
    journal = MemoryJournal()
    run(line(), {"n": 0}, journal=journal, run_id="r")
    other = Workflow(replace(line(add=10).spec, description="a newer one"))
    with pytest.raises(JournalError, match="AX504"):
        run_sync(other.resume("r", journal=journal))
    run_sync(fork(journal, "r", "f", at=2, workflow=other))
    assert run_sync(other.resume("f", journal=journal)).output == {"n": 21}


def test_the_keys_of_a_fork_are_its_own():
    keys: list[str] = []

    async def body(task: Any, ctx: Any) -> Out:
        keys.append(ctx.key())
        return Out({})

    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    journal = MemoryJournal()
    run(flow, journal=journal, run_id="r")
    run_sync(fork(journal, "r", "f", at=1))
    run_sync(flow.resume("f", journal=journal))
    assert len(set(keys)) == 2


def test_a_run_stops_before_nodes_and_continues_as_answered():
    journal, ran = MemoryJournal(), list[str]()
    flow = line(ran)
    hooks = hook_manager([Breakpoints(frozenset({"b"}))])
    stopping = Workflow(flow.spec, replace(flow.setting, hooks=hooks))
    stopped = run(stopping, {"n": 0}, journal=journal, run_id="r")
    [question] = stopped.questions
    assert (question.id, question.kind) == ("b?break", "break")
    assert (question.data["inputs"], ran) == ({"n": 1}, ["a"])
    answers = {question.id: {"output": {"n": 50}, "delta": {"b": "edited"}}}
    other = run(stopping, journal=journal, run_id="r", resuming=True, answers=answers)
    assert (other.output, other.attributes["b"], ran) == ({"n": 51}, "edited", ["a", "c"])


def test_every_node_can_be_stepped_through_and_threads_stay_threads():
    def slow(inputs: Any) -> dict[str, Any]:
        return {"n": inputs["n"] + 1}

    graph = RootGraph("g", hooks=hook_manager([Breakpoints(frozenset("*"))]))
    a, b = (graph.create_node(slow, name=name) for name in "ab")
    graph.edge_from_entry(a, keys={"n": ""})
    graph.create_edge(a, b, keys={"n": ""})
    graph.edge_to_exit(b, keys={"n": ""})
    graph.build()
    journal = MemoryJournal()
    result = run_sync(graph.run({"n": 0}, journal=journal, run_id="r"))
    seen = []
    while result.status == "paused":
        [question] = result.questions
        seen.append(question.id)
        result = run_sync(graph.resume("r", journal=journal, answers={question.id: "go"}))
    assert (seen, result.output) == (["a?break", "b?break"], {"n": 2})


def test_differences_are_found_whatever_came_first():
    one, other, third = Tape(), Tape(), Tape()
    run(line(), {"n": 0}, journal=one)
    run(line(), {"n": 0}, journal=other)
    other.lines.reverse()
    assert differences(one.lines, other.lines) == []
    edges = ["in a", edge("a", "b", condition=never), edge("a", "c"), "c out"]
    flow = line()
    shorter = workflow(list(flow.spec.nodes), edges).spec.edges
    run(Workflow(replace(flow.spec, edges=shorter)), {"n": 0}, journal=third)
    found = [(each.activation, each.kind) for each in differences(one.lines, third.lines)]
    assert found == [("a", "output"), ("b", "only first"), ("c", "output"), ("c", "delta")]

"""Notes in the state: shared by the agents of a run, apart from all other runs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from axil import ConfigError, RootGraph, run_sync
from axil_agent import Agent, Scripted
from axil_context import Blackboard
from axil_journals import MemoryJournal
from axil_models import ContextQuery, Reply


class Echo:
    """A model that answers with what it was shown."""

    async def reply(self, request: Any, emit: Any, /) -> Reply:
        return Reply(text=str(request.messages[-1]["content"]))


class Noted(BaseModel, extra="allow"):
    notes: Annotated[list[dict[str, Any]], "append"]


def team(model: Any, state: Any = None) -> RootGraph:
    graph = RootGraph("team", state=state) if state else RootGraph("team", attributes={"notes": []})
    for name in ("one", "two", "three"):
        board = Blackboard(share="notes")
        graph.create_node(
            Agent,
            name=name,
            model=model,
            formatters="twins",
            memories=[board],
            role_name=name,
            prompt_template="{q}",
        )
    graph.edge_from_entry("one", ["q"])
    graph.create_edge("one", "two", {"q": ""})
    graph.create_edge("one", "three", {"q": ""})
    for name in ("two", "three"):
        graph.edge_to_exit(name, ["q"])
    return graph.build()


def test_agents_side_by_side_leave_both_their_notes_in_a_field_that_appends():
    result = run_sync(team(Scripted(["first", "second", "third"]), Noted).run({"q": "?"}))
    assert [note["by"] for note in result.state.notes] == ["one", "two", "three"]


def test_who_comes_later_reads_what_was_written_before():
    script = Scripted(["the axil is green"])
    run_sync(team(script).run({"q": "?"}))
    first, *later = [str(request.messages[-1]["content"]) for request in script.requests]
    assert "the axil is green" not in first
    assert all("(blackboard) one: the axil is green" in each for each in later)


def test_runs_at_once_do_not_mix():
    graph = team(Echo(), Noted)

    async def go() -> list[Any]:
        return await asyncio.gather(*(graph.run({"q": f"word{n}"}) for n in range(20)))

    for n, result in enumerate(run_sync(go())):
        assert len(result.state.notes) == 3
        assert all(f"word{n}" in note["text"] for note in result.state.notes)
        assert not any(
            f"word{other} " in f"{note['text']} "
            for note in result.state.notes
            for other in range(20)
            if other != n
        )


def test_a_resumed_run_has_lost_no_note():
    journal = MemoryJournal()

    class Dies(Echo):
        alive = False

        async def reply(self, request: Any, emit: Any, /) -> Reply:
            if "one:" in str(request.messages[-1]["content"]) and not self.alive:
                raise ConnectionError("gone")
            return await super().reply(request, emit)

    model = Dies()
    graph = team(model, Noted)
    with pytest.raises(Exception, match="gone"):
        run_sync(graph.run({"q": "x"}, journal=journal, run_id="r"))
    model.alive = True
    result = run_sync(graph.resume("r", journal=journal))
    assert [note["by"] for note in result.state.notes] == ["one", "two", "three"]


def test_the_newest_notes_are_shown_oldest_first():
    board = Blackboard(max_items=3)
    notes = [{"id": str(n), "by": "a", "text": f"t{n}"} for n in range(5)]
    shown = board.get_blocks(ContextQuery("", attributes={"blackboard": [*notes, notes[4]]}), 2)
    assert [(block.text, block.chunk_id) for block in shown] == [("a: t3", "3"), ("a: t4", "4")]
    assert [note["id"] for note in board.keep(notes)] == ["2", "3", "4"]


@pytest.mark.parametrize("value", ["text", 3, [1], {"a": 1}])
def test_an_attribute_that_holds_something_else_is_named(value):
    with pytest.raises(
        ConfigError, match=r"AX916 blackboard\.blackboard: expected a list of notes"
    ):
        Blackboard().get_blocks(ContextQuery("", attributes={"blackboard": value}))


def test_notes_without_a_name_differ_by_what_they_say():
    notes = [{"by": "a", "text": "one"}, {"by": "b", "text": "two"}, {"by": "a", "text": "one"}]
    shown = Blackboard().get_blocks(ContextQuery("", attributes={"blackboard": notes}))
    assert [block.text for block in shown] == ["a: one", "b: two"]
    assert len({block.chunk_id for block in shown}) == 2

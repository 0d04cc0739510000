"""Tools that write state and say where to go on, and agents that are tools of others."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from axil import Context, NodeFailed, Result, RootGraph, RunPaused, SpecError, Workflow
from axil.plugin import compile_spec
from axil_agent import Agent, AgentTool, HistoryMemory, Scripted, SingleAgent
from axil_files import parse_json, spec_from_document
from axil_journals import MemoryJournal
from axil_models import Command
from axil_wrappers import Budget, Fallback

CALL = {"tool_calls": [{"name": "refer", "arguments": {"to": "billing"}}]}


def refer(to: str) -> Command:
    """Refer to a desk."""
    return Command(f"{to} it is.", write={"desk": to}, go_to=to)


def desk(*replies: Any, **settings: Any) -> RootGraph:
    """Return a front desk that refers to two others."""
    graph = RootGraph("desk", attributes=settings.pop("attributes", {"desk": ""}))
    model = Scripted(list(replies))
    graph.create_node(Agent, name="front", model=model, tools=[refer], **settings)
    graph.edge_from_entry("front")
    for name in ("billing", "repair"):
        graph.create_node(lambda name=name: {"message": name}, name=name)
        graph.create_edge("front", name)
        graph.edge_to_exit(name)
    return graph


def test_a_tool_writes_state_and_chooses_the_way():
    result = desk(CALL, '{"message": "Hello."}').build().invoke({"message": "My bill?"})
    assert (result.output, result.state["desk"]) == ({"message": "billing"}, "billing")


def test_the_last_of_two_commands_has_the_last_word_and_both_ways_are_taken():
    calls = [
        {"name": "refer", "arguments": {"to": "repair"}},
        {"name": "refer", "arguments": {"to": "billing"}},
    ]
    result = desk({"tool_calls": calls}, '{"message": "."}').build().invoke({"message": "?"})
    assert result.state["desk"] == "billing"
    assert result.output == {"message": ["billing", "repair"]}


@pytest.mark.parametrize(
    ("to", "attributes", "found"),
    [
        ("shop", {"desk": ""}, r'AX222 .*a tool of "front" goes to shop'),
        ("billing", {"desks": ""}, r'AX203 .*writes "desk", which the state does not have'),
    ],
)
def test_a_command_that_cannot_be_carried_out_fails_the_node(to, attributes, found):
    call = {"tool_calls": [{"name": "refer", "arguments": {"to": to}}]}
    with pytest.raises(NodeFailed, match=found):
        desk(call, '{"message": "."}', attributes=attributes).build().invoke({"message": "?"})


def test_a_command_is_undone_with_its_firing():
    graph = desk(CALL, {"status": 400}, wrappers=[Fallback(value={"message": "closed"})])
    result = graph.build().invoke({"message": "?"})
    assert result.state["desk"] == ""
    assert result.output == {"message": ["billing", "repair"]}


def test_a_command_is_read_from_the_journal_when_the_run_goes_on():
    called: list[str] = []

    def note(text: str) -> Command:
        """Note it."""
        called.append(text)
        return Command("Noted.", write={"notes": text})

    async def confirm(ctx: Any) -> str:
        """Ask a person."""
        return str(await ctx.ask("Sure?"))

    model = Scripted(
        [
            {"tool_calls": [{"name": "note", "arguments": {"text": "dear"}}]},
            {"tool_calls": [{"name": "confirm", "arguments": {}}]},
            '{"message": "done"}',
        ]
    )
    graph = RootGraph("graph", attributes={"notes": ""})
    graph.create_node(Agent, name="a", model=model, tools=[note, confirm])
    graph.edge_from_entry("a")
    graph.edge_to_exit("a")
    graph.build()

    async def run() -> Result:
        journal = MemoryJournal()
        paused = await graph.run({"message": "?"}, journal=journal)
        assert paused.state["notes"] == ""  # the firing has not ended
        answers = {paused.questions[0].id: "yes"}
        return await graph.resume(paused.run_id, journal=journal, answers=answers)

    result = asyncio.run(run())
    assert (result.state["notes"], called) == ("dear", ["dear"])


# ------------------------------------------------------------------------------- agents as tools


def asks(*messages: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "clerk", "arguments": {"message": m}} for m in messages]}


def boss(tool: Any, *replies: Any) -> tuple[RootGraph, Scripted]:
    graph, model = RootGraph("graph"), Scripted([*replies, '{"message": "done"}'])
    graph.create_node(Agent, name="boss", model=model, tools=[tool])
    graph.edge_from_entry("boss")
    graph.edge_to_exit("boss")
    return graph.build(), model


def test_an_agent_is_a_tool_whose_calls_begin_afresh_and_are_seen():
    clerk = Scripted(["Ten.", "Eleven."])
    agent = Agent(clerk, "You count.", name="clerk", memories=HistoryMemory())
    graph, model = boss(agent, asks("How many?", "And now?"))

    async def run() -> list[str]:
        events = graph.stream({"message": "?"})
        return ["/".join(e.activation.frame) async for e in events if e.kind == "firing_started"]

    assert asyncio.run(run()) == ["", "boss/clerk", "boss/clerk/#1"]
    offered = model.requests[0].tools[0]
    assert (offered.name, offered.description) == ("clerk", "You count.")
    assert [m["content"] for m in model.requests[1].messages if m["role"] == "tool"] == [
        "Ten.",
        "Eleven.",
    ]
    assert [m["content"] for m in clerk.requests[1].messages] == ["You count.", "And now?"]


def test_an_agent_that_is_a_tool_has_a_budget_of_its_own():
    clerk = Agent(Scripted(["Ten."]), "You count.", name="clerk")
    graph, _ = boss(AgentTool(clerk, wrappers=[Budget(tokens=5)]), asks("How many?"))
    result = asyncio.run(graph.run({"message": "?"}))
    assert result.status == "limited"
    assert "clerk" in str(result.error)


def scripted(*replies: Any) -> dict[str, Any]:
    return {"type": "scripted", "config": {"rules": [{"replies": list(replies)}]}}


def team(**clerk: Any) -> Any:
    """Return a graph of a file, in which an agent has another as a tool."""
    agent = {"type": "agent", "config": {"model": scripted("Ten."), **clerk}}
    tool = {"name": "clerk", "agent": agent}
    config = {
        "model": scripted(asks("How many?"), "There are ten."),
        "tools": [{"type": "agent", "config": tool}],
    }
    node = {"id": "boss", "type": "agent", "config": config}
    text = json.dumps({"graph": {"nodes": [node], "start": "boss"}}, indent=1)
    return spec_from_document(parse_json(text, "team.json"))


def test_an_agent_of_a_file_is_a_tool_of_another():
    async def run() -> list[str]:
        workflow = Workflow(team(instructions="You count."))
        events = workflow.stream("How many chairs?")
        return [
            f"{e.activation.path}: {e.kind}"
            async for e in events
            if e.kind in ("firing_started", "run_finished") and e.activation is not None
        ]

    assert asyncio.run(run()) == ["boss: firing_started", "boss/clerk/clerk: firing_started"]


def test_what_is_wrong_with_it_has_its_place_in_the_file():
    with pytest.raises(SpecError) as caught:
        compile_spec(team(instrutions="You count."))
    (problem,) = caught.value.problems
    assert problem.where.endswith("nodes[0].config.tools[0].config.agent.config.instrutions")
    assert problem.where.startswith("team.json:")
    assert "Did you mean" in problem.hint


def test_what_an_agent_that_is_a_tool_has_done_is_not_done_again():
    async def confirm(ctx: Any) -> str:
        """Ask a person."""
        return str(await ctx.ask("Sure?"))

    clerk = Scripted(["Ten.", {"tool_calls": [{"name": "confirm", "arguments": {}}]}, "Sure."])
    agent = Agent(clerk, name="clerk", tools=[confirm])
    graph, _ = boss(agent, asks("How many?"), asks("Sure?"))

    async def run() -> Result:
        journal = MemoryJournal()
        paused = await graph.run({"message": "?"}, journal=journal)
        assert paused.status == "paused"
        answers = {paused.questions[0].id: "yes"}
        return await graph.resume(paused.run_id, journal=journal, answers=answers)

    assert asyncio.run(run()).output == {"message": "done"}
    assert len(clerk.requests) == 3


def test_outside_a_graph_an_agent_is_a_tool_in_a_run_of_its_own():
    def whose(ctx: Context) -> str:
        """Return who asks."""
        return str(ctx.deps)

    model = Scripted([asks("How many?"), '{"message": "done"}'])
    clerk = Scripted([{"tool_calls": [{"name": "whose", "arguments": {}}]}, "Ten."])
    single = SingleAgent(model, tools=[Agent(clerk, name="clerk", tools=[whose])])
    chunks: list[Any] = []
    asyncio.run(single.run("?", deps="Ada", on_chunk=chunks.append))
    (result,) = [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]
    assert result == "Ten."
    assert clerk.requests[1].messages[-1]["content"] == "Ada"
    assert [chunk["name"] for chunk in chunks if chunk["kind"] == "tool_call"] == ["clerk", "whose"]


def test_outside_a_graph_a_question_of_an_agent_that_is_a_tool_has_no_channel():
    async def confirm(ctx: Context) -> str:
        """Ask a person."""
        return str(await ctx.ask("Sure?"))

    clerk = Scripted([{"tool_calls": [{"name": "confirm", "arguments": {}}]}])
    agent = Agent(clerk, name="clerk", tools=[confirm])
    with pytest.raises(RunPaused, match="outside a run"):
        SingleAgent(Scripted([asks("How many?")]), tools=[agent]).invoke("?")

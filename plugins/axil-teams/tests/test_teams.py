"""The laws of each team, with models that follow a script."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import axil
import axil_files
import axil_journals
import axil_teams
from axil import NodeFailed, RootGraph, SpecError
from axil_agent import Agent, Scripted
from axil_journals import PlanScope, walk_plan

KINDS = {
    name: kind for name in axil_teams.__all__ if hasattr(kind := getattr(axil_teams, name), "scope")
}


def team(kind: Any, **settings: Any) -> RootGraph:
    graph = RootGraph("graph")
    graph.create_node(kind, name="team", **settings)
    graph.edge_from_entry("team")
    graph.edge_to_exit("team")
    graph.build()
    return graph


def ask(graph: RootGraph, task: str = "Buy a boat?") -> str:
    return graph.invoke({"message": task}).output["message"]


def sent(model: Scripted) -> list[list[str]]:
    """Return what the model was sent, by request: texts of others, its own after a ``>``."""
    return [
        [
            ("> " if m["role"] == "assistant" else "") + str(m["content"])
            for m in request.messages
            if m["role"] in ("user", "assistant")
        ]
        for request in model.requests
    ]


def says(*replies: Any) -> dict[str, Any]:
    """Return an agent of a file."""
    model = {"type": "scripted", "config": {"rules": [{"replies": list(replies)}]}}
    return {"type": "agent", "config": {"model": model}}


def transfer(to: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": f"transfer_to_{to}", "arguments": {"reason": "it knows"}}]}


@pytest.mark.parametrize("name", KINDS)
def test_a_team_of_python_and_one_of_a_file_give_the_same(name):
    (example,) = KINDS[name].examples
    word = "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
    by_class, by_name = ask(team(KINDS[name], **example)), ask(team(word, **example))
    assert by_class == by_name
    assert by_class


def test_each_speaker_has_a_name_and_nothing_is_said_twice():
    ann, bob = Scripted(["Yes.", "FINAL ANSWER: no"]), Scripted(["No, it is dear."])
    graph = team("mesh", members={"ann": Agent(ann), "bob": Agent(bob)})
    assert ask(graph) == "FINAL ANSWER: no"
    assert sent(ann) == [["Buy a boat?"], ["Buy a boat?", "> Yes.", "bob: No, it is dear."]]
    assert sent(bob) == [["Buy a boat?", "ann: Yes."]]


def test_a_member_that_remembers_is_sent_what_is_new():
    from axil_agent import HistoryMemory

    ann = Scripted(["One.", "Two."])
    members = {"ann": Agent(ann, memories=HistoryMemory()), "bob": lambda: "So."}
    ask(team("mesh", members=members, hears="new", rounds=2))
    assert sent(ann) == [["Buy a boat?"], ["Buy a boat?", "> One.", "bob: So."]]


def test_the_last_turn_alone_is_heard_where_it_is_said_so():
    bob = Scripted(["No.", "Still no."])
    members = {"ann": lambda: "Yes.", "bob": Agent(bob)}
    ask(team("ping_pong", members=members, hears="last", turns=5))
    assert sent(bob) == [["ann: Yes."], ["ann: Yes."]]


def test_debaters_at_once_do_not_hear_their_round_and_the_judge_hears_all():
    pro, con, judge = Scripted(["Yes.", "Yes!"]), Scripted(["No.", "No!"]), Scripted(["Yes wins."])
    members = {"pro": Agent(pro), "con": Agent(con)}
    graph = team("debate", members=members, judge=Agent(judge), rounds=2, at_once=True)
    assert ask(graph) == "Yes wins."
    assert sent(con) == [["Buy a boat?"], ["Buy a boat?", "pro: Yes.", "> No."]]
    assert sent(judge) == [["Buy a boat?", "pro: Yes.", "con: No.", "pro: Yes!", "con: No!"]]


@pytest.mark.parametrize(
    ("verdicts", "answer", "by"),
    [(["Again.", "ACCEPT"], "second", "stop"), (["Again."], "third", "limit")],
)
def test_the_work_is_the_answer_and_says_what_ended_it(tmp_path, verdicts, answer, by):
    settings = {"generator": says("first", "second", "third"), "verifier": says(*verdicts)}
    nodes = [{"id": "team", "type": "generator_verifier", "config": settings}]
    graph = {"nodes": nodes, "edges": [], "start": ["team"]}
    file = tmp_path / "team.json"
    file.write_text(json.dumps({"version": 1, "graph": graph}), "utf-8")
    (said,) = axil_files.load(file).invoke("Go.").messages
    assert (said["content"], said["ended"]) == (answer, by)


def test_rounds_of_critics_end_where_all_of_them_agree():
    solver = Scripted(["Draft.", "Better."])
    critics = {"a": says("AGREED", "AGREED"), "b": says("No.", "AGREED")}
    graph = team("vertical_solver_first", critics=critics, solver=Agent(solver), stop="AGREED")
    assert ask(graph) == "Better."
    assert sent(solver)[1] == ["Buy a boat?", "> Draft.", "a: AGREED", "b: No."]


def test_a_brainstorming_solver_hears_each_once_by_name():
    b, solver = Scripted(["Two."]), Scripted(["Both."])
    ask(team("brainstorming", members={"a": says("One."), "b": Agent(b)}, solver=Agent(solver)))
    assert sent(b) == [["Buy a boat?", "a: One."]]
    assert sent(solver) == [["Buy a boat?", "a: One.", "b: Two."]]


def test_a_hub_hands_over_and_gets_the_turn_back():
    hub = Scripted([transfer("mason"), "Ask the mason.", "It costs ten."])
    graph = team("hub", hub=Agent(hub), spokes={"mason": says("Ten.")})
    assert ask(graph) == "It costs ten."
    assert sent(hub)[-1] == ["Buy a boat?", "> Ask the mason.", "mason: Ten."]


def test_a_swarm_of_a_file_continues_with_the_one_it_handed_over_to():
    members = {"front": says(transfer("billing"), "One moment."), "billing": says("Refunded.")}
    assert ask(team("swarm", members=members)) == "Refunded."


def test_a_function_hands_over_by_the_same_field_and_a_stranger_is_refused():
    def front(messages: list[Any], target: str = "billing") -> axil.Out:
        return axil.Out("One moment.", {"next": target})

    members = {"front": front, "billing": says("Refunded.")}
    assert ask(team("swarm", members=members)) == "Refunded."
    members["front"] = lambda messages: front(messages, "shop")
    with pytest.raises(NodeFailed, match='hands over to "shop", which is not a member'):
        ask(team("swarm", members=members))


def test_handoffs_that_do_not_end_stop_at_the_number_of_turns():
    members = {"a": says(transfer("b"), "b?"), "b": says(transfer("a"), "a?")}
    graph = team("swarm", members=members, turns=1)
    assert ask(graph) == "b?"


def test_a_member_of_a_supervisor_is_sent_its_work_alone():
    boss, ann = Scripted(["ann: Look it up.", "It is ten."]), Scripted(["Ten."])
    members = {"ann": Agent(ann), "bob": says("Nothing.")}
    assert ask(team("supervisor", supervisor=Agent(boss), members=members)) == "It is ten."
    assert sent(ann) == [["Look it up."]]
    assert sent(boss)[1][:2] == ["Buy a boat?", "ann: Ten."]


def test_a_supervisor_without_turns_left_writes_the_answer():
    boss = Scripted(["ann: Look it up.", "It is ten."])
    graph = team("supervisor", supervisor=Agent(boss), members={"ann": says("Ten.")}, turns=1)
    assert ask(graph) == "It is ten."
    assert sent(boss)[1][-1] == "There is no turn left: write the answer."


def test_the_words_of_a_selector_are_not_heard():
    ann = Scripted(["One.", "Two."])
    members = {"ann": Agent(ann), "bob": says("So.")}
    graph = team("group_chat", members=members, selector=says("bob", "I say ann."), turns=2)
    assert ask(graph) == "One."
    assert sent(ann) == [["Buy a boat?", "bob: So."]]


PLAN = """Here: [
 {"id": "sky", "do": "Look up.", "by": "ann"}, {"id": "sea", "do": "Look down.", "by": "bob"},
 {"id": "both", "do": "Compare.", "by": "ann", "after": ["sky", "sea"]}]"""


def test_steps_are_done_when_what_they_need_is_there():
    ann, bob = Scripted(["Blue.", "Alike."]), Scripted(["Blue, too."])
    members = {"ann": Agent(ann), "bob": Agent(bob)}
    graph = team("plan_and_execute", planner=says(PLAN), members=members, writer=says("Blue."))
    assert ask(graph, "What colour?") == "Blue."
    assert sent(bob) == [["Task: What colour?\nYour step: Look down."]]
    assert sent(ann)[1] == [
        "Task: What colour?\nResult of sky: Blue.\nResult of sea: Blue, too.\nYour step: Compare."
    ]


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        ('[{"id": 1, "by": "eve"}]', 'step 1 is for "eve"'),
        ('[{"id": 1, "after": [2]}]', "step 1 comes after"),
        ('[{"id": 1, "after": [2]}, {"id": 2, "after": [1]}]', "depend on each other"),
        ('[{"id": 1}, {"id": 1}]', "two steps have the same id"),
        ("1. a\n2. b\n3. c", "the plan has 3 steps, expected 1 to 2"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(plan, found):
    graph = team("plan_and_execute", planner=says(plan), members={"ann": says("a")}, steps=2)
    with pytest.raises(NodeFailed, match=f"AX671.*{found}"):
        ask(graph)


def test_each_document_is_mapped_and_one_answer_made_of_them():
    mapper, reducer = Scripted(["one", "two"]), Scripted(["both"])
    split = {"type": "regex", "config": {"pattern": "[^;]+"}}
    graph = team("map_reduce", mapper=Agent(mapper), reducer=Agent(reducer), split=split)
    assert ask(graph, "a;b") == "both"
    assert sorted(sent(mapper)) == [["a"], ["b"]]
    assert sorted(sent(reducer)[0]) == ["one", "two"]


def test_a_person_is_a_member_and_the_transcript_outlasts_the_pause():
    judge = Scripted(["No boat."])
    person = {"type": "human", "config": {"description": "Say why not."}}
    members = {"pro": says("It is fast."), "con": person}
    graph = team("debate", members=members, judge=Agent(judge), rounds=1)

    async def run() -> axil.Result:
        journal = axil_journals.MemoryJournal()
        paused = await graph.run({"message": "Buy a boat?"}, journal=journal)
        answers = {paused.questions[0].id: "It is dear."}
        return await graph.resume(paused.run_id, journal=journal, answers=answers)

    assert asyncio.run(run()).output == {"message": "No boat."}
    assert sent(judge) == [["Buy a boat?", "pro: It is fast.", "con: It is dear."]]


def test_a_team_is_a_member_of_another():
    inner = {
        "type": "swarm",
        "config": {"members": {"x": says(transfer("y"), "."), "y": says("In.")}},
    }
    graph = team("horizontal", members={"first": inner, "second": lambda messages: messages})
    assert ask(graph) == "In."


@pytest.mark.parametrize(
    ("kind", "settings", "found"),
    [
        ("mesh", {"members": {}}, "at least 1"),
        ("swarm", {"members": {"a": says("x")}, "first": "b"}, 'AX670 .*first is "b"'),
        ("swarm", {"members": {"a": says("x")}, "handoffs": {"a": ["b"]}}, "AX670"),
        ("adjacency_matrix", {"members": {"a": says("x")}, "matrix": [[1]]}, "AX672"),
        ("adjacency_matrix", {"members": {"a": says("x")}, "matrix": [[1, 0]]}, "AX672"),
        ("mesh", {"members": {"turns": says("x")}}, "AX101"),
        ("mesh", {"members": {"a": {"type": "agnet"}}}, "agent"),
    ],
)
def test_what_is_no_team_is_refused_when_it_is_built(kind, settings, found):
    with pytest.raises((SpecError, ValueError), match=found):
        team(kind, **settings)


@pytest.mark.parametrize(
    ("kind", "settings", "rounds"),
    [
        ("mesh", {"members": {"a": says("x"), "b": says("x")}, "rounds": 3}, 7),
        ("ping_pong", {"members": {"a": says("x"), "b": says("x")}, "turns": 5}, 6),
        ("supervisor", {"supervisor": says("x"), "members": {"a": says("x")}, "turns": 4}, 10),
        ("plan_and_execute", {"planner": says("x"), "members": {"a": says("x")}, "steps": 4}, 6),
    ],
)
def test_a_team_is_bounded_by_its_turns_and_one_round_to_end(kind, settings, rounds):
    scopes = [step.scope for step in walk_plan(team(kind, **settings).plan) if step.kind == "open"]
    (cycle,) = [scope for scope in scopes if scope.kind == "cycle"]
    assert isinstance(cycle, PlanScope)
    assert [limit.rounds for limit in cycle.limits.values()] == [rounds]


CONFINED = """
version: 1
graph:
  start: [outer]
  nodes:
    - id: outer
      type: horizontal
      config:
        members:
          inner:
            type: vertical
            config:
              members:
                a:
                  type: agent
                  config: {model: scripted, retrievers: [{type: keyword, config: {paths: [/etc]}}]}
                b: {type: agent, config: {model: scripted, WORDS: Speak.}}
"""


def test_members_of_teams_in_files_have_the_grants_of_the_file(tmp_path):
    file = tmp_path / "team.yaml"
    file.write_text(CONFINED.replace("WORDS", "instructions"), "utf-8")
    with pytest.raises(axil.SpecError) as caught:
        axil_files.load(file).plan  # noqa: B018
    [problem] = caught.value.problems
    assert problem.id == "AX137"
    assert problem.where == (
        f"{file}:16 nodes[0].config.members.inner.config.members.a"
        ".config.retrievers[0].config.paths[0]"
    )
    assert axil_files.load(file, allow=["read:/etc"]).plan is not None


def test_what_is_wrong_with_a_member_is_said_where_it_was_written(tmp_path):
    file = tmp_path / "team.yaml"
    file.write_text(CONFINED.replace("WORDS", "words").replace("/etc", "."), "utf-8")
    with pytest.raises(axil.SpecError) as caught:
        axil_files.load(file).plan  # noqa: B018
    place = "nodes[0].config.members.inner.config.members.b.config.words"
    assert [problem.where for problem in caught.value.problems] == [f"{file}:17 {place}"]

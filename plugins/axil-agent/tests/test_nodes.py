"""Laws of the other nodes: switches, judges, people, and agents in files."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from axil import ConfigError, NodeFailed, Options, RootGraph, Run, SpecError
from axil.plugin import CompileOptions, compile_spec
from axil_agent import AgentSwitch, HumanFileEdit, HumanNode, Scripted
from axil_agent.errors import ReplyError
from axil_agent.verdict import verdict
from axil_control import Loop
from axil_files import Document, LoadOptions, spec_from_document
from axil_journals import MemoryJournal
from axil_testing import VirtualClock

# ---------------------------------------------------------------------- switches and judges


def switch(model: Any, **settings: Any) -> RootGraph:
    g = RootGraph("g")
    s = g.create_node(AgentSwitch, name="s", model=model, **settings)
    g.edge_from_entry(s, ["q"])
    for name in ("a", "b"):
        g.create_edge(s, g.create_node(lambda inputs, name=name: {"o": name}, name=name), ["q"])
        g.edge_to_exit(name, ["o"])
    return g


def test_several_conditions_may_hold_and_none():
    routes = {"a": "is a", "b": "is b"}
    assert switch(Scripted(["Yes."]), routes=routes).build().invoke({"q": 1})[0] == {
        "o": ["a", "b"]
    }
    assert switch(Scripted(["no"]), routes=routes).build().invoke({"q": 1})[0] == {}


def test_all_conditions_can_be_judged_in_one_call():
    model = Scripted(["hm", '{"holds": [3]}', 'So: {"holds": [2]}'])
    assert switch(model, routes={"a": "is a", "b": "is b"}, in_one_call=True).build().invoke(
        {"q": 1}
    )[0] == {"o": "b"}
    assert len(model.requests) == 3
    assert "1. is a\n2. is b\n" in model.requests[0].messages[-1]["content"]


def test_a_switch_without_conditions_asks_no_model():
    assert switch(None).build().invoke({"q": 1})[0] == {"o": ["a", "b"]}


def test_an_answer_that_is_neither_is_asked_for_again_and_not_for_ever():
    model = Scripted(["eyes", "maybe", "YES"])
    assert switch(model, routes={"a": "x", "b": "y"}, in_one_call=False).build().invoke({"q": 1})[
        0
    ]["o"] in (["a", "b"], "a")
    with pytest.raises(Exception, match=r"AX659") as failed:
        switch(Scripted(["eyes"]), routes={"a": "x", "b": "y"}).build().invoke({"q": 1})
    assert isinstance(failed.value.__cause__, ReplyError)


@pytest.mark.parametrize("routes", [{"a": "x"}, {"a": "x", "b": "y", "c": "z"}])
def test_routes_fit_the_edges(routes):
    with pytest.raises(SpecError, match="AX665"):
        switch(Scripted(), routes=routes).build()


def test_words_are_read_and_not_letters():
    words = {"stop": True, "continue": False}
    assert verdict("I would not stop here", words) is None
    assert verdict("Don't stop.", words) is None
    assert verdict("STOP", words) is True
    assert verdict("nonstop", words) is None
    assert verdict("It should continue.", words) is False


def test_a_model_ends_a_loop():
    model = Scripted(["CONTINUE", "continue.", "<think>STOP?</think>STOP"])
    g = RootGraph("g")
    loop = g.create_node(
        Loop,
        name="loop",
        max_iterations=9,
        model=model,
        terminate_condition_prompt="n is {n}, {unknown}",
    )
    step = loop.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="step")
    loop.edge_from_controller(step, ["n"])
    loop.edge_to_controller(step, ["n"])
    g.edge_from_entry(loop, ["n"])
    g.edge_to_exit(loop, ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 2}
    assert (
        model.requests[2].messages[-1]["content"]
        == "CONDITION:\nn is 2, {unknown}\n\nANSWER:\n{'n': 2}"
    )


# ---------------------------------------------------------------------- people


class Person:
    """A channel with answers."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[Any]()

    async def ask(self, question: Any) -> Any:
        self.asked.append(question)
        answer = self.answers.pop(0)
        return answer() if callable(answer) else answer


def people(kind: Any, keys: dict[str, str], **settings: Any) -> RootGraph:
    g = RootGraph("g")
    h = g.create_node(kind, name="h", **settings)
    g.edge_from_entry(h, ["draft"])
    g.edge_to_exit(h, keys)
    return g.build()


def test_a_person_is_asked_for_each_field():
    person = Person("ok", "8")
    g = people(HumanNode, {"verdict": "good?", "score": ""}, prompt="See {draft}.")
    assert asyncio.run(g.run({"draft": "D"}, channel=person)).output == {
        "verdict": "ok",
        "score": "8",
    }
    assert [q.text for q in person.asked] == ["See D.\n\nverdict: good?", "See D.\n\nscore:"]


def test_a_form_is_one_question_and_has_to_be_answered_whole():
    g = people(HumanNode, {"verdict": "good?", "score": ""}, as_form=True)
    person = Person({"verdict": "ok", "score": 8})
    assert asyncio.run(g.run({"draft": "D"}, channel=person)).output == {
        "verdict": "ok",
        "score": 8,
    }
    assert person.asked[0].data == {"fields": {"verdict": "good?", "score": ""}}
    with pytest.raises(Exception, match=r"AX667.*score"):
        asyncio.run(g.run({"draft": "D"}, channel=Person({"verdict": "ok"})))


@pytest.mark.parametrize("as_form", [True, False])
def test_who_does_not_fill_in_in_time_gave_the_defaults(as_form):
    class Absent:
        async def ask(self, question: Any) -> Any:
            await asyncio.Event().wait()

    def asked(defaults: dict[str, Any]) -> Any:
        g = people(
            HumanNode, {"verdict": "", "score": ""}, as_form=as_form, within="1h", defaults=defaults
        )
        return asyncio.run(g.run({"draft": "D"}, channel=Absent(), clock=VirtualClock()))

    assert asked({"verdict": "ok", "score": 5}).output == {"verdict": "ok", "score": 5}
    with pytest.raises(NodeFailed, match="AX520"):
        asked({"verdict": "ok"})


def test_without_a_channel_the_run_pauses_and_goes_on():
    g = people(HumanNode, {"verdict": ""})

    async def run():
        journal = MemoryJournal()
        paused = await g.run({"draft": "D"}, journal=journal)
        return await g.resume(
            paused.run_id, journal=journal, answers={paused.questions[0].id: "fine"}
        )

    assert asyncio.run(run()).output == {"verdict": "fine"}


def test_a_person_edits_files_in_the_workspace_and_nowhere_else(tmp_path):
    g = people(HumanFileEdit, {"draft": "", "note": ""}, file_fields={"draft": "out/draft.md"})
    file = tmp_path / "out/draft.md"

    def edit() -> bool:
        file.write_text(file.read_text("utf-8") + " edited", "utf-8")
        return True

    result = asyncio.run(g.run({"draft": "D"}, channel=Person(edit, "n"), workspace=tmp_path))
    assert result.output == {"draft": "D edited", "note": "n"}
    with pytest.raises(Exception, match=r"AX667.*leads out"):
        asyncio.run(
            people(HumanFileEdit, {"draft": ""}, file_fields={"draft": "../x"}).run(
                {"draft": 1}, workspace=tmp_path
            )
        )


# ---------------------------------------------------------------------- files


def run(
    graph: dict[str, Any],
    registry: Any,
    text: str = "TASK",
    script: Scripted | None = None,
    **options: Any,
) -> Any:
    spec = spec_from_document(
        Document(data={"version": "1", "graph": {"id": "t", **graph}}, name="flow.yaml"),
        LoadOptions(),
    )

    async def go():
        plan = compile_spec(spec, CompileOptions(registry=registry))
        return await Run(
            plan, [{"role": "user", "content": text, "source": "TASK"}], Options(**options)
        ).result()

    if script is None:
        return asyncio.run(go())
    with script.everywhere():
        return asyncio.run(go())


def test_an_agent_of_a_file_speaks_in_messages(registry):
    nodes = [
        {
            "id": "A",
            "type": "agent",
            "config": {
                "provider": "openai",
                "name": "small",
                "role": "AGENT-A {x}",
                "params": {"temperature": 0.1},
            },
        },
        {"id": "B", "type": "agent", "config": {"model": "openai", "instructions": "AGENT-B"}},
        {"id": "C", "type": "agent", "config": {"role": "AGENT-C", "input_mode": "prompt"}},
    ]
    edges = [{"from": "A", "to": "B"}, {"from": "A", "to": "C"}, {"from": "B", "to": "C"}]
    script = Scripted(
        {
            "rules": [
                {"match": {"system_contains": "AGENT-A", "model": "small"}, "replies": ["from A"]},
                {"replies": [{"echo_user": True}]},
            ]
        }
    )
    result = run(
        {"nodes": nodes, "edges": edges, "start": ["A"], "end": ["C"]}, registry, script=script
    )
    assert (
        result.output
        == "(=== INPUT FROM A (user) ===\n\nfrom A\n\n=== INPUT FROM B (user) ===\n\n(from A))"
    )
    assert script.requests[0].messages == [
        {"role": "system", "content": "AGENT-A {x}"},
        {"role": "user", "content": "TASK"},
    ]
    assert script.requests[0].settings == {"temperature": 0.1}
    assert result.messages[-1]["role"] == "assistant"


def test_everything_that_an_agent_of_a_file_names_wrongly_is_reported_at_once_at_its_place(
    registry,
):
    config = {
        "model": {"type": "scripted", "config": {"rulse": []}},
        "tools": ["nothing"],
        "memories": [{"type": "history", "config": {"k": 3}}, "nobody"],
        "retrievers": [{"type": "nobody", "config": {"a": 1}}],
        "formatters": ["paragraph", "nothing"],
        "instructions": "About {topic} and {role_name}.",
    }
    graph = {"nodes": [{"id": "A", "type": "agent", "config": config}], "edges": [], "start": ["A"]}
    with pytest.raises(SpecError) as caught:
        run(graph, registry)
    assert sorted(f"{problem.id} {problem.where}" for problem in caught.value.problems) == [
        "AX130 flow.yaml nodes[0].config.memories[0].k",
        "AX130 flow.yaml nodes[0].config.model.config.rulse",
        "AX301 flow.yaml nodes[0].config.formatters[1]",
        "AX301 flow.yaml nodes[0].config.memories[1]",
        "AX301 flow.yaml nodes[0].config.retrievers[0]",
        "AX301 flow.yaml nodes[0].config.tools[0]",
    ]


def test_what_an_agent_of_a_file_says_is_checked_before_it_runs(registry):
    def wrong(**config: Any) -> list[str]:
        given = {"model": {"type": "scripted", **ECHO}, "tools": ["measure_text"], **config}
        graph = {
            "nodes": [{"id": "A", "type": "agent", "config": given}],
            "edges": [],
            "start": ["A"],
        }
        try:
            run(graph, registry)
        except SpecError as error:
            return [str(problem) for problem in error.problems]
        return []

    (unknown,) = wrong(approve=["measure_text", "mesure_text"])
    assert unknown.startswith(
        'AX885 flow.yaml nodes[0].config.approve[1]: "mesure_text" is to be approved'
    )
    assert 'Did you mean "measure_text"?' in unknown
    (missing,) = wrong(instructions="About {topic}.")
    assert missing.startswith(
        "AX650 flow.yaml nodes[0].config.instructions: the instructions ask for topic"
    )
    assert wrong(approve=["*"], instructions="{role_name}: write {{topic}}, x^{2}.") == []
    assert wrong(role="About {topic}.") == []


def test_an_agent_of_a_file_with_output_fields_works_on_fields(registry):
    model = {"type": "scripted", "rules": [{"replies": [{"json": {"title": "T", "body": "B"}}]}]}
    config = {
        "model": model,
        "prompt_template": "Write about {message}",
        "output": {"title": "a title", "body": ""},
    }
    nodes = [
        {"id": "A", "type": "agent", "config": config},
        {"id": "B", "type": "agent", "config": {"model": {"type": "scripted", **ECHO}}},
    ]
    edges = [{"from": "A", "to": "B", "keys": {"title": ""}}]
    result = run({"nodes": nodes, "edges": edges, "start": ["A"], "end": ["B"]}, registry)
    assert "T" in result.output
    assert "B" not in result.output


ECHO = {"rules": [{"replies": [{"echo_user": True}]}]}


def test_an_agent_made_by_its_name_remembers_over_the_rounds_of_a_loop():
    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=3)
    agent = loop.create_node(
        "agent", name="A", model={"type": "scripted", **ECHO}, memories=["history"]
    )
    loop.edge_from_controller(agent)
    loop.edge_to_controller(agent)
    g.edge_from_entry(loop)
    g.edge_to_exit(loop)
    assert g.build().invoke({"message": "x"})[0] == {"message": "(x+(x)+(x+(x)))"}


def test_a_switch_a_dynamic_agent_and_a_form_of_a_file(registry):
    nodes = [
        {
            "id": "S",
            "type": "agent_switch",
            "config": {"model": {"type": "scripted", "default": "yes"}, "routes": {"D": "always"}},
        },
        {
            "id": "D",
            "type": "dynamic_agent",
            "config": {"role": "Be kind.", "model": {"type": "scripted", "default": '{"o": "x"}'}},
        },
        {"id": "H", "type": "human_form", "config": {"fields": {"ok": "fine?"}}},
    ]
    edges = [{"from": "S", "to": "D"}, {"from": "D", "to": "H"}]
    result = run(
        {"nodes": nodes, "edges": edges, "start": ["S"], "end": ["H"]},
        registry,
        channel=Person({"ok": "yes"}),
    )
    assert '"ok": "yes"' in result.output


@pytest.mark.parametrize(
    ("config", "reported"),
    [
        ({"instrctions": "x"}, "instructions"),
        ({"model": "scriptd"}, "scripted"),
        ({"model_settings": {"temperature": 9}}, "AX655"),
    ],
)
def test_settings_of_a_file_are_strict(registry, config, reported):
    with pytest.raises((SpecError, ConfigError), match=reported):
        run(
            {
                "nodes": [{"id": "A", "type": "agent", "config": {"model": "scripted", **config}}],
                "start": ["A"],
            },
            registry,
        )


MARKS = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from axil_agent.measure import measure_text
for text in ("." * 500_000 + "x", ".'" * 250_000 + "x", "." + "'" * 500_000 + "x", ". " * 250_000):
    measure_text(text)
print("measured")
"""


def test_measuring_a_text_takes_time_that_grows_with_its_length():
    done = subprocess.run(
        [sys.executable, "-c", MARKS], capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("measured\n", "")

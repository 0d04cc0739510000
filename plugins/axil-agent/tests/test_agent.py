"""Laws of ``Agent``, ``DynamicAgent`` and ``SingleAgent``: observing, thinking, repairing,
remembering.
"""

from __future__ import annotations

import asyncio
import enum
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import BaseModel

from axil import ConfigError, NodeFailed, RootGraph, SpecError
from axil_agent import (
    Agent,
    AgentSwitch,
    DynamicAgent,
    HistoryMemory,
    HumanFileEdit,
    HumanNode,
    Reflection,
    Scripted,
    SingleAgent,
)
from axil_agent.errors import PromptError, ReplyError, WiringError
from axil_journals import MemoryJournal
from axil_models import ModelContract, Reply, ToolCall, Usage

law = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
"""A failure prints how to repeat it; no law is about seconds."""


def single(model: Any, **settings: Any) -> SingleAgent:
    return SingleAgent(model, **{"output_keys": ["o"], **settings})


def last(model: Scripted, call: int = -1) -> str:
    return str(model.requests[call].messages[-1]["content"])


# ---------------------------------------------------------------------- observe


def test_observing_needs_no_model_and_no_graph():
    agent = Agent(
        instructions=["Be brief.", "You are {role_name}."],
        prompt_template="About {topic}.",
        role_name="Ann",
    )
    system, user, messages = agent.observe({"topic": "axils"})
    assert system == "Be brief.\nYou are Ann."
    assert user == "Message:\nAbout axils.\nrole_name:\nAnn"
    assert messages == [{"role": "system", "content": system}, {"role": "user", "content": user}]


FIELDS = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.text(max_size=5) | st.integers() | st.lists(st.integers(), max_size=2),
    max_size=8,
)


@law
@given(FIELDS, FIELDS, st.randoms())
def test_the_same_inputs_give_the_same_bytes(inputs, attributes, random):
    agent = Agent(prompt_template="{{x}} {1}", name="n")

    def shuffled(fields):
        items = list(fields.items())
        random.shuffle(items)
        return dict(items)

    assert agent.observe(inputs, attributes) == agent.observe(
        shuffled(inputs), shuffled(attributes)
    )


def test_observing_is_the_same_in_every_process(tmp_path):
    code = (
        "from axil_agent import Agent; import axil_models as f\n"
        "a = Agent(formatters=[f.Paragraph(), f.Json()], name='n')\n"
        "print(a.observe({k: {1, 2, 3} for k in 'hgfedcba'}, {'z': 1}))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
        ).stdout
        for seed in ("0", "7")
    }
    assert len(runs) == 1
    assert b"a:" in runs.pop()


def test_inputs_win_over_attributes_and_the_model_gets_them(script):
    model = script('{"o": 1}', '{"o": 1}')
    g = RootGraph("g", attributes={"a": "attribute", "hidden": "never"})
    w = g.create_node(
        Agent,
        name="w",
        model=model,
        prompt_template="{a} {b}",
        pull_keys={"a": "the a", "c": "the c"},
        hide_unused_fields=True,
    )
    g.edge_from_entry(w, ["b"])
    g.edge_to_exit(w, ["o"])
    g.build().invoke({"b": "input"})
    assert last(model).startswith(
        "Message:\nattribute input\nAbout the fields:\na: the a\nResponse"
    )
    assert "hidden" not in last(model)


def test_unused_fields_are_in_order_of_their_names_and_may_be_hidden():
    _, user, _ = Agent(prompt_template="{b}", name="n").observe(
        {"c": 3, "b": 2, "a": {"y": 1, "x": 2}}
    )
    assert user == ('Message:\n2\na:\n{\n  "x": 2,\n  "y": 1\n}\nc:\n3\nrole_name:\nn')
    _, user, _ = Agent(prompt_template="{b}", hide_unused_fields=True).observe({"c": 3, "b": 2})
    assert user == "Message:\n2"


def test_instructions_are_sent_as_they_are():
    assert (
        Agent(instructions='Say "hi".', formatters="json").observe({}).messages[0]["content"]
        == 'Say "hi".'
    )


def test_titles_can_be_changed_and_parts_left_out():
    agent = Agent(
        prompt_template="Hi {x}",
        titles={"message": "", "format": None, "fields": None},
        hide_unused_fields=True,
    )
    assert agent.observe({"x": 1}).user == "Hi 1"
    agent = Agent(
        prompt_template="Hi",
        titles={"message": "TASK", "format": None, "fields": "FIELDS"},
        formatters=["paragraph", "json"],
        hide_unused_fields=True,
    )
    assert agent.observe({}).user == "TASK:\nHi\nFIELDS:\n{}"
    with pytest.raises(WiringError, match=r"AX664.*mesage"):
        Agent(titles={"mesage": ""})


def test_braces_that_are_no_places_stay():
    template = 'JSON {"a": {"b": 1}}, x^{2}, {{name}}, \\frac{a+b}{c d}, {n}'
    user = Agent(prompt_template=template, hide_unused_fields=True).observe({"n": "{n} {{n}}"}).user
    assert 'JSON {"a": {"b": 1}}, x^{2}, {name}, \\frac{a+b}{c d}, {n} {{n}}' in user


def test_values_that_are_no_text_are_indented_as_their_place():
    user = Agent(prompt_template="see: {n}", hide_unused_fields=True).observe({"n": [1]}).user
    assert user == "Message:\nsee: [\n       1\n     ]"


def test_a_template_may_have_parts():
    user = (
        Agent(prompt_template={"TASK": "do {x}", "HINT": "slowly"}, hide_unused_fields=True)
        .observe({"x": 1})
        .user
    )
    assert user == "Message:\nTASK: do 1\nHINT: slowly"


def test_an_unknown_place_is_an_error_that_names_node_edge_and_field(script):
    g = RootGraph("g")
    w = g.create_node(Agent, name="w", model=script(), prompt_template="{topik}")
    g.edge_from_entry(w, ["topic"])
    g.edge_to_exit(w, ["o"])
    with pytest.raises(
        NodeFailed, match=r'node "w".*topik.*@entry->w.*Did you mean "topic"'
    ) as failed:
        g.build().invoke({"topic": 1})
    assert isinstance(failed.value.__cause__, KeyError)


def test_an_edges_keys_and_pushed_attributes_are_asked_for_and_only_the_first_have_to_come(script):
    model = script('{"p": 1}', '{"o": 2}')
    g = RootGraph("g", attributes={"p": 0})
    w = g.create_node(Agent, name="w", model=model, push_keys={"p": "pushed"})
    g.edge_from_entry(w, ["q"])
    g.edge_to_exit(w, {"o": "the output"})
    assert g.build().invoke({"q": 1}) == ({"o": 2}, {"p": 0})
    assert '{\n  "o": "the output",\n  "p": "pushed"\n}' in last(model, 0)
    assert "the field o is missing" in last(model, 1)
    assert w.observe({"q": 1}).user == model.requests[0].messages[-1]["content"]


def test_of_two_descriptions_of_a_field_the_edges_is_asked_for(script):
    def search(query: str) -> str:
        """Search."""
        return query

    model = script('{"a": 1, "b": 2}')
    g = RootGraph("g", attributes={"a": 0, "b": 0})
    keys = {"a": "pushed", "b": "kept"}
    w = g.create_node(Agent, "w", model=model, tools=[search], push_keys=keys)
    g.edge_from_entry(w, ["q"])
    g.edge_to_exit(w, {"a": "carried"})
    assert w.tools == [search]
    assert g.build().invoke({"q": 1}) == ({"a": 1}, {"a": 1, "b": 2})
    assert '{\n  "a": "carried",\n  "b": "kept"\n}' in last(model)


def test_foreign_formatters_work():
    class Shout:
        agent_introducer = "SHOUT"
        keys: tuple[str, ...] = ()

        def set_field_keys(self, keys):
            self.keys = tuple(keys)

        def dump(self, fields):
            return repr(fields)

        def format(self, text):
            return dict.fromkeys(self.keys, text.upper())

    agent = single(
        Scripted(["hey"]), formatters=Shout(), prompt_template="x", hide_unused_fields=True
    )
    assert agent.invoke({}) == {"o": "HEY"}
    assert agent.observe({}).user.startswith("{'Message': 'x', 'Response format': 'SHOUT'")


@pytest.mark.parametrize("formatters", [[], ["json", "json", "json"], 3])
def test_formatters_are_one_or_two(formatters):
    with pytest.raises(WiringError, match="AX664"):
        _ = Agent(formatters=formatters).pair


# ---------------------------------------------------------------------- think


def test_a_model_with_an_invoke_works_unchanged():
    class Kind(enum.Enum):
        CONTENT = "content"

    class Old:
        def __init__(self) -> None:
            self.asked: list[Any] = []

        def invoke(self, messages, tools, settings=None, **more):
            self.asked.append((tools, settings))
            if len(messages) == 1:
                return {
                    "type": "tool_call",
                    "content": [{"id": "x", "name": "up", "arguments": '{"t": "a"}'}],
                }
            return {"type": Kind.CONTENT, "content": json.dumps({"o": messages[-1]["content"]})}

    def up(t: str) -> str:
        return t.upper()

    model = Old()
    assert single(model, tools=[up], model_settings={"temperature": 0.5}).invoke({}) == {"o": "A"}
    assert model.asked[0][0][0]["name"] == "up"
    assert model.asked[0][1] == {"temperature": 0.5}


@pytest.mark.parametrize("answer", [None, 3, {"type": "other"}, {}])
def test_what_is_no_reply_is_the_models_fault(answer):
    class Odd:
        async def invoke(self, messages, tools, settings=None):
            return answer

    with pytest.raises(ModelContract, match="AX654"):
        single(Odd()).invoke({})


def test_what_is_no_model_is_said_when_the_graph_is_built():
    for model, id in ((object(), "AX654"), (None, "AX666"), ("unheard_of", "AX301")):
        g = RootGraph("g")
        w = g.create_node(Agent, name="w", model=model)
        g.edge_from_entry(w)
        g.edge_to_exit(w)
        with pytest.raises(SpecError, match=id):
            g.build()


def test_settings_with_known_ranges_are_checked_and_others_pass():
    Agent(model_settings={"temperature": 2, "stop": "x", "anything": object(), "top_p": None})
    with pytest.raises(ConfigError) as found:
        Agent(
            model_settings={
                "temperature": 5,
                "top_p": -1,
                "max_tokens": 0,
                "stop": [1],
                "tool_choice": 1,
                "seed": "any",
            }
        )
    assert len(found.value.problems) == 5


def test_a_reply_that_cannot_be_read_is_shown_its_fault():
    model = Scripted(["bad", '{"p": 1}', '{"o": 3}'])
    assert single(model, formatters="json").invoke({}) == {"o": 3}
    assert "expected one JSON object" in last(model, 1)
    assert "o is missing" in last(model, 2)
    assert [m["role"] for m in model.requests[2].messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]


def test_a_reply_that_broke_off_is_not_taken_for_a_whole_one():
    model = Scripted([{"text": '{"o": [1, 2', "finish": "length"}, '{"o": [1, 2, 3]}'])
    assert single(model, formatters="json").invoke({}) == {"o": [1, 2, 3]}
    assert "broke off" in last(model)


def test_repairs_are_bounded():
    model = Scripted(["bad"])
    with pytest.raises(ReplyError, match="no reply of 1 "):
        single(model, formatters="json", max_repairs=0).invoke({})
    assert len(model.requests) == 1


class Plan(BaseModel):
    """A plan."""

    o: str
    steps: list[int] = []


def test_structured_output_is_asked_for_validated_and_repaired():
    model = Scripted(['{"o": "x", "steps": ["one"]}', '{"o": "x", "steps": ["1"]}'])
    assert single(model, output_type=Plan).invoke({}) == Plan(o="x", steps=[1])
    assert model.requests[0].output is not None
    assert model.requests[0].output.name == "Plan"
    assert "steps.0: Input should be a valid integer" in last(model, 1)
    assert '"steps"' in last(model, 0)


def test_an_output_type_has_the_fields_that_edges_carry():
    g = RootGraph("g")
    w = g.create_node(Agent, name="w", model=Scripted(), output_type=Plan)
    g.edge_from_entry(w)
    g.edge_to_exit(w, ["p"])
    with pytest.raises(SpecError, match=r"AX668.*p"):
        g.build()


def test_arguments_that_do_not_fit_are_refused_where_they_are_given():
    with pytest.raises(
        ConfigError, match="AX131 output_type: expected a type or a function, found"
    ):
        Agent(Scripted(), output_type={"steps": 1})
    with pytest.raises(
        ConfigError, match=r"AX131 instructions: expected text.*The model comes first"
    ):
        Agent("Be brief.", Scripted())
    with pytest.raises(ConfigError, match="AX655 model_settings: expected a mapping"):
        Agent(Scripted(), model_settings=["temperature"])
    with pytest.raises(ModelContract, match=r"AX654 .*Scripted is a class"):
        Agent(Scripted).build()


def test_chunks_and_usage_reach_the_run(script):
    g = RootGraph("g")
    w = g.create_node(
        Agent,
        name="w",
        model=script(
            {
                "text": '{"o": "some words here"}',
                "usage": {"input_tokens": 7, "output_tokens": 2, "cost": 0.5},
            }
        ),
    )
    g.edge_from_entry(w)
    g.edge_to_exit(w, ["o"])
    g.build()

    async def watch():
        return [event async for event in g.stream({"message": "x"})]

    events = asyncio.run(watch())
    text = "".join(e.data["text"] for e in events if e.kind == "chunk" and e.data["kind"] == "text")
    assert text == '{"o": "some words here"}'
    result = asyncio.run(g.run({"message": "x"}))
    assert result.usage.tokens == {"input_tokens": 7, "output_tokens": 2}
    assert result.usage.cost == 0.5


# ---------------------------------------------------------------------- single and dynamic


def test_a_single_agent_shares_nothing_unless_a_thread_is_named():
    model = Scripted(['{"o": 1}'])
    agent = single(model, memories=HistoryMemory())
    for thread in ("", "", "a", "a", "b"):
        agent.invoke({}, thread=thread)
    assert [len(r.messages) for r in model.requests] == [1, 1, 1, 3, 1]
    agent.forget("a")
    agent.invoke({}, thread="a")
    assert len(model.requests[-1].messages) == 1


def test_a_single_agent_cannot_be_inside_a_graph():
    with pytest.raises(SpecError, match="AX121"):
        RootGraph("g").create_node(SingleAgent, name="s")


def test_instructions_come_with_the_message_and_are_no_input():
    model = Scripted(['{"o": 1}'])
    g = RootGraph("g")
    w = g.create_node(
        DynamicAgent, name="w", model=model, instruction_key="how", default_instructions="Default."
    )
    g.edge_from_entry(w, ["how", "q"])
    g.edge_to_exit(w, ["o"])
    g.build()
    g.invoke({"how": "Be {q}.", "q": "kind"})
    g.invoke({"how": None, "q": "x"})
    g.invoke({"how": 7, "q": "x"})
    assert [r.messages[0]["content"] for r in model.requests] == ["Be kind.", "Default.", "7"]
    assert "how" not in last(model)


def test_missing_instructions_are_an_error_that_names_node_key_and_edge():
    g = RootGraph("g")
    w = g.create_node(DynamicAgent, name="w", model=Scripted())
    g.edge_from_entry(w, ["q"])
    g.edge_to_exit(w, ["o"])
    with pytest.raises(NodeFailed, match=r'node "w".*"instructions".*@entry->w') as failed:
        g.build().invoke({"q": 1})
    assert isinstance(failed.value.__cause__, KeyError)
    assert isinstance(failed.value.__cause__, PromptError)


class Draft(BaseModel):
    topic: str = ""
    text: str = ""


def test_an_agent_of_a_typed_graph_reads_and_writes_the_state(script):
    model = script('{"text": "T", "more": 1}')
    g = RootGraph("g", state=Draft)
    w = g.create_node(
        Agent,
        name="w",
        model=model,
        prompt_template="On {topic}.",
        pull_keys={"topic": ""},
        push_keys={"text": "the text"},
    )
    g.edge_from_entry(w)
    g.edge_to_exit(w)
    result = asyncio.run(g.build().run({"topic": "axils"}))
    assert (result.state.topic, result.state.text) == ("axils", "T")
    assert '"text": "the text"' in last(model)


def test_two_hundred_agents_wait_for_their_model_at_the_same_time():
    class Slow:
        at_work = 0
        all_there = asyncio.Event()

        async def reply(self, request, emit):
            self.at_work += 1
            if self.at_work == 200:
                self.all_there.set()
            await self.all_there.wait()
            return Reply(text='{"o": 1}')

    model = Slow()
    g = RootGraph("g")
    w = g.create_node(Agent, name="w", model=model)
    g.edge_from_entry(w)
    g.edge_to_exit(w, ["o"])
    g.build()

    async def many():
        results = await asyncio.wait_for(
            asyncio.gather(*(g.run({"message": n}) for n in range(200))), 60
        )
        return len(results), len(asyncio.all_tasks())

    assert asyncio.run(many()) == (200, 1)


def test_a_secret_is_in_no_event_journal_or_repr():
    from axil.plugin import default_registry

    class Keyed:
        def __init__(self, api_key: str) -> None:
            self.api_key = api_key

        async def reply(self, request, emit):
            emit({"kind": "text", "text": "x"})
            return Reply(text='{"o": 1}')

    default_registry().register("models", "keyed", Keyed)
    g = RootGraph("g")
    w = g.create_node(
        Agent, name="w", model={"type": "keyed", "api_key": "sk-123"}, memories=HistoryMemory()
    )
    g.edge_from_entry(w)
    g.edge_to_exit(w, ["o"])
    g.build()

    async def watch():
        journal = MemoryJournal()
        events = [event async for event in g.stream({"message": "x"}, journal=journal)]
        return repr(events) + repr(vars(journal)) + repr(w)

    assert "sk-123" not in asyncio.run(watch())


def test_a_reply_survives_being_plain_data():
    reply = Reply(
        text="a",
        tool_calls=(ToolCall(id="1", name="f", arguments={"a": [1]}),),
        usage=Usage(input_tokens=1, cost=0.1),
        extra={"x": 1},
    )
    assert Reply.read(json.loads(json.dumps(reply.plain()))) == reply
    assert reply.message()["extra"] == {"x": 1}


def test_nothing_of_an_sdk_is_imported():
    code = (
        "import axil_agent, sys; print([m for m in ('openai', 'httpx', 'anthropic', 'mcp', "
        "'yaml', 'axil_models.formatters') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_default_prompt_is_short():
    agent = Agent(prompt_template="About {topic}.", role_name="Ann")
    user = agent.observe({"topic": "axils"}).user
    assert user == "Message:\nAbout axils.\nrole_name:\nAnn"


class Curt(Agent):
    def __init__(self, mood: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.mood = mood


@pytest.mark.parametrize(
    ("kind", "given", "meant"),
    [
        (Agent, {"instrctions": "x"}, "instructions"),
        (SingleAgent, {"output_kys": ["x"]}, "output_keys"),
        (SingleAgent, {"instrctions": "x"}, "instructions"),
        (DynamicAgent, {"instrction_key": "x"}, "instruction_key"),
        (Curt, {"mood": "bad", "instrctions": "x"}, "instructions"),
        (AgentSwitch, {"rutes": {}}, "routes"),
        (HumanNode, {"promt": "x"}, "prompt"),
        (HumanFileEdit, {"file_fields": {"a": "b"}, "promt": "x"}, "prompt"),
        (HistoryMemory, {"memory_sze": 3}, "memory_size"),
        (Reflection, {"aftr": "x"}, "after"),
        (Scripted, {"scrpt": ["x"]}, "script"),
    ],
)
def test_an_unknown_setting_is_answered_with_the_one_that_is_meant(
    kind: type, given: dict[str, Any], meant: str
):
    with pytest.raises(ConfigError, match=f'Did you mean "{meant}"') as caught:
        kind(**given)
    assert caught.value.id == "AX130"
    assert f'{kind.__name__} takes no "{[*given][-1]}"' in str(caught.value)


def test_what_a_constructor_itself_does_wrong_is_no_unknown_setting():
    class Wrong(Agent):
        def __init__(self, mood: str) -> None:
            super().__init__(name=mood, **{"name": "x"})

    with pytest.raises(TypeError, match="multiple values"):
        Wrong(mood="bad")


@pytest.mark.parametrize(
    ("name", "says"),
    [("stream", "on_chunk"), ("ainvoke", "invoke runs it"), ("add_memroy", 'mean "add_memory"')],
)
def test_a_name_that_an_agent_lacks_is_answered_with_what_there_is(name: str, says: str):
    with pytest.raises(AttributeError, match=f'SingleAgent "s" has no "{name}".*{says}'):
        getattr(single(Scripted(["x"]), name="s"), name)


def test_turns_that_were_given_up_let_the_next_one_through_however_many_they_are():
    begun, may_end = asyncio.Event(), asyncio.Event()

    class Waiting:
        async def reply(self, request: Any, emit: Any, /) -> Reply:
            begun.set()
            await may_end.wait()
            return Reply(text="done")

    async def go() -> object:
        agent = SingleAgent(Waiting(), name="one")
        first = asyncio.create_task(agent.run("one", thread="t"))
        await begun.wait()
        others = [asyncio.create_task(agent.run("more", thread="t")) for _ in range(2000)]
        await asyncio.sleep(0)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        may_end.set()
        await first
        async with asyncio.timeout(60):
            return await agent.run("last", thread="t")

    assert asyncio.run(go()) == {"message": "done"}

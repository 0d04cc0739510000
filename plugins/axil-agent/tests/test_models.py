"""Laws of the models that need no key: scripts, recordings, and what stands in for what."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from axil import ConfigError, RootGraph, SpecError
from axil.plugin import keep_secret
from axil_agent import Agent, Recorder, Replay, Scripted, SingleAgent, models_through
from axil_agent.errors import ReplayMiss
from axil_agent.models import Chosen, read_answer
from axil_models import ModelError, Reply, Request, read_arguments

law = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
"""A failure prints how to repeat it; no law is about seconds."""


def ask(model: Any, *messages: tuple[str, str], **more: Any) -> Any:
    said = [{"role": role, "content": text} for role, text in messages]
    return asyncio.run(model.reply(Request(messages=said, **more), lambda chunk: None))


def test_the_first_rule_that_matches_answers_in_order_and_the_last_reply_repeats():
    model = Scripted(
        {
            "rules": [
                {
                    "match": {"system_contains": "editor", "user_contains": "now"},
                    "replies": ["a", "b"],
                },
                {"match": {"user_contains": "now"}, "replies": ["c"]},
            ],
            "default": "none",
        }
    )
    editor = ("system", "You are an editor.")
    assert [ask(model, editor, ("user", "now")).text for _ in range(3)] == ["a", "b", "b"]
    assert ask(model, ("user", "now")).text == "c"
    assert ask(model, editor, ("user", "later")).text == "none"
    assert ask(Scripted()).text == "OK"


def test_the_users_messages_can_be_echoed():
    model = Scripted([{"echo_user": True}])
    assert (
        ask(model, ("system", "s"), ("user", "one"), ("assistant", "x"), ("user", "two")).text
        == "(one+two)"
    )


def test_tool_calls_have_ids_that_never_repeat_in_a_conversation():
    model = Scripted([{"tool_calls": [{"name": "f"}, {"name": "g", "arguments": {"a": 1}}]}])
    first = ask(model)
    assert [(c.id, c.name, c.arguments) for c in first.tool_calls] == [
        ("c0", "f", {}),
        ("c1", "g", {"a": 1}),
    ]
    again = asyncio.run(model.reply(Request(messages=[first.message()]), lambda chunk: None))
    assert [c.id for c in again.tool_calls] == ["c2", "c3"]


def test_a_status_is_an_error_that_says_whether_asking_again_may_help():
    with pytest.raises(ModelError, match="Error code: 429") as busy:
        ask(Scripted([{"status": 429, "retry_after": 2}]))
    assert (busy.value.status, busy.value.retry_after_seconds, busy.value.transient) == (
        429,
        2,
        True,
    )
    with pytest.raises(ModelError) as wrong:
        ask(Scripted([{"status": 400}]))
    assert not wrong.value.transient


def test_a_delay_is_waited_for():
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    assert ask(Scripted([{"delay": 3, "text": "late"}], sleep=sleep)).text == "late"
    assert waited == [3]


@law
@given(st.text(max_size=200))
def test_what_is_streamed_is_what_is_said(text):
    parts: list[str] = []
    model = Scripted([{"text": text}])
    reply = asyncio.run(
        model.reply(Request(messages=[]), lambda chunk: parts.append(chunk["text"]))
    )
    assert "".join(parts) == reply.text == text


@pytest.mark.parametrize(
    ("script", "reported"),
    [
        ({"rules": [{"replies": []}]}, "at least one reply"),
        ({"rule": []}, 'Did you mean "rules"'),
        ([{"txt": "x"}], 'unknown key "txt"'),
        ({"rules": [{"match": {"x": 1}}]}, 'unknown key "x"'),
    ],
)
def test_a_script_is_read_strictly(script, reported):
    with pytest.raises(ConfigError, match=reported):
        Scripted(script)


def test_a_script_can_be_a_file(tmp_path):
    file = tmp_path / "script.json"
    file.write_text(
        json.dumps({"rules": [{"replies": [{"json": {"o": 1}}]}], "default": "x"}), "utf-8"
    )
    assert ask(Scripted.from_file(file)).text == '{"o": 1}'
    file.write_text('{"rules": [\n{"replies": [1]}]}', "utf-8")
    with pytest.raises((ConfigError, SpecError), match=r"script\.json:2"):
        Scripted.from_file(file)


def test_everything_that_is_wrong_with_a_script_is_said_once_by_line(tmp_path):
    file = tmp_path / "script.json"
    file.write_text(
        """{"rules": [
        {"match": {"sytem_contains": "x"}, "replies": []},
        {"replies": [
            5,
            {"txt": "a"},
            {"tool_calls": [{"name": "f", "arguments": 3}]},
            {"delay": -1, "text": "hi"}],
         "extra": 1}],
        "defalt": "hi"}""",
        "utf-8",
    )
    with pytest.raises(ConfigError) as reported:
        Scripted.from_file(file)
    found = [
        (problem.where.rpartition("script.json")[2].partition(" ")[0], problem.message)
        for problem in reported.value.problems
    ]
    assert found == [
        (":2", 'unknown key "sytem_contains".'),
        (":2", "expected at least one reply, found an empty list."),
        (":4", "expected text, found 5."),
        (":5", 'unknown key "txt".'),
        (":6", "expected a mapping or text, found 3."),
        (":7", "expected a number ≥ 0, found -1."),
        (":8", 'unknown key "extra".'),
        (":9", 'unknown key "defalt".'),
    ]


@pytest.mark.parametrize("content", [None, b"\xff\xfe", ""])
def test_a_script_that_cannot_be_read_is_said_so(tmp_path, content):
    if content is not None:
        (tmp_path / "s.json").write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
    with pytest.raises((ConfigError, SpecError), match=r"AX710 .*s\.json|AX140 .*s\.json"):
        Scripted.from_file(tmp_path / "s.json")


def test_a_script_may_write_arguments_as_badly_as_a_model():
    reply = ask(
        Scripted(
            [
                {
                    "tool_calls": [
                        {"name": "f", "arguments": '{"a": 1}'},
                        {"name": "f", "arguments": "{"},
                    ]
                }
            ]
        )
    )
    assert reply.tool_calls[0].arguments == {"a": 1}
    assert reply.tool_calls[1].fault.startswith("the arguments are not valid JSON")


def test_a_script_stands_in_for_every_model():
    g = RootGraph("g")
    w = g.create_node(
        Agent, name="w", model={"type": "openai", "name": "large"}, formatters="twins"
    )
    v = g.create_node(Agent, name="v", formatters="twins")
    g.edge_from_entry(w)
    g.create_edge(w, v)
    g.edge_to_exit(v)
    script = Scripted(
        {"rules": [{"match": {"model": "large"}, "replies": ["from large"]}], "default": "from v"}
    )
    with script.everywhere():
        assert g.build().invoke({"message": "x"})[0] == {"message": "from v"}
    assert len(script.requests) == 2
    assert "from large" in script.requests[1].messages[-1]["content"]


def agent(model: Any, **settings: Any) -> SingleAgent:
    return SingleAgent(model, output_keys=["o"], prompt_template="About {topic}", **settings)


def test_a_recording_is_replayed_and_a_miss_shows_the_difference(tmp_path):
    file = tmp_path / "run.jsonl"
    real = Scripted(['{"o": "one"}', '{"o": "two"}', '{"o": "three"}'])
    with models_through(lambda meant, written: Recorder(meant(), file)):
        recorded = [
            agent(real).invoke({"topic": topic})["o"] for topic in ("axils", "axils", "stems")
        ]
    replayed = agent(Replay(file))
    assert [replayed.invoke({"topic": topic})["o"] for topic in ("stems", "axils", "axils")] == [
        "three",
        "one",
        "two",
    ]
    assert recorded == ["one", "two", "three"]
    with pytest.raises(ReplayMiss, match=r"AX662") as miss:
        replayed.invoke({"topic": "stem"})
    assert "-MESSAGE" not in str(miss.value)
    assert "-About stems" in str(miss.value)
    assert "+About stem" in str(miss.value)


def test_no_secret_is_recorded(tmp_path):
    file = tmp_path / "run.jsonl"
    settings = {
        "api_key": "sk-123",
        "extra_headers": {"x": "sk-123"},
        "temperature": 1,
        "max_tokens": 5,
    }
    agent(Recorder(Scripted(['{"o": 1}']), file), model_settings=settings).invoke({"topic": 1})
    text = file.read_text("utf-8")
    assert "sk-123" not in text
    assert '"max_tokens": 5' in text


def test_secrets_of_the_environment_are_recorded_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("MINE_API_KEY", "sk-very-secret")
    monkeypatch.setenv("SHORT_TOKEN", "axil")
    file = tmp_path / "run.jsonl"
    model = Recorder(Scripted(['{"o": "you said sk-very-secret"}']), file)
    assert agent(model).invoke({"topic": "axil sk-very-secret"}) == {"o": "you said sk-very-secret"}
    text = file.read_text("utf-8")
    assert "sk-very-secret" not in text
    assert "axil ${MINE_API_KEY}" in text
    assert agent(Replay(file)).invoke({"topic": "axil sk-very-secret"}) == {
        "o": "you said ${MINE_API_KEY}"
    }
    with pytest.raises(ReplayMiss) as miss:
        agent(Replay(file)).invoke({"topic": "other sk-very-secret"})
    assert "sk-very-secret" not in str(miss.value)


def test_secrets_that_were_given_are_recorded_nowhere(tmp_path):
    keep_secret("canary-of-a-setting", "${FILL}")
    file = tmp_path / "run.jsonl"
    model = Recorder(Scripted(['{"o": "you said Bearer canary-of-a-setting"}']), file)
    agent(model).invoke({"topic": "a canary-of-a-setting b"})
    assert "canary" not in file.read_text("utf-8")
    assert "a ${FILL} b" in file.read_text("utf-8")


def test_a_new_recording_in_the_same_file_wins_and_loses_nothing(tmp_path):
    file = tmp_path / "run.jsonl"
    for replies, topics in ((["1", "2", "3"], "aab"), (["4"], "a")):
        real = Scripted([f'{{"o": "{reply}"}}' for reply in replies])
        with Recorder.everywhere(file):
            for topic in topics:
                agent(real).invoke({"topic": topic})
    assert len(file.read_text("utf-8").splitlines()) == 4
    with Replay(file).everywhere():
        assert [agent(None).invoke({"topic": topic})["o"] for topic in "ab"] == ["4", "3"]


class Backwards:
    """A model that answers the first request last, with its number."""

    def __init__(self, many: int) -> None:
        self.many, self.asked, self.all_there = many, 0, asyncio.Event()

    async def reply(self, request: Any, emit: Any) -> Reply:
        number = self.asked = self.asked + 1
        if number == self.many:
            self.all_there.set()
        await self.all_there.wait()
        for _ in range(3 * (self.many - number)):
            await asyncio.sleep(0)
        return Reply(text=f'{{"o": "{number}"}}')


def test_of_equal_requests_at_the_same_time_each_gets_its_own_reply(tmp_path):
    file = tmp_path / "run.jsonl"

    def asked(model: Any) -> dict[str, Any]:
        graph = RootGraph("g")
        for name in "abcd":
            graph.create_node(Agent, name=name, model=model)
            graph.edge_from_entry(name)
            graph.edge_to_exit(name, {"o": ""})
        finished: dict[str, Any] = {}

        class Watch:
            def firing_finished(self, activation: Any, payload: Any) -> None:
                finished[activation.path] = payload

        asyncio.run(graph.build().run({"message": "?"}, observers=[Watch()]))
        return finished

    with Recorder.everywhere(file):
        recorded = asked(Backwards(4))
    written = [
        json.loads(json.loads(each)["reply"]["text"])["o"] for each in file.read_text().splitlines()
    ]
    assert written == ["4", "3", "2", "1"]
    with Replay(file).everywhere():
        assert asked(None) == recorded


def test_a_reply_is_given_once_unless_it_is_to_be_repeated(tmp_path):
    file = tmp_path / "run.jsonl"
    agent(Recorder(Scripted(['{"o": "one"}']), file)).invoke({"topic": "axils"})
    once, again = agent(Replay(file)), agent(Replay(file, repeat=True))
    assert once.invoke({"topic": "axils"}) == {"o": "one"}
    with pytest.raises(ReplayMiss, match=r"AX662.*this request 1 time.*have been given"):
        once.invoke({"topic": "axils"})
    assert [again.invoke({"topic": "axils"})["o"] for _ in range(3)] == ["one"] * 3
    assert Replay(Replay.Config(path=str(file), repeat=True)).repeat


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_recording_is_used_up_to_a_last_line_that_was_cut_off(tmp_path, cut, caplog):
    file = tmp_path / "run.jsonl"
    model = agent(Recorder(Scripted(['{"o": "één"}', '{"o": "twee"}']), file))
    for topic in "ab":
        model.invoke({"topic": topic})
    whole = file.read_bytes()
    file.write_bytes(whole[: -1 - cut])
    replayed = agent(Replay(file))
    assert replayed.invoke({"topic": "a"}) == {"o": "één"}
    assert "cut off" in caplog.text
    with pytest.raises(ReplayMiss):
        replayed.invoke({"topic": "b"})
    # recording into it again loses neither what was whole nor what comes
    agent(Recorder(Scripted(['{"o": "drie"}']), file)).invoke({"topic": "c"})
    replayed = agent(Replay(file))
    assert [replayed.invoke({"topic": topic})["o"] for topic in "ac"] == ["één", "drie"]


def test_a_last_line_without_its_end_counts(tmp_path):
    file = tmp_path / "run.jsonl"
    agent(Recorder(Scripted(['{"o": 1}']), file)).invoke({"topic": "a"})
    file.write_bytes(file.read_bytes()[:-1])
    agent(Recorder(Scripted(['{"o": 2}']), file)).invoke({"topic": "b"})
    replayed = agent(Replay(file))
    assert [replayed.invoke({"topic": topic})["o"] for topic in "ab"] == [1, 2]


def test_a_recording_tells_models_apart(tmp_path):
    file = tmp_path / "run.jsonl"
    models = [
        Recorder(Scripted([f'{{"o": "{name}"}}']), file, name=name) for name in ("small", "large")
    ]
    assert [agent(model).invoke({"topic": 1})["o"] for model in models] == ["small", "large"]
    with Replay(file).everywhere():
        assert [
            agent({"type": "other", "name": name}).invoke({"topic": 1})["o"]
            for name in ("large", "small")
        ] == ["large", "small"]
        with pytest.raises(ReplayMiss, match=r'\+ "model": "medium"'):
            agent({"type": "other", "name": "medium"}).invoke({"topic": 1})


def test_a_recording_that_cannot_be_written_is_refused_before_anything_is_asked(tmp_path):
    with pytest.raises(ConfigError, match=r"AX711.*none.*cannot be written"):
        Recorder.everywhere(tmp_path / "none" / "run.jsonl")


def test_a_recording_that_is_none_is_said_so(tmp_path):
    with pytest.raises(ConfigError, match=r"AX663.*cannot be read"):
        ask(Replay(tmp_path / "none"))
    (tmp_path / "bad").write_text("{}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"AX663.*bad:1"):
        ask(Replay(str(tmp_path / "bad")))


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"request": {}, "reply": {"text": 3}}', '{"request": {}, "reply": []}']
)
def test_a_damaged_recording_is_said_so_with_its_line(tmp_path, line):
    file = tmp_path / "run.jsonl"
    agent(Recorder(Scripted(['{"o": 1}']), file)).invoke({"topic": "a"})
    with file.open("a") as opened:
        opened.write(f"{line}\n")
    with pytest.raises(ConfigError, match=r"AX663.*run.jsonl:2: this line is no recorded exchange"):
        ask(Replay(file))


def test_a_changed_exchange_is_refused_until_its_checksum_is_taken_out(tmp_path):
    file = tmp_path / "run.jsonl"
    agent(Recorder(Scripted(['{"o": "shade"}']), file)).invoke({"topic": "ferns"})
    (exchange,) = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    exchange["reply"]["text"] = '{"o": "sun"}'
    file.write_text(json.dumps(exchange) + "\n", "utf-8")
    with pytest.raises(ConfigError, match=r'AX663.*run.jsonl:1: .* changed .*take "checksum" out'):
        agent(Replay(file)).invoke({"topic": "ferns"})
    del exchange["checksum"]
    file.write_text(json.dumps(exchange) + "\n", "utf-8")
    assert agent(Replay(file)).invoke({"topic": "ferns"}) == {"o": "sun"}


def test_a_model_named_in_settings_is_made_once_and_closed():
    closed: list[int] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def reply(self, request, emit): ...

        async def close(self) -> None:
            closed.append(1)

    from axil.plugin import default_registry

    default_registry().register("models", "mine", Named)
    chosen = Chosen({"type": "mine", "name": "n"})
    assert chosen.now() is chosen.now()
    asyncio.run(chosen.close())
    own = Chosen(Named("n"))
    own.now()
    asyncio.run(own.close())
    assert closed == [1]


def test_arguments_that_cannot_be_read_are_the_models_to_hear():
    reply = read_answer({"type": "tool_call", "content": [{"name": "f", "arguments": '{"a": '}]})
    assert reply.tool_calls[0].fault.startswith("the arguments are not valid JSON")
    assert read_arguments("[1]")[1].startswith("the arguments are not a JSON object")
    assert read_answer("text").text == "text"


def test_a_recording_of_what_was_refused_is_not_left_behind(tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    old.touch()
    for file in (new, old):
        with suppress(LookupError), Recorder.everywhere(file):
            raise LookupError
    assert [new.exists(), old.exists()] == [False, True]


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b"])
def test_a_recording_whose_name_no_file_can_have_is_said_so(path):
    with pytest.raises(ConfigError, match=r"AX711.*no file can have this name"):
        Recorder.everywhere(path)
    with pytest.raises(ConfigError, match=r"AX663.*no file can have this name"):
        ask(Replay(path))


def test_a_model_whose_close_is_a_plain_function_is_closed():
    closed: list[str] = []

    class Plain:
        async def reply(self, request: Request, emit: Any, /) -> Reply:
            return Reply(text="done")

        def close(self) -> None:
            closed.append("closed")

    chosen = Chosen({"type": "plain"})
    chosen._made = Plain()  # as if it had been made from the name
    asyncio.run(chosen.close())
    assert closed == ["closed"]


def test_a_file_that_is_no_recording_loses_nothing(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("one\ntwo")
    with Recorder.everywhere(notes):
        pass
    assert notes.read_text() == "one\ntwo\n"

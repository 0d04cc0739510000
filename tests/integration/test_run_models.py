"""``axil run`` with a script, a recorder or a recording in the place of every model."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from axil import RootGraph
from axil.plugin import Registry, use_registry
from axil_agent import Agent, Recorder, Replay, Scripted
from axil_cli.main import main
from axil_control import Loop
from axil_journals import MemoryJournal
from axil_testing.members import command_runner


@pytest.fixture
def axil(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    return command_runner(main, capsys, "run")


def agent(name: str, **config: Any) -> dict[str, Any]:
    """Return an agent whose model is not installed."""
    return {
        "id": name,
        "type": "agent",
        "config": {
            "model": {"type": "nobodys", "name": name},
            "instructions": f"You are {name}.",
            **config,
        },
    }


def write(path: str, nodes: list[Any], edges: list[Any] = (), **graph: Any) -> str:
    made = [{"from": e.split()[0], "to": e.split()[1]} if isinstance(e, str) else e for e in edges]
    Path(path).write_text(
        json.dumps({"graph": {"start": [nodes[0]["id"]], "nodes": nodes, "edges": made, **graph}})
    )
    return path


def script(*rules: dict[str, Any], default: str = "OK") -> str:
    Path("script.json").write_text(json.dumps({"rules": list(rules), "default": default}))
    return "script.json"


def test_a_script_answers_agents_wherever_they_are(axil):
    """In the graph, in an included file, in a graph in a node, per item of a map, as a switch, and
    to summarise a memory.
    """
    write("inner.json", [agent("included")])
    inner = {"start": ["inside"], "nodes": [agent("inside")], "edges": []}
    nodes = [
        agent("first", memories=[{"type": "history", "memory_size": 1, "summarise": True}]),
        {
            "id": "file",
            "type": "subgraph",
            "config": {"type": "file", "config": {"path": "inner.json"}},
        },
        {"id": "graph", "type": "subgraph", "config": {"type": "config", "config": inner}},
        {
            "id": "items",
            "type": "map",
            "config": {
                "split": "message",
                "body": {"type": "agent", "config": agent("item")["config"]},
            },
        },
        {
            "id": "way",
            "type": "agent_switch",
            "config": {"model": "nobodys", "routes": {"yes": "it is good", "no": "it is bad"}},
        },
        agent("yes"),
        agent("no"),
    ]
    flow = write(
        "flow.json",
        nodes,
        ["first file", "file graph", "graph items", "items way", "way yes", "way no"],
        end=["yes", "no"],
    )
    rules = [
        {
            "match": {"system_contains": f"You are {name}.", "model": name},
            "replies": [f"{name} spoke"],
        }
        for name in ("first", "included", "inside", "item", "yes", "no")
    ]
    judge = {
        "match": {"system_contains": "condition", "user_contains": "it is good"},
        "replies": ["YES"],
    }
    other = {"match": {"system_contains": "condition"}, "replies": ["NO"]}
    summary = {
        "match": {"system_contains": "Summarise"},
        "replies": [{"text": "in short", "usage": {"output_tokens": 1000}}],
    }
    done = axil(
        flow,
        "--model-script",
        script(*rules, judge, other, summary, default="nobody matched"),
        "--input",
        "go",
        "--format",
        "json",
    )
    assert done.code == 0, done
    data = json.loads(done.out)
    assert data["output"] == "yes spoke"
    fired = [each["path"] for each in data["activations"] if each["status"] == "done"]
    spoke = [
        path
        for path in fired
        if path in ("first", "file/included", "graph/inside", "items/item/item", "way", "yes", "no")
    ]
    assert spoke == ["first", "file/included", "graph/inside", "items/item/item", "way", "yes"]
    assert data["usage"]["tokens"]["output_tokens"] > 1000


def test_a_script_answers_the_judge_of_a_loop(axil):
    g = RootGraph("g")
    loop = g.create_node(
        Loop,
        name="loop",
        max_iterations=9,
        model="nobodys",
        terminate_condition_prompt="{n} is enough",
    )
    loop.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="add")
    loop.edge_from_controller("add", ["n"])
    loop.edge_to_controller("add", ["n"])
    g.edge_from_entry(loop, ["n"])
    g.edge_to_exit(loop, ["n"])
    with Scripted(
        {
            "rules": [{"match": {"user_contains": "3 is enough"}, "replies": ["STOP"]}],
            "default": "CONTINUE",
        }
    ).everywhere():
        assert g.build().invoke({"n": 0})[0] == {"n": 3}


def test_every_kind_of_reply_of_a_script(axil):
    flow = write("flow.json", [agent("a")])
    said = script(
        {"match": {"user_contains": "echo"}, "replies": [{"echo_user": True}]},
        {"match": {"user_contains": "slow"}, "replies": [{"delay": 0.01, "text": "late"}]},
        {"match": {"user_contains": "busy"}, "replies": [{"status": 429}]},
        {
            "match": {"user_contains": "tool"},
            "replies": [{"tool_calls": [{"name": "nope", "arguments": {}}]}, "then this"],
        },
    )
    assert axil(flow, "--model-script", said, "--input", "echo").out == "(echo)\n"
    assert axil(flow, "--model-script", said, "--input", "slow").out == "late\n"
    assert axil(flow, "--model-script", said, "--input", "use a tool").out == "then this\n"
    assert axil(flow, "--model-script", said, "--input", "else").out == "OK\n"
    busy = axil(flow, "--model-script", said, "--input", "busy")
    assert busy.code == 1
    assert "AX660" in busy.err
    assert "429" in busy.err


def test_a_script_in_yaml(axil):
    Path("script.yaml").write_text("rules:\n  - replies: [from yaml]\n")
    done = axil(write("flow.json", [agent("a")]), "--input", "go", "--model-script", "script.yaml")
    assert done.out == "from yaml\n"
    Path("script.yaml").write_text(
        "rules:\n  - match: {sytem_contains: x}\n    replies: []\ndefalt: x\n"
    )
    wrong = axil("flow.json", "--model-script", "script.yaml")
    assert wrong.code == 2
    assert [line.partition(": ")[2].split(": ")[0] for line in wrong.err.splitlines()] == [
        "AX130 script.yaml:2 rules[0].match.sytem_contains",
        "AX131 script.yaml:3 rules[0].replies",
        "AX130 script.yaml:4 defalt",
    ]
    assert (
        json.loads(axil("flow.json", "--model-script", "none.yaml", "--format", "json").out)[
            "problems"
        ][0]["id"]
        == "AX710"
    )


def test_without_a_script_the_model_is_missing(axil):
    missing = axil(write("flow.json", [agent("a")]))
    assert missing.code == 2
    assert 'unknown model adapter "nobodys"' in missing.err


@pytest.fixture
def real():
    """A model that is installed, and answers differently each time."""
    known = Registry()
    count = iter(range(100))

    class Real:
        def __init__(self, name: str = "") -> None:
            self.name = name

        async def reply(self, request, emit):
            from axil_models import Reply

            emit({"kind": "text", "text": "…"})
            return Reply(text=f"{self.name} said {next(count)}")

    known.register("models", "nobodys", Real)
    with use_registry(known):
        yield known


@pytest.mark.parametrize("how", [[], ["--progress"], ["--format", "json"], ["--format", "events"]])
def test_what_was_recorded_is_replayed(axil, real, how):
    flow = write("flow.json", [agent("a"), agent("b")], ["a b"])
    recorded = axil(flow, "--record", "tape.jsonl", "--input", "hello", *how)
    replayed = axil(flow, "--replay", "tape.jsonl", "--input", "hello", *how)
    assert (recorded.code, replayed.code) == (0, 0)
    said = [text for text in (recorded.out, replayed.out) if "b said 1" in text]
    assert len(said) == 2
    if not how:
        assert recorded.out == replayed.out == "b said 1\n"


def test_a_miss_shows_the_nearest_recording(axil, real):
    flow = write("flow.json", [agent("a")])
    axil(flow, "--record", "tape.jsonl", "--input", "hello world")
    missed = axil(flow, "--replay", "tape.jsonl", "--input", "hello moon")
    assert missed.code == 1
    assert "AX662" in missed.err
    assert '-   "content": "hello world"' in missed.err
    assert '+   "content": "hello moon"' in missed.err


def test_recordings_are_looked_at_before_anything_runs(axil, real):
    flow = write("flow.json", [agent("a")])
    assert axil(flow, "--replay", "none.jsonl")[:2] == (2, "")
    assert axil(flow, "--record", "none/tape.jsonl").err.startswith(
        "error: AX711 none/tape.jsonl: "
    )


@pytest.mark.parametrize(
    "pair", [("model-script", "record"), ("record", "replay"), ("replay", "model-script")]
)
def test_script_record_and_replay_exclude_each_other(axil, pair):
    done = axil("flow.json", f"--{pair[0]}", "x", f"--{pair[1]}", "y")
    assert done.code == 2
    assert done.err == (
        f"error: AX700 --{pair[1]}: it cannot be used together with --{pair[0]}. Leave one of "
        "them out.\n"
    )


def test_a_run_that_pauses_is_recorded_and_replayed(axil, real, monkeypatch):
    human = {"id": "h", "type": "human", "config": {"description": "go on?"}}
    flow = write("flow.json", [agent("a"), human, agent("b")], ["a h", "h b"])
    Path("answers.txt").write_text("yes\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert axil(flow, "--record", "tape.jsonl", "--input", "x").code == 3
    assert (
        axil(flow, "--record", "tape.jsonl", "--input", "x", "--answers", "answers.txt").out
        == "b said 2\n"
    )
    assert (
        axil(flow, "--replay", "tape.jsonl", "--input", "x", "--answers", "answers.txt").out
        == "b said 2\n"
    )
    assert axil(flow, "--replay", "tape.jsonl", "--input", "x").code == 3


def test_a_run_that_is_resumed_asks_only_what_was_not_answered(real, tmp_path):
    """Recorded in two parts, replayed in two parts, and in one."""
    graph = RootGraph("g")
    for name in ("a", "b"):
        graph.create_node(
            Agent, name=name, model={"type": "nobodys", "name": name}, formatters="twins"
        )

    async def ask(inputs, ctx):
        return {"said": f"{inputs['said']}, {await ctx.ask('go on?')}"}

    graph.create_node(ask, name="ask")
    graph.edge_from_entry("a", ["topic"])
    graph.create_edge("a", "ask", ["said"])
    graph.create_edge("ask", "b", ["said"])
    graph.edge_to_exit("b", ["end"])
    graph.build()

    async def in_two_parts(run_id):
        journal = MemoryJournal()
        paused = await graph.run({"topic": "x"}, run_id=run_id, journal=journal)
        return await graph.resume(run_id, journal=journal, answers={paused.questions[0].id: "yes"})

    with Recorder.everywhere(tmp_path / "tape.jsonl"):
        recorded = asyncio.run(in_two_parts("one"))
    assert recorded.output == {"end": "b said 1"}
    assert len((tmp_path / "tape.jsonl").read_text().splitlines()) == 2
    with Replay(tmp_path / "tape.jsonl").everywhere():
        assert asyncio.run(in_two_parts("two")).output == recorded.output
    script = Scripted(
        {"rules": [{"match": {"user_contains": "yes"}, "replies": ["after"]}], "default": "before"}
    )
    with script.everywhere():
        assert asyncio.run(in_two_parts("three")).output == {"end": "after"}
    assert len(script.requests) == 2


def test_no_secret_of_a_file_or_of_the_environment_is_on_a_cassette(axil, real, monkeypatch):
    # a value of its own: the process knows each secret by the name that it met first
    monkeypatch.setenv("MINE_API_KEY", "sk-cassette-90817")
    hidden = agent(
        "a",
        params={"api_key": "sk-in-the-file", "temperature": 1},
        instructions="The key is ${MINE_API_KEY}.",
    )
    assert (
        axil(
            write("flow.json", [hidden]),
            *("--record", "tape.jsonl", "--input", "sk-cassette-90817?"),
            *("--allow", "env:MINE_API_KEY"),
        ).code
        == 0
    )
    text = Path("tape.jsonl").read_text()
    assert "sk-" not in text
    assert "${MINE_API_KEY}" in text
    assert (
        axil(
            "flow.json",
            *("--replay", "tape.jsonl", "--input", "sk-cassette-90817?"),
            *("--allow", "env:MINE_API_KEY"),
        ).out
        == "a said 0\n"
    )


def test_help_tells_of_all_three(axil, capsys):
    reported = " ".join(axil("--help").out.split())
    for option in ("--model-script FILE", "--record FILE", "--replay FILE"):
        assert option in reported

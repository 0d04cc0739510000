"""Laws of DevAll's agents: what reaches the model, and what becomes of its reply."""

from __future__ import annotations

from typing import Any

import pytest

from axil import NodeFailed, SpecError, run_sync
from axil_agent import Scripted
from axil_journals import MemoryJournal


def agent(name: str, **config: Any) -> dict[str, Any]:
    """Return an agent as DevAll's files have it."""
    return {
        "id": name,
        "type": "agent",
        "config": {"provider": "openai", "name": "small", "role": f"You are {name}.", **config},
    }


def said(script: Scripted, number: int) -> list[tuple[str, str]]:
    """Roles and texts of a request."""
    return [(m["role"], m["content"]) for m in script.requests[number].messages]


def literal(name: str, content: str, role: str = "user") -> dict[str, Any]:
    return {"id": name, "type": "literal", "config": {"content": content, "role": role}}


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"sun in {city}"


# ---------------------------------------------------------------------- what a node is


@pytest.mark.parametrize(
    "config", [{"provider": "p", "name": "n"}, {"tooling": []}, {"retry": None, "role": "R"}]
)
def test_an_agent_with_devalls_keys_is_devalls(config):
    from axil import ComponentRef, GraphSpec, NodeSpec
    from axil_devall.dialect import agent as dialect

    spec = GraphSpec(id="g")
    assert dialect(
        NodeSpec(id="a", use=ComponentRef(type="agent", config=config)), spec
    ).use == ComponentRef(type="devall.agent", config=config)


def test_an_agent_with_keys_of_axils_own_is_axils_in_any_file():
    from axil import ComponentRef, GraphSpec, NodeSpec
    from axil_devall.dialect import agent as dialect

    node = NodeSpec(
        id="a", use=ComponentRef(type="agent", config={"model": "scripted", "instructions": "Go."})
    )
    assert dialect(node, GraphSpec(id="g", extras={"version": "0.4.0"})) == node
    plain = NodeSpec(id="a", use=ComponentRef(type="agent", config={"role": "R"}))
    assert dialect(plain, GraphSpec(id="g")) == plain
    assert dialect(plain, GraphSpec(id="g", extras={"version": "0.4.0"})) != plain


def test_the_two_kinds_of_agents_are_distinguished_by_keys_that_one_alone_has():
    from axil_devall.config import AgentConfig as Theirs
    from axil_devall.dialect import DEVALL, axils

    assert {"model", "instructions", "tools", "output", "max_turns"} <= axils()
    assert axils() & set(Theirs.model_fields) == set()
    assert set(DEVALL) <= set(Theirs.model_fields)


def test_what_is_wrong_is_said_with_its_line(flow, tmp_path):
    with pytest.raises(
        SpecError,
        match=r"AX131 .*flow\.json:1 nodes\[0\]\.config\.provider: expected text, found nothing",
    ):
        flow([agent("A", provider=None)]).plan  # noqa: B018


def test_an_unknown_provider_is_an_error_before_anything_runs(flow):
    with pytest.raises(SpecError, match=r'AX301 .*nodes\[0\].*unknown model adapter "nope"'):
        flow([agent("A", provider="nope")]).plan  # noqa: B018


# ---------------------------------------------------------------------- messages


def test_the_role_is_the_systems_and_braces_in_it_are_text(talk):
    result, script = talk(["fine"], [agent("A", role="Write {x} as {{y}}.")])
    assert said(script, 0) == [("system", "Write {x} as {{y}}."), ("user", "TASK")]
    assert (result.output, result.messages[0]["role"]) == ("fine", "assistant")


def test_in_prompt_mode_all_that_came_is_one_message(talk):
    nodes = [literal("X", "x"), literal("Y", "y", "assistant"), agent("A", input_mode="prompt")]
    _, script = talk(["ok"], nodes, ["X Y", "X A", "Y A"])
    assert said(script, 0)[1:] == [
        ("user", "=== INPUT FROM X (user) ===\n\nx\n\n=== INPUT FROM Y (assistant) ===\n\ny")
    ]


@pytest.mark.parametrize("mode", ["messages", "prompt"])
def test_an_agent_that_gets_no_message_asks_with_an_empty_one(talk, mode):
    nodes = [literal("X", "x"), agent("A", input_mode=mode)]
    _, script = talk(["ok"], nodes, [{"from": "X", "to": "A", "carry_data": False}])
    assert said(script, 0)[1:] == [("user", "")]


def test_images_reach_the_model_in_both_modes_and_memories_hear_of_them_by_name(talk):
    image = {"type": "image", "url": "https://example.org/leaf.png"}
    whole = [{"type": "text", "text": "See"}, image]
    block = [{"type": "text", "text": "=== INPUT FROM TASK (user) ===\n\nSee\n[image]"}, image]
    store = {"memory": [{"name": "bb", "type": "blackboard", "config": {}}]}
    for mode, content in (("messages", whole), ("prompt", block)):
        node = agent("A", input_mode=mode, memories=[{"name": "bb"}])
        result, script = talk(["ok"], [node], task=[{"role": "user", "content": whole}], **store)
        assert script.requests[0].messages[-1]["content"] == content
        assert result.state["memory/bb"][0]["about"] == "See\n[image]"


def test_params_are_the_models_but_for_those_that_are_not(talk):
    tool = {"type": "function", "config": {"tools": []}}
    config = {
        "params": {
            "temperature": 0.1,
            "max_output_tokens": 9,
            "tool_loop_limit": 3,
            "protocol": "chat",
        },
        "tooling": [tool],
    }
    _, script = talk(["ok"], [agent("A", **config)])
    assert dict(script.requests[0].settings) == {"temperature": 0.1, "max_tokens": 9}


def test_a_setting_out_of_range_is_said_with_its_place(flow):
    with pytest.raises(
        SpecError,
        match=r"AX655 .*flow\.json:1 nodes\[0\]: params\.temperature: expected a number from 0 "
        r"to 2, found 9",
    ):
        flow([agent("A", params={"temperature": 9})]).plan  # noqa: B018


def test_a_model_that_fails_fails_its_node(talk):
    with pytest.raises(NodeFailed, match='AX401 node "A"'):
        talk([{"status": 400}], [agent("A"), {"id": "Z", "type": "passthrough"}], ["A Z"])


def test_a_reflection_replaces_the_reply_and_sees_what_was_said_once(talk):
    thinking = {"type": "reflection", "config": {"reflection_prompt": "First sentences only."}}
    result, script = talk(["draft", "final"], [agent("A", thinking=thinking)])
    assert result.output == "final"
    ((role, text),) = said(script, 1)
    assert role == "user"
    assert text.startswith("Here is a conversation")
    assert (
        text.count("TASK"),
        text.count("assistant: draft"),
        text.count("First sentences only."),
    ) == (1, 1, 1)


# ---------------------------------------------------------------------- tools


def test_a_function_is_shown_by_its_name_with_its_prefix(talk, known):
    known.register("tools", "get_weather", weather, instead=True)
    tooling = [{"type": "function", "prefix": "p1", "config": {"tools": [{"name": "get_weather"}]}}]
    replies = [{"tool_calls": [{"name": "p1_get_weather", "arguments": {"city": "Rome"}}]}, "warm"]
    result, script = talk(replies, [agent("A", tooling=tooling)])
    assert result.output == "warm"
    assert script.requests[1].messages[-1]["content"] == "sun in Rome"
    assert [tool.name for tool in script.requests[0].tools] == ["p1_get_weather"]


def test_a_function_that_is_called_otherwise_here_keeps_its_name_for_the_model(talk, known):
    names = known.names("tools")
    if "write_file" not in names:
        known.register("tools", "write_file", weather)
    tooling = [{"type": "function", "config": {"tools": [{"name": "save_file"}]}}]
    _, script = talk(["ok"], [agent("A", tooling=tooling)])
    assert [tool.name for tool in script.requests[0].tools] == ["save_file"]


def test_functions_that_are_the_same_tool_here_are_two_for_the_model(talk, known):
    from axil_models import Tool

    class Movers:
        async def tools(self) -> list[Tool]:
            return [
                Tool(
                    name="move_path", description="", parameters={"type": "object"}, call=lambda: ""
                )
            ]

    known.register("tools", "move_path", Movers, instead=True)
    tooling = [
        {
            "type": "function",
            "prefix": "p",
            "config": {"tools": [{"name": "rename_path"}, {"name": "move_path"}]},
        }
    ]
    _, script = talk(["ok"], [agent("A", tooling=tooling)])
    assert [tool.name for tool in script.requests[0].tools] == ["p_rename_path", "p_move_path"]


def test_functions_that_nothing_provides_are_said_at_once_with_what_to_do(flow):
    tooling = [
        {"type": "function", "config": {"tools": [{"name": "no_such"}, {"name": "nor_this"}]}}
    ]
    with pytest.raises(
        SpecError,
        match=r"AX850 .*nodes\[0\]: tooling\[0\]: nothing provides the functions no_such, "
        r"nor_this.*--functions",
    ):
        flow([agent("A", tooling=tooling)]).plan  # noqa: B018


def test_a_function_that_is_nearly_known_is_suggested(flow):
    tooling = [{"type": "function", "config": {"tools": [{"name": "save_fil"}]}}]
    with pytest.raises(SpecError, match=r'function save_fil\. Did you mean "save_file"\?'):
        flow([agent("A", tooling=tooling)]).plan  # noqa: B018


def test_a_group_of_functions_that_is_not_known_is_an_error(flow):
    tooling = [{"type": "function", "config": {"tools": [{"name": "mystery:All"}]}}]
    with pytest.raises(SpecError, match=r'AX851 .*"mystery:All" is not a group of functions'):
        flow([agent("A", tooling=tooling)]).plan  # noqa: B018


def test_a_server_whose_program_is_missing_is_an_error_that_names_it(flow, known):
    if "mcp" not in known.names("tools"):
        known.register("tools", "mcp", Server)
    tooling = [{"type": "mcp_local", "config": {"command": "no-such-program-of-ours", "args": []}}]
    with pytest.raises(SpecError, match=r'AX853 .*"no-such-program-of-ours"'):
        flow([agent("A", tooling=tooling)]).plan  # noqa: B018


class Server:
    """Stands for the tools of an MCP server."""

    made: Any = None

    def __init__(self, **settings: Any) -> None:
        Server.made = settings

    async def tools(self) -> list[Any]:
        from axil_models import Tool

        return [
            Tool(
                name="mcp__add",
                description="",
                parameters={"type": "object"},
                call=lambda a, b: a + b,
            )
        ]


def test_a_remote_server_gives_its_tools_under_their_own_names(tmp_path, monkeypatch):
    from axil.plugin import Registry
    from axil_devall.config import Remote
    from axil_devall.tooling import Toolbox

    known = Registry(entry_points=[])
    known.register("tools", "mcp", Server)
    config = {"server": "http://127.0.0.1:1/mcp", "timeout": 3}
    box = Toolbox([Remote(type="mcp_remote", prefix="p", config=config)], known)
    assert [tool.name for tool in run_sync(box.tools())] == ["p_add"]
    assert Server.made == {
        "name": "mcp",
        "url": "http://127.0.0.1:1/mcp",
        "headers": {},
        "call_timeout_seconds": 3.0,
    }


def test_servers_are_closed_with_the_workflow_and_see_no_more_than_they_are_given(monkeypatch):
    from axil.plugin import Registry
    from axil_devall.config import Local
    from axil_devall.tooling import Toolbox

    closed: list[bool] = []

    class Closing(Server):
        async def close(self) -> None:
            closed.append(True)

    monkeypatch.setattr("axil_devall.tooling.shutil.which", lambda name: name)
    known = Registry(entry_points=[])
    known.register("tools", "mcp", Closing)
    config = {"command": "serve", "args": ["--now"], "env": {"MODE": "x"}, "inherit_env": True}
    box = Toolbox([Local(type="mcp_local", config=config)], known)
    assert Server.made == {
        "name": "mcp",
        "command": ["serve"],
        "args": ["--now"],
        "env": {"MODE": "x"},
    }
    run_sync(box.close())
    assert closed == [True]


def test_a_conversation_with_tools_stays_out_of_the_window(talk, known):
    known.register("tools", "get_weather", weather, instead=True)
    tooling = [{"type": "function", "config": {"tools": [{"name": "get_weather"}]}}]
    replies = [
        {"tool_calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}]},
        "again",
        "STOP",
    ]
    again = {"type": "keyword", "config": {"none": ["STOP"]}}
    node = {**agent("A", tooling=tooling), "context_window": -1}
    result, script = talk(replies, [node], [{"from": "A", "to": "A", "condition": again}])
    assert result.output == "STOP"
    assert [role for role, _ in said(script, 2)] == ["system", "user", "assistant", "assistant"]


# ---------------------------------------------------------------------- skills


@pytest.fixture
def skills(tmp_path):
    for name, more in (("count", "allowed-tools: add\n"), ("write", "")):
        folder = tmp_path / ".agents/skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: To {name}.\n{more}---\nDo {name}.\n", "utf-8"
        )
        (folder / "more.md").write_text(f"More of {name}.", "utf-8")
    return tmp_path


def test_a_skill_is_listed_activated_and_read(talk, skills):
    replies = [
        {"tool_calls": [{"name": "activate_skill", "arguments": {"skill_name": "write"}}]},
        {
            "tool_calls": [
                {
                    "name": "read_skill_file",
                    "arguments": {"skill_name": "write", "relative_path": "more.md"},
                }
            ]
        },
        {
            "tool_calls": [
                {
                    "name": "read_skill_file",
                    "arguments": {"skill_name": "write", "relative_path": "../count/more.md"},
                }
            ]
        },
        "done",
    ]
    _, script = talk(replies, [agent("A", skills={"enabled": True, "allow": [{"name": "write"}]})])
    assert said(script, 0)[0][1].endswith("- write: To write.")
    results = [m["content"] for m in script.requests[3].messages if m["role"] == "tool"]
    assert results[:2] == ["Do write.", "More of write."]
    assert "leads out of the skill's folder" in results[2]


def test_while_a_skill_is_active_only_what_it_allows_is_called_also_in_a_resumed_run(
    flow, known, skills
):
    called: list[str] = []

    def add() -> None:
        called.append("add")

    def drop() -> None:
        called.append("drop")

    known.register("tools", "add", add)
    known.register("tools", "drop", drop)
    replies = [
        {"tool_calls": [{"name": "activate_skill", "arguments": {"skill_name": "count"}}]},
        {"status": 400},
        {"tool_calls": [{"name": "drop"}]},
        {"tool_calls": [{"name": "add"}]},
        "done",
    ]
    tooling = [{"type": "function", "config": {"tools": [{"name": "add"}, {"name": "drop"}]}}]
    script, journal = Scripted(replies), MemoryJournal()
    with script.everywhere():
        work = flow([agent("A", tooling=tooling, skills={"enabled": True})])
        with pytest.raises(NodeFailed):
            run_sync(work.run("TASK", journal=journal, run_id="r"))
        assert run_sync(work.run(None, journal=journal, run_id="r", resuming=True)).output == "done"
    assert called == ["add"]
    assert (
        'the active skill "count" is used without this tool'
        in script.requests[-2].messages[-1]["content"]
    )


def test_a_skill_that_is_not_there_is_an_error_that_says_where_it_belongs(flow, tmp_path):
    with pytest.raises(
        SpecError, match=r"AX856 .*there is no skill nowhere\. Put a folder .*\.agents"
    ):
        _ = flow([agent("A", skills={"enabled": True, "allow": [{"name": "nowhere"}]})]).plan


def test_skills_that_are_not_enabled_are_none(talk):
    _, script = talk(
        ["ok"], [agent("A", skills={"enabled": False, "allow": [{"name": "nowhere"}]})]
    )
    assert script.requests[0].tools == []


# ---------------------------------------------------------------------- retries


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, None),
        ({"enabled": False}, None),
        ({}, {"tries": 5, "wait_seconds": 1.0, "min_wait_seconds": 1.0, "max_wait_seconds": 6.0}),
        (
            {
                "enabled": True,
                "max_attempts": 2,
                "min_wait_seconds": 0,
                "max_wait_seconds": 3,
                "retry_on_status_codes": [429],
                "retry_on_exception_types": ["RateLimitError"],
                "non_retry_exception_types": [],
                "retry_on_error_substrings": ["busy"],
            },
            {
                "tries": 2,
                "wait_seconds": 0,
                "min_wait_seconds": 0,
                "max_wait_seconds": 3,
                "on_status": [429],
                "on_text": ["busy"],
                "on": ["*.RateLimitError"],
            },
        ),
    ],
)
def test_retry_becomes_the_wrapper_innermost(said, meant):
    from axil import ComponentRef, GraphSpec, NodeSpec
    from axil_devall.dialect import agent as dialect

    node = NodeSpec(
        id="a",
        use=ComponentRef(type="agent", config={"provider": "p", "name": "n", "retry": said}),
        wrappers=(ComponentRef(type="inbox"),),
    )
    wanted = () if meant is None else (ComponentRef(type="retry", config=meant),)
    assert dialect(node, GraphSpec(id="g")).wrappers == (ComponentRef(type="inbox"), *wanted)


def test_a_retry_that_cannot_be_is_said_with_its_key(flow):
    with pytest.raises(
        SpecError,
        match=r"AX131 .*nodes\[0\]\.config\.retry\.max_attempts: expected a number ≥ 1, found 0",
    ):
        flow([agent("A", retry={"enabled": False, "max_attempts": 0})]).plan  # noqa: B018

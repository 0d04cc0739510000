"""Tools that providers have, among an agent's tools: how they are asked for, what they did, and
what of them comes back to be done here.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from axil import ConfigError, RootGraph
from axil_agent import Agent, Scripted, SingleAgent
from axil_anthropic import AnthropicModel
from axil_files import load
from axil_gemini import GeminiModel
from axil_journals import MemoryJournal
from axil_models import ProviderTool, Reply, Request, ToolError
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_testing.stub import Act, Call, Stub

MODELS = {
    "responses": OpenAIResponsesModel,
    "messages": AnthropicModel,
    "generate": GeminiModel,
    "chat": OpenAIModel,
}
PNG = "iVBORw0KGgo="


def made(dialect: str, server: Stub, **settings: Any) -> Any:
    return MODELS[dialect]("m", server.key, server.url, retry={"max_tries": 1}, **settings)


def see(actions: list[dict[str, Any]]) -> dict[str, Any]:
    """Act, and show the screen."""
    return {"type": "image", "data": PNG, "media_type": "image/png"}


TOOLS = {
    "web_search": ProviderTool("web_search"),
    "code_interpreter": ProviderTool("code_interpreter"),
    "file_search": ProviderTool("file_search", stores=["s1"]),
    "image_generation": ProviderTool("image_generation"),
    "computer": ProviderTool("computer", act=see, width=640, height=480, approve="never"),
    "mcp": ProviderTool(
        "mcp", name="docs", url="https://mcp.example.org", token="t0k3n-docs", approve="never"
    ),
}
SENT: dict[tuple[str, str], dict[str, Any]] = {
    ("responses", "web_search"): {
        "tools": [{"type": "web_search"}],
        "include": ["web_search_call.action.sources"],
    },
    ("responses", "code_interpreter"): {
        "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
        "include": ["code_interpreter_call.outputs"],
    },
    ("responses", "file_search"): {
        "tools": [{"type": "file_search", "vector_store_ids": ["s1"]}],
        "include": ["file_search_call.results"],
    },
    ("responses", "image_generation"): {"tools": [{"type": "image_generation"}]},
    ("responses", "computer"): {"tools": [{"type": "computer"}]},
    ("responses", "mcp"): {
        "tools": [
            {
                "type": "mcp",
                "server_label": "docs",
                "server_url": "https://mcp.example.org",
                "require_approval": "never",
                "authorization": "t0k3n-docs",
            }
        ]
    },
    ("messages", "web_search"): {
        "tools": [
            {
                "type": "web_search_20250305",
                "name": "web_search",
            }
        ]
    },
    ("messages", "code_interpreter"): {
        "tools": [{"type": "code_execution_20250825", "name": "code_execution"}]
    },
    ("messages", "computer"): {
        "tools": [
            {
                "type": "computer_20251124",
                "name": "computer",
                "display_width_px": 640,
                "display_height_px": 480,
            }
        ]
    },
    ("messages", "mcp"): {
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "docs"}],
        "mcp_servers": [
            {
                "type": "url",
                "url": "https://mcp.example.org",
                "name": "docs",
                "authorization_token": "t0k3n-docs",
            }
        ],
    },
    ("generate", "web_search"): {"tools": [{"googleSearch": {}}]},
    ("generate", "code_interpreter"): {"tools": [{"codeExecution": {}}]},
    ("generate", "file_search"): {"tools": [{"fileSearch": {"fileSearchStoreNames": ["s1"]}}]},
    ("generate", "image_generation"): {
        "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}
    },
    ("generate", "computer"): {"tools": [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}]},
    ("generate", "mcp"): {
        "tools": [
            {
                "mcpServers": [
                    {
                        "name": "docs",
                        "streamableHttpTransport": {
                            "url": "https://mcp.example.org",
                            "headers": {"Authorization": "Bearer t0k3n-docs"},
                        },
                    }
                ]
            }
        ]
    },
}
"""The part of a request for each tool; a tool that is not here, the provider does not have."""


def spelt(value: Any) -> Any:
    """Return a body with the names that Google's API has; it takes its SDK's, too."""
    if isinstance(value, list):
        return [spelt(each) for each in value]
    if isinstance(value, dict) and "functionDeclarations" not in value and "type" not in value:
        return {camel(name): spelt(each) for name, each in value.items()}
    return value


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def agent_of(model: Any, *tools: Any, **settings: Any) -> SingleAgent[Any]:
    return SingleAgent(model, tools=list(tools), **settings)


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("dialect", MODELS)
def test_a_tool_is_asked_for_as_the_provider_describes_it_or_refused(dialect: str, kind: str):
    with Stub(dialect) as server:
        server.say("An angle.")
        agent = agent_of(
            made(dialect, server, prompt_cache="off")
            if dialect == "messages"
            else made(dialect, server),
            TOOLS[kind],
        )
        if (dialect, kind) not in SENT:
            with pytest.raises(ToolError, match=f"AX984 m has no tool {kind}"):
                agent.invoke({"q": "?"})
            return
        assert agent.invoke({"q": "?"}) == {"message": "An angle."}
        [asked] = server.requests
    for name, expected in SENT[dialect, kind].items():
        found = asked.body[name]
        if isinstance(expected, dict):
            found = {key: found[key] for key in expected}
        assert spelt(found) == expected
    if dialect == "messages" and kind in ("computer", "mcp"):
        headers = {name.lower(): value for name, value in asked.headers.items()}
        assert {"computer": "computer-use-", "mcp": "mcp-client-"}[kind] in headers[
            "anthropic-beta"
        ]


def test_functions_stand_beside_it_and_its_settings_are_sent():
    def add(a: int) -> int:
        """Add."""
        return a

    search = ProviderTool(
        "web_search", blocked_domains=["example.org"], settings={"search_context_size": "low"}
    )
    for dialect, names in (("responses", ["add"]), ("messages", ["add"]), ("generate", ["add"])):
        with Stub(dialect) as server:
            server.say("An angle.")
            agent_of(made(dialect, server), add, ProviderTool("web_search")).invoke({"q": "?"})
            body = json.dumps(server.requests[0].body["tools"])
        assert all(name in body for name in names)
        assert "search" in body.lower()
    with Stub("responses") as server:
        server.say("An angle.")
        agent_of(made("responses", server), search).invoke({"q": "?"})
        [tool] = server.requests[0].body["tools"]
    assert tool["search_context_size"] == "low"
    assert tool["filters"] == {"blocked_domains": ["example.org"]}
    with Stub("messages") as server:
        server.say("An angle.")
        few = ProviderTool("web_search", allowed_domains=["example.org"], max_uses=2)
        agent_of(made("messages", server), few).invoke({"q": "?"})
        [tool] = server.requests[0].body["tools"]
    assert (tool["allowed_domains"], tool["max_uses"]) == (["example.org"], 2)
    with Stub("generate") as server, pytest.raises(ToolError, match="no domains to choose"):
        agent_of(made("generate", server), few).invoke({"q": "?"})


USED = {
    "responses": (
        {
            "id": "ws_1", "type": "web_search_call", "status": "completed",
            "action": {"type": "search", "query": "axil"},
        },
        {
            "id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": "1+1",
            "container_id": "c", "outputs": [{"type": "logs", "logs": "2"}],
        },
        {
            "id": "mcp_1", "type": "mcp_call", "server_label": "docs", "name": "look",
            "arguments": '{"q": 1}', "output": "found",
        },
    ),
    "messages": (
        {
            "type": "server_tool_use", "id": "s1", "name": "web_search",
            "input": {"query": "axil"},
        },
        {
            "type": "web_search_tool_result", "tool_use_id": "s1",
            "content": [{
                "type": "web_search_result", "url": "https://example.org", "title": "A page",
                "encrypted_content": "sealed",
            }],
        },
        {"type": "server_tool_use", "id": "s2", "name": "code_execution", "input": {"code": "1+1"}},
    ),
    "generate": (
        {"executableCode": {"language": "PYTHON", "code": "1+1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("dialect", USED)
def test_what_a_tool_did_is_shown_and_recorded_and_goes_back(dialect: str):
    chunks, replies = list[Any](), list[Reply]()

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            chunks.append(chunk)

    def keep(reply: Reply, messages: Any) -> None:
        replies.append(reply)

    def note() -> str:
        """Note."""
        return "noted"

    with Stub(dialect) as server:
        server.say(Act(text="Two.", own=USED[dialect], calls=(Call(name="note"),)), "Done.")
        graph = RootGraph("g")
        tools = [note, TOOLS["code_interpreter"], TOOLS["web_search"]]
        agent = Agent(made(dialect, server), tools=tools, on_reply=keep)
        graph.create_node(agent, name="a")
        graph.edge_from_entry("a")
        graph.edge_to_exit("a")
        asyncio.run(graph.build().run("?", journal=MemoryJournal(), observers=[Watch()]))
        back = server.requests[1].text
    shown = [chunk["part"] for chunk in chunks if chunk["kind"] == "part"]
    used = [part for part in shown if part["type"] == "provider_tool"]
    assert "code_interpreter" in [part["name"] for part in used]
    assert {"code": "1+1"} in [part.get("input") for part in used]
    assert "sealed" not in str(used)
    # what the journal holds of the step
    assert [part for part in replies[0].parts if part["type"] == "provider_tool"] == used
    assert Reply.read(json.loads(json.dumps(replies[0].plain()))) == replies[0]
    assert "1+1" in back


def test_pictures_that_code_made_reach_the_edges():
    url = "https://files.example.org/plot.png"
    item = {
        "id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": "plot()",
        "container_id": "c", "outputs": [{"type": "image", "url": url}],
    }  # fmt: skip
    with Stub("responses") as server:
        server.say(Act(own=(item,)))
        agent = agent_of(made("responses", server), TOOLS["code_interpreter"])
        assert agent.invoke({"q": "?"})["message"]["url"] == url


@pytest.mark.parametrize("dialect", ["chat", "generate"])
def test_a_recording_reaches_the_edges_with_its_words(dialect: str):
    with Stub(dialect) as server:
        server.say(Act(text="An angle.", audio="UklGRgAAAABXQVZF"))
        message = agent_of(made(dialect, server)).invoke({"q": "?"})["message"]
    assert [part["type"] for part in message] == ["text", "audio"]
    assert message[0]["text"] == "An angle."
    assert (message[1]["data"], message[1]["media_type"]) == ("UklGRgAAAABXQVZF", "audio/wav")


COMPUTER = {
    "id": "cu_1", "type": "computer_call", "call_id": "call_1", "status": "completed",
    "actions": [{"type": "screenshot"}],
    "pending_safety_checks": [{"id": "sc", "code": "odd", "message": "An odd page."}],
}  # fmt: skip


class Desk:
    """A person who answers."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.questions = answer, list[Any]()

    async def ask(self, question: Any) -> Any:
        self.questions.append(question)
        return self.answer


def run(model: Any, tool: ProviderTool, answer: Any) -> tuple[Any, Desk]:
    graph, desk = RootGraph("g"), Desk(answer)
    graph.create_node(Agent(model, tools=[tool]), name="a")
    graph.edge_from_entry("a")
    graph.edge_to_exit("a")
    result = asyncio.run(graph.build().run({"message": "?"}, channel=desk))
    return result.output, desk


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_computers_actions_are_carried_out_here_once_a_person_allows_them(is_allowed: bool):
    done = list[Any]()

    def act(actions: list[dict[str, Any]]) -> dict[str, Any]:
        """Act."""
        done.append(actions)
        return {"type": "image", "data": PNG, "media_type": "image/png"}

    with Stub("responses") as server:
        server.say(Act(own=(COMPUTER,)), "I saw it.")
        tool = ProviderTool("computer", act=act)
        output, desk = run(made("responses", server), tool, "allow" if is_allowed else "deny")
        sent = server.requests[1].body["input"]
    assert output == {"message": "I saw it."}
    assert "An odd page." in str(desk.questions[0])
    assert done == ([[{"type": "screenshot"}]] if is_allowed else [])
    [back] = [item for item in sent if item.get("type") == "computer_call_output"]
    assert (back["call_id"], back["output"]["type"]) == ("call_1", "computer_screenshot")
    assert (PNG in back["output"]["image_url"]) is is_allowed
    assert back["acknowledged_safety_checks"] == COMPUTER["pending_safety_checks"]


@pytest.mark.parametrize("is_allowed", [True, False])
def test_actions_of_geminis_computer_are_in_pixels_and_go_back_as_they_came(is_allowed: bool):
    done = list[Any]()

    def act(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Act."""
        done.extend(actions)
        page = {"type": "text", "text": "https://example.org"}
        return [page, {"type": "image", "data": PNG, "media_type": "image/png"}]

    safety = {"decision": "require_confirmation", "explanation": "An odd page."}
    asked = {"x": 500, "y": 250, "safety_decision": safety}
    with Stub("generate") as server:
        server.say(Act(calls=(Call(name="click_at", arguments=asked),)), "I saw it.")
        tool = ProviderTool("computer", act=act, width=640, height=480)
        output, desk = run(made("generate", server), tool, "allow" if is_allowed else "deny")
        *_, called, answered = spelt(server.requests[1].body)["contents"]
    assert output == {"message": "I saw it."}
    assert "An odd page." in str(desk.questions[0])
    clicked = {"action": "click_at", "x": 320, "y": 120, "warnings": ["An odd page."]}
    assert done == ([clicked] if is_allowed else [])
    call, response = called["parts"][0]["functionCall"], answered["parts"][0]["functionResponse"]
    assert (call["name"], call["args"]["x"]) == ("click_at", 500)
    assert response["name"] == "click_at"
    if is_allowed:
        assert response["response"]["url"] == "https://example.org"
        assert "true" in response["response"].values()  # the acknowledgement
        assert response["parts"][0]["inlineData"]["data"] == PNG
    else:
        assert "was not allowed" in response["response"]["error"]
        assert "parts" not in response


def test_a_picture_of_the_screen_goes_back_in_the_result():
    with Stub("messages") as server:
        call = Call(name="computer", arguments={"action": "screenshot"}, id="c1")
        server.say(Act(calls=(call,)), "I saw it.")
        assert agent_of(made("messages", server), TOOLS["computer"]).invoke({"q": "?"}) == {
            "message": "I saw it."
        }
        last = server.requests[1].body["messages"][-1]["content"][0]
    assert (last["type"], last["tool_use_id"]) == ("tool_result", "c1")
    assert [part["type"] for part in last["content"]] == ["image"]


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_call_of_an_mcp_server_is_made_once_a_person_allows_it(is_allowed: bool):
    wanted = {
        "id": "mcpr_1", "type": "mcp_approval_request", "server_label": "docs", "name": "look",
        "arguments": '{"q": "axil"}',
    }  # fmt: skip
    tool = ProviderTool("mcp", name="docs", url="https://mcp.example.org")
    with Stub("responses") as server:
        server.say(Act(own=(wanted,)), "Found.")
        output, desk = run(made("responses", server), tool, "allow" if is_allowed else "deny")
        sent = server.requests[1].body["input"]
    assert output == {"message": "Found."}
    assert "axil" in str(desk.questions[0])
    assert sent[-1] == {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": is_allowed,
    }


@pytest.mark.parametrize("dialect", ["messages", "generate"])
def test_a_provider_without_approval_is_not_given_a_server_that_needs_it(dialect: str):
    tool = ProviderTool("mcp", name="docs", url="https://mcp.example.org")
    with Stub(dialect) as server, pytest.raises(ToolError, match="asks nobody"):
        agent_of(made(dialect, server), tool).invoke({"q": "?"})


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"kind": "web_search", "stores": ["a"]}, "web_search has no stores"),
        ({"kind": "file_search"}, "file_search needs stores"),
        ({"kind": "computer"}, "computer needs act"),
        ({"kind": "mcp", "name": "a", "url": "http://a.org"}, "https://"),
    ],
)
def test_settings_that_do_not_fit_the_tool_are_refused(settings: dict[str, Any], fault: str):
    kind = settings.pop("kind")
    with pytest.raises(ConfigError, match=fault):
        ProviderTool(kind, **settings)


FLOW = """
version: 1
graph:
  start: a
  nodes:
    - id: a
      type: agent
      config:
        model: {type: scripted, config: {rules: [{replies: ["Found."]}]}}
        tools: [{type: provider_tool, config: {kind: web_search, allowed_domains: [example.org]}}]
"""


def test_it_stands_in_a_file(tmp_path: Path):
    flow = tmp_path / "flow.yaml"
    flow.write_text(FLOW)
    assert load(flow).invoke("?").output == "Found."


def test_a_model_without_it_says_so_and_recordings_hold_no_token():
    class Plain:
        name = "plain"

        async def reply(self, request: Request, emit: Any, /) -> Any:
            raise AssertionError("it was asked")

    with pytest.raises(
        ToolError, match=r"plain has no tool web_search of its provider\. It has none"
    ):
        agent_of(Plain(), TOOLS["web_search"]).invoke({"q": "?"})
    model = Scripted(["Found."])
    agent_of(model, TOOLS["mcp"]).invoke({"q": "?"})
    plain = json.dumps(model.requests[0].plain())
    assert "mcp.example.org" in plain
    assert "t0k3n" not in plain

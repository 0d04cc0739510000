"""Laws of rights: each is asked for on every way to a run; prompts are hidden on all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from starlette.testclient import TestClient

from axil import Context, Question, RootGraph, Workflow
from axil_agent import Agent, Scripted
from axil_evals import Case, Dataset, Plan, WorkflowTarget, evaluate
from axil_journals import MemoryJournal
from axil_serve import Access, Caller, RunService, app_of
from axil_serve.access import ALL_RIGHTS, Right, token_digest
from axil_serve.export import page_of

from .conftest import PROTOCOLS, Followed, as_caller, events_of, refund

HIDDEN = ("CANARY-INSTRUCTION", "CANARY-ARGUMENT", "CANARY-RESULT", "CANARY-THOUGHT")
"""Words inside of a node; its output is not among them."""


def secretive(first: Any = lambda inputs: inputs) -> Workflow:
    """Return an agent with a tool, with much that edges do not carry; and a node before it."""

    def look_up(word: str) -> str:
        """Look a word up."""
        return "CANARY-RESULT"

    call = {"name": "look_up", "arguments": {"word": "CANARY-ARGUMENT"}}
    replies: list[Any] = [{"text": "CANARY-THOUGHT", "tool_calls": [call]}, "a reply"]
    graph = RootGraph("secretive")
    graph.create_node(
        Agent,
        name="agent",
        model=Scripted(replies * 9),
        instructions="CANARY-INSTRUCTION",
        tools=[look_up],
        memories=["history"],
        prompt_template="{message}",
    )

    async def keep(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.local["seen"] = "CANARY-THOUGHT"
        return inputs

    graph.create_node(keep, name="keep")
    graph.create_node(first, name="first")
    graph.edge_from_entry("first", {"message": ""})
    graph.create_edge("first", "agent", {"message": ""})
    graph.create_edge("agent", "keep", {"text": ""})
    graph.edge_to_exit("keep", {"text": ""})
    return graph.build()


def token(name: str) -> str:
    return f"{name}-" * 8


def callers() -> Access:
    """Return a caller for each right it has beside ``look``, all of whom see all runs; and two that
    see their own.
    """
    some: list[tuple[str, tuple[Right, ...]]] = [
        ("runner", ("look", "run")),
        ("answerer", ("look", "answer")),
        ("looker", ("look",)),
        ("blind", ("run", "answer")),
        ("whole", ALL_RIGHTS),
    ]
    found = [
        (token_digest(token(n), n), Caller(name=n, rights=frozenset(rights), sees_all=True))
        for n, rights in some
    ]
    own = [(token_digest(token(n), n), Caller(name=n)) for n in ("own", "other")]
    return Access([*found, *own])


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def client(journal: MemoryJournal) -> Iterator[TestClient]:
    followed = Followed()  # what is not recorded is seen by who is there
    service = RunService(
        journal,
        {"secretive": secretive(followed), "refund": refund()},
        poll_seconds=0.01,
        prompts="whole",
    )
    followed.feed = service.feed
    app = app_of(service, callers(), protocols=PROTOCOLS)
    headers = as_caller(token("whole"))
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def started(
    client: TestClient, workflow: str, input: Any, name: str = "whole", session: str = ""
) -> str:
    body = {"workflow": workflow, "input": input, "session": session}
    return client.post("/v1/runs", json=body, headers=as_caller(token(name))).json()["run_id"]


def ended(client: TestClient, run_id: str) -> None:
    with client.stream("GET", f"/v1/runs/{run_id}/events") as stream:
        assert "event: end" in "".join(stream.iter_text())


def says(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def everything(client: TestClient, run_id: str, name: str) -> dict[str, str]:
    """Return what a caller gets of a run, on every way."""
    headers = as_caller(token(name))
    steps = client.get(f"/v1/runs/{run_id}/steps", headers=headers).json()["steps"]
    paths = ["", "/steps", "/plan", "/layout", "/events", *(f"/state?at={s['id']}" for s in steps)]
    found = {path: client.get(f"/v1/runs/{run_id}{path}", headers=headers).text for path in paths}
    found["list"] = client.get("/v1/runs", headers=headers).text
    found["response"] = client.get(f"/v1/responses/{run_id}", headers=headers).text
    found["items"] = client.get(f"/v1/responses/{run_id}/input_items", headers=headers).text
    for word in HIDDEN:
        answer = client.get("/v1/search", params={"q": word}, headers=headers)
        found[f"search {word}"] = str(answer.json()["found"])
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": run_id}}
    versioned = {**headers, "a2a-version": "1.0"}
    found["a2a"] = client.post("/a2a/secretive", json=rpc, headers=versioned).text
    return found


def test_prompts_and_replies_are_hidden_from_who_may_not_see_them(client):
    run_id = started(client, "secretive", {"message": "x"})
    ended(client, run_id)
    whole = everything(client, run_id, "whole")
    for word in HIDDEN:
        assert any(word in text for text in whole.values()), word
    for name in ("runner", "answerer", "looker"):
        for path, text in everything(client, run_id, name).items():
            assert not [word for word in HIDDEN if word in text], (name, path)
            assert path.startswith("search") or "error" not in text.partition("{")[0]
    looked = client.get(f"/v1/runs/{run_id}", headers=as_caller(token("looker"))).json()
    assert looked["output"] == {"text": "a reply"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"model": "secretive", "messages": says("x"), "stream": True}),
        ("/v1/responses", {"model": "secretive", "input": "x", "stream": True}),
        ("/ag-ui/secretive", {"messages": says("x")}),
    ],
)
def test_streams_of_protocols_have_the_output_and_no_more(client, path, body):
    texts = {
        name: client.post(path, json=body, headers=as_caller(token(name))).text
        for name in ("runner", "whole")
    }
    assert "a reply" in texts["runner"]
    assert not [word for word in HIDDEN if word in texts["runner"]]
    if path.startswith("/ag-ui"):
        assert "CANARY-ARGUMENT" in texts["whole"]


def test_an_export_for_a_caller_has_what_the_caller_sees():
    async def exported(*rights: Right) -> str:
        service = RunService(
            MemoryJournal(), {"s": secretive()}, poll_seconds=0.01, prompts="whole"
        )
        ada = Caller(name="ada", rights=frozenset(rights))
        async with service.running():
            run_id = await service.start(ada, "s", {"message": "x"})
            await service.engine.result(run_id)
            return await page_of(service, run_id, ada)

    assert "CANARY-THOUGHT" in asyncio.run(exported("look", "run", "prompts"))
    page = asyncio.run(exported("look", "run"))
    assert "a reply" in page
    assert not [word for word in HIDDEN if word in page]


def test_conversations_exports_and_comparisons_show_no_prompts(client, journal):
    run_id = started(client, "secretive", {"message": "x"}, session="s")
    ended(client, run_id)
    cases = tuple(Case(name=each, inputs={"message": each}, expected="") for each in "ab")
    target = WorkflowTarget(secretive())
    for each in ("first", "second"):
        own: dict[str, Any] = {"journal": journal, "run_id": each}
        asyncio.run(evaluate(Dataset(name="d", cases=cases), target, Plan(), **own))
    shown: dict[str, dict[str, str]] = {
        f"/v1/runs/{run_id}/export": {},
        "/v1/sessions/messages": {"session": "s", "owner": "whole"},
        "/v1/evaluations/compare": {"first": "first", "second": "second"},
    }
    for path, query in shown.items():
        for name in ("whole", "runner", "answerer", "looker"):
            answer = client.get(path, params=query, headers=as_caller(token(name)))
            assert answer.status_code == 200, (name, path)
            hidden = [word for word in HIDDEN if word in answer.text]
            assert hidden == (list(HIDDEN) if (name, query) == ("whole", {}) else []), (name, path)
            assert "a reply" in answer.text or "changes" in answer.text


def answered(client: TestClient, way: str, run_id: str, name: str) -> int:
    """Answer the question of a run on some way; return the status."""
    headers = as_caller(token(name))
    [question] = client.get(f"/v1/runs/{run_id}").json()["questions"]
    if way == "api":
        body: Any = {"answers": {question["id"]: "yes"}}
        return client.post(f"/v1/runs/{run_id}/answers", json=body, headers=headers).status_code
    if way == "chat":
        body = {"model": "refund", "messages": says("yes"), "metadata": {"run_id": run_id}}
        return client.post("/v1/chat/completions", json=body, headers=headers).status_code
    if way == "responses":
        body = {"model": "refund", "input": "yes", "previous_response_id": run_id}
        return client.post("/v1/responses", json=body, headers=headers).status_code
    if way == "ag-ui":
        interrupt = f"{run_id}:{question['id']}"
        resume = [{"interruptId": interrupt, "status": "resolved", "payload": "yes"}]
        return client.post("/ag-ui/refund", json={"resume": resume}, headers=headers).status_code
    message = {"messageId": "m", "role": "ROLE_USER", "taskId": run_id, "parts": [{"text": "yes"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    versioned = {**headers, "a2a-version": "1.0"}
    return client.post("/a2a/refund", json=body, headers=versioned).status_code


@pytest.mark.parametrize("way", ["api", "chat", "responses", "ag-ui", "a2a"])
def test_a_question_is_answered_by_who_may_answer(client, way):
    run_id = started(client, "refund", {"amount": 1})
    while not client.get(f"/v1/runs/{run_id}").json()["questions"]:
        pass
    for name in ("runner", "looker"):
        assert answered(client, way, run_id, name) == 403, name
    assert client.get(f"/v1/runs/{run_id}").json()["questions"]
    assert answered(client, way, run_id, "answerer") in (200, 202)
    ended(client, run_id)
    assert client.get(f"/v1/runs/{run_id}").json()["output"] == {"decision": "1: yes"}


def test_who_may_not_look_reads_nothing_and_who_may_not_run_changes_nothing(client):
    run_id = started(client, "refund", {"amount": 1})
    blind, looker = as_caller(token("blind")), as_caller(token("looker"))
    reads = [
        "/v1/workflows", "/v1/runs", "/v1/questions", "/v1/sessions", "/v1/search?q=x", "/v1/files",
        "/v1/models", f"/v1/responses/{run_id}", "/v1/audit", "/v1/conversations/c",
        "/a2a/refund/.well-known/agent-card.json",
        "/v1/sessions/messages?session=s", "/v1/evaluations/compare?first=r",
        *(f"/v1/runs/{run_id}{path}" for path in
          ("", "/steps", "/plan", "/layout", "/events", "/state?at=1-a", "/files", "/files/x",
           "/export")),
    ]  # fmt: skip
    for path in reads:
        assert client.get(path, headers=blind).status_code == 403, path
    compared = client.post("/v1/evaluations/compare", json={}, headers=blind)
    assert compared.status_code == 403
    base = f"/v1/runs/{run_id}"
    writes: list[tuple[str, str, Any]] = [
        ("POST", "/v1/runs", {"workflow": "refund", "input": {"amount": 1}}),
        ("POST", f"{base}/cancel", {}),
        ("POST", f"{base}/resume", {}),
        ("POST", f"{base}/fork", {}),
        ("DELETE", base, None),
        ("POST", "/v1/files?name=a", {}),
        ("DELETE", "/v1/files/x", None),
        ("POST", "/v1/chat/completions", {"model": "refund", "messages": says("x")}),
        ("POST", "/v1/responses", {"model": "refund", "input": "x"}),
        ("POST", f"/v1/responses/{run_id}/cancel", {}),
        ("DELETE", f"/v1/responses/{run_id}", None),
        ("POST", "/v1/conversations", {}),
        ("DELETE", "/v1/conversations/c", None),
        ("POST", "/ag-ui/refund", {"messages": says("x")}),
        ("POST", "/hooks/refund", {"amount": 1}),
        ("POST", "/v1/sessions/messages", {"session": "s", "workflow": "refund", "text": "x"}),
    ]
    for method, path, body in writes:
        answer = client.request(method, path, json=body, headers=looker)
        assert answer.status_code == 403, (method, path)


def test_an_own_only_looker_meets_runs_of_others_on_no_way(client):
    run_id = started(client, "secretive", {"message": "find me"}, "own")
    ended(client, run_id)
    other = as_caller(token("other"))
    for path in (
        "/v1/runs",
        "/v1/sessions",
        "/v1/questions",
        "/v1/search?q=find",
        "/v1/search?q=a",
    ):
        answer = client.get(path, headers=other)
        assert run_id not in answer.text, path
        assert (
            run_id in client.get(path, headers=as_caller(token("own"))).text or "runs" not in path
        )
    for path in ("", "/steps", "/plan", "/events", "/files"):
        assert client.get(f"/v1/runs/{run_id}{path}", headers=other).status_code == 404
    assert client.post(f"/v1/runs/{run_id}/fork", json={}, headers=other).status_code == 404
    assert client.get(f"/v1/responses/{run_id}", headers=other).status_code == 404
    body = {"model": "secretive", "input": "x", "previous_response_id": run_id}
    assert client.post("/v1/responses", json=body, headers=other).status_code == 404
    events = events_of(client.get(f"/v1/runs/{run_id}/events").text)
    assert json.loads(events[0][2])["output"] == {"message": "find me"}


def test_a_question_may_be_answered_without_seeing_prompts():
    question = Question(text="Send?", kind="approval")

    async def send(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"sent": await ctx.ask(question)}

    graph = RootGraph("sending")
    graph.create_node(send, name="send")
    graph.edge_from_entry("send", {"x": ""})
    graph.edge_to_exit("send", {"sent": ""})

    async def asked() -> Any:
        service = RunService(MemoryJournal(), {"sending": graph.build()}, poll_seconds=0.01)
        ada = Caller(name="ada", rights=frozenset(["look", "run", "answer"]))
        async with service.running():
            run_id = await service.start(ada, "sending", {"x": 1})
            async for event in service.stream(ada, run_id):
                if event.kind == "step" and event.data["kind"] == "asked":
                    assert event.data["question"]["text"] == "Send?"
                    await service.answer(ada, run_id, {event.data["question"]["id"]: True})
            return service.look(ada, run_id)["output"]

    assert asyncio.run(asked()) == {"sent": True}


def test_the_arguments_of_a_call_are_seen_by_who_answers_and_not_by_who_lists():
    def pay(amount: int, to: str) -> str:
        """Pay money."""
        return f"paid {amount}"

    pay.needs_approval = True  # pyright: ignore[reportFunctionMemberAccess]
    call = {"name": "pay", "arguments": {"amount": 40, "to": "CANARY-ARGUMENT"}}
    graph = RootGraph("paying")
    model = Scripted([{"tool_calls": [call]}, "done"])
    graph.create_node(Agent, name="payer", model=model, tools=[pay])
    graph.edge_from_entry("payer", {"message": ""})
    graph.edge_to_exit("payer", {"text": ""})
    service = RunService(MemoryJournal(), {"paying": graph.build()}, poll_seconds=0.01)
    app = app_of(service, callers(), protocols=PROTOCOLS)
    looker = Caller(name="looker", rights=frozenset(["look"]), sees_all=True)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        whole, lists, answers = (as_caller(token(n)) for n in ("whole", "looker", "answerer"))
        body = {"workflow": "paying", "input": {"message": "x"}}
        run_id = client.post("/v1/runs", json=body, headers=whole).json()["run_id"]
        run = f"/v1/runs/{run_id}"
        while not (asked := client.get(run, headers=whole).json()["questions"]):
            pass

        async def followed() -> list[object]:  # some test clients read a stream to its end
            found: list[object] = []
            async with aclosing(service.stream(looker, run_id)) as events:
                async for event in events:
                    found.append(event.data)
                    if event.kind == "step" and event.data["kind"] == "asked":
                        break
            return found

        def seen(headers: dict[str, str]) -> str:
            paths = [
                run,
                f"{run}/steps",
                f"{run}/export",
                "/v1/questions",
                f"/v1/responses/{run_id}",
            ]
            assert client.portal is not None
            events = json.dumps(client.portal.call(followed))
            found = client.get("/v1/search?q=CANARY", headers=headers).json()["found"]
            texts = [client.get(path, headers=headers).text for path in paths]
            return "\n".join([*texts, events, str(found)])

        assert "CANARY-ARGUMENT" not in seen(lists)
        assert 'May the tool \\"pay\\" be called?' in seen(lists)
        own = client.get("/v1/questions", headers=answers).json()["questions"][0]["question"]
        assert own["data"]["arguments"] == call["arguments"]
        assert "CANARY-ARGUMENT" in own["text"]
        edit = {"answer": "edit", "arguments": {"amount": 3, "to": "CANARY-CHANGED"}}
        path = f"{run}/answers"
        given = {"answers": {asked[0]["id"]: edit}}
        assert client.post(path, json=given, headers=lists).status_code == 403
        assert client.post(path, json=given, headers=answers).status_code == 202
        with client.stream("GET", f"{run}/events", headers=whole) as events:
            assert "event: end" in "".join(events.iter_text())
        assert "CANARY" not in seen(lists)
        assert "CANARY-CHANGED" in client.get(f"{run}/steps", headers=answers).text

"""Laws of the API: runs over HTTP, streams, questions, forks, and a second server."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing, closing
from typing import Any

import pytest

from axil import Activation, ConfigError, Context, RootGraph
from axil.plugin import JournalError
from axil_journals import Entry, MemoryJournal
from axil_serve import Caller, RunService
from axil_serve.api import Api
from axil_serve.conversation import stopped
from axil_serve.events import SILENCE
from axil_serve.feed import MOST_CHUNKS, Feed
from axil_serve.search import search
from axil_serve.streams import StreamEvent
from axil_sqlite import SqliteJournal

from .conftest import ADA, ALL, BEN, as_caller, events_of, greeting, refund, served, serving

ADA_HERSELF = Caller(name="ada")


def started(client, **body):
    answer = client.post("/v1/runs", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["run_id"]


def ended(client, run_id):
    """Follow a run to its end; return it."""
    client.get(f"/v1/runs/{run_id}/events")
    return client.get(f"/v1/runs/{run_id}").json()


def asked(client, run_id, *before):
    """Return a run when it asks; ``before``: statuses that it had before it was resumed."""
    while not (run := client.get(f"/v1/runs/{run_id}").json())["questions"]:
        assert run["status"] in ("queued", "running", "open", "paused", *before), run
    return run


def test_a_run_is_started_followed_and_looked_at(client):
    run_id = started(client, workflow="greeting", input={"name": "ada"})
    run = ended(client, run_id)
    assert (run["status"], run["output"]) == ("done", {"text": "Hello Ada"})
    assert [node["path"] for node in run["nodes"]] == [["look_up"], ["greet"]]
    [listed] = client.get("/v1/runs?status=done").json()["runs"]
    assert listed["run_id"] == run_id
    assert listed["workflow"] == "greeting"
    assert client.get("/v1/runs?status=failed").json()["runs"] == []


def test_a_stream_is_resumed_behind_the_last_event_from_the_journal(client):
    run_id = started(client, workflow="greeting", input={"name": "ada"})
    ended(client, run_id)
    path = f"/v1/runs/{run_id}/events"
    whole = [each for each in events_of(client.get(path).text) if each[0] == "step"]
    kinds = [json.loads(data)["kind"] for _, _, data in whole]
    assert kinds[0] == "run"
    assert kinds[-1] == "ended"
    behind = client.get(path, headers={"last-event-id": whole[1][1]}).text
    assert [each for each in events_of(behind) if each[0] == "step"] == whole[2:]
    lost = events_of(client.get(path, headers={"last-event-id": "7-gone"}).text)
    assert lost[0][0] == "reset"
    assert lost[1:-1] == whole


@pytest.mark.parametrize("number", ["²", "9" * 5000, "-1", ""])
def test_a_stream_behind_an_event_that_has_no_number_begins_anew(client, number):
    run_id = started(client, workflow="greeting", input={"name": "ada"})
    ended(client, run_id)
    events = client.get(f"/v1/runs/{run_id}/events", params={"after": f"{number}-x"}).text
    assert [kind for kind, _, _ in events_of(events)][:2] == ["reset", "step"]


def test_half_a_character_is_answered_as_a_question_mark(client):
    def post(**body: Any) -> Any:
        headers = {"content-type": "application/json"}
        return client.post("/v1/runs", content=json.dumps(body), headers=headers)

    for body in ({"workflow": "\ud83d"}, {"workflow": "greeting", "session": "\ud83d"}):
        assert post(**body).json()["error"]["id"] == "AX966"
    assert '"?"' in post(**{"\ud83d": 1}).json()["error"]["message"]
    given = {"name": "\ud83d", "\ud83d": "Ü"}
    run_id = post(workflow="greeting", input=given, metadata=given).json()["run_id"]
    run = ended(client, run_id)
    assert run["input"] == {"name": "?", "?": "Ü"}
    assert (run["metadata"], run["output"]) == (run["input"], {"text": "Hello ?"})
    assert client.get("/v1/runs").status_code == 200
    assert client.get(f"/v1/runs/{run_id}/steps").status_code == 200


@pytest.mark.parametrize("fault", ["AX511", "AX503"])
def test_a_run_that_cannot_be_read_is_left_out_where_many_are_looked_through(fault, monkeypatch):
    async def body() -> None:
        service = RunService(MemoryJournal(), {"refund": refund()}, poll_seconds=0.01)
        async with service.running():
            kept, gone = [await service.start(ADA_HERSELF, "refund", {"amount": 5}) for _ in "ab"]
            for run_id in (kept, gone):
                await stopped(service, ADA_HERSELF, run_id)
            entries = service.journal.entries

            def read(run_id: str) -> Any:
                if run_id == gone and fault == "AX511":
                    raise JournalError("it is damaged.", id=fault)
                return [] if run_id == gone else entries(run_id)

            monkeypatch.setattr(service.journal, "entries", read)
            asked = service.questions(ADA_HERSELF)
            found = search(service, ADA_HERSELF, "refund 5")["found"]
            assert [each["run_id"] for each in asked] == [kept]
            assert [each["run_id"] for each in found] == [kept]

    asyncio.run(body())


def test_an_answer_resumes_a_run_that_asks(client):
    run_id = started(client, workflow="refund", input={"amount": 5})
    [question] = asked(client, run_id)["questions"]
    assert question["text"] == "Refund 5?"
    wrong = client.post(f"/v1/runs/{run_id}/answers", json={"answers": {"other": "yes"}})
    assert (wrong.status_code, wrong.json()["error"]["id"]) == (409, "AX541")
    right = client.post(f"/v1/runs/{run_id}/answers", json={"answers": {question["id"]: "yes"}})
    assert right.status_code == 202
    assert ended(client, run_id)["output"] == {"decision": "5: yes"}


def test_a_message_of_an_error_does_not_repeat_its_id(client):
    stray = {"authorization": "Bearer no"}
    for answer in (
        client.get("/v1/runs/none"),
        client.get("/v1/nothing"),
        client.get("/v1/runs", headers=stray),
        client.post("/v1/runs", json={"workflow": "none"}),
        client.post("/v1/runs", json={"workflow": "greeting", "nothing": 1}),
        client.post("/v1/chat/completions", json={"model": "none", "messages": []}),
    ):
        error = answer.json()["error"]
        assert re.match(r"AX\d{3}$", error["id"]), error
        assert not re.match(r"AX\d{3}", error["message"]), error


def test_the_error_of_a_paused_run_says_how_to_answer_it_here(client):
    run_id = started(client, workflow="refund", input={"amount": 5})
    while (run := asked(client, run_id))["status"] != "paused":
        pass
    way = f"/v1/runs/{run_id}/answers"
    assert run["error"] == f"AX404 1 open question(s): Refund 5? Answer with POST {way}."
    [end] = [e for e in client.get(f"/v1/runs/{run_id}/steps").json()["steps"] if e.get("error")]
    assert end["error"] == "AX404 1 open question(s): Refund 5?"
    given = {run["questions"][0]["id"]: "yes"}
    assert client.post(way, json={"answers": given}).status_code == 202
    assert ended(client, run_id)["error"] == ""


def test_a_cancelled_run_is_resumed(client):
    run_id = started(client, workflow="refund", input={"amount": 5})
    asked(client, run_id)
    assert client.post(f"/v1/runs/{run_id}/cancel").status_code == 202
    assert ended(client, run_id)["status"] == "cancelled"
    assert client.post(f"/v1/runs/{run_id}/resume").status_code == 202
    assert asked(client, run_id, "cancelled")["status"] in ("paused", "running")


def test_a_parked_run_is_listed_shown_with_its_reason_and_resumed(client, journal):
    run_id = started(client, workflow="refund", input={"amount": 5})
    asked(client, run_id)
    assert client.post(f"/v1/runs/{run_id}/cancel").status_code == 202
    assert ended(client, run_id)["status"] == "cancelled"
    writer = journal.open(run_id)  # as an engine does after too many deaths of its process
    writer.append(Entry("ended", data={"status": "parked", "error": "AX543 it died"}))
    writer.close()
    shown = client.get(f"/v1/runs/{run_id}").json()
    assert (shown["status"], shown["error"]) == ("parked", "AX543 it died")
    listed = client.get("/v1/runs", params={"status": "parked"}).json()["runs"]
    assert [run["run_id"] for run in listed] == [run_id]
    assert client.post(f"/v1/runs/{run_id}/resume").status_code == 202
    assert asked(client, run_id, "parked")["status"] in ("paused", "running")


def test_a_fork_continues_from_a_step_with_an_edited_output(client):
    run_id = started(client, workflow="greeting", input={"name": "ada"})
    ended(client, run_id)
    steps = client.get(f"/v1/runs/{run_id}/steps").json()["steps"]
    [done] = [step for step in steps if step["kind"] == "done" and step["node"] == "look_up"]
    body = {"at": done["id"], "output": {"name": "Grace"}}
    forked = client.post(f"/v1/runs/{run_id}/fork", json=body).json()["run_id"]
    run = ended(client, forked)
    assert (run["output"], run["forked_from"]) == ({"text": "Hello Grace"}, run_id)
    moment = client.get(f"/v1/runs/{run_id}/state", params={"at": done["id"]}).json()["moment"]
    assert [due["activation"] for due in moment["due"]] == ["greet"]


def test_the_same_key_starts_one_run_for_each_caller(client):
    body = {"workflow": "greeting", "input": {"name": "ada"}}
    runs = [
        client.post("/v1/runs", json=body, headers={"idempotency-key": "k", **more}).json()
        for more in ({}, {}, as_caller(BEN))
    ]
    assert runs[0] == runs[1] != runs[2]


def test_sessions_of_callers_are_apart(client, journal):
    for headers in ({}, as_caller(BEN)):
        body = {"workflow": "greeting", "input": {"name": "x"}, "session": "s"}
        run_id = client.post("/v1/runs", json=body, headers=headers).json()["run_id"]
        client.get(f"/v1/runs/{run_id}/events", headers=headers)
    assert len(journal.thread("ada/s")) == len(journal.thread("ben/s")) == 1
    assert [run["session"] for run in client.get("/v1/runs?session=s").json()["runs"]] == ["s"]


def test_sessions_are_listed_with_their_last_run_to_the_caller_of_its_runs(client):
    def started_in(session, headers):
        body = {"workflow": "greeting", "input": {"name": "x"}, "session": session}
        run_id = client.post("/v1/runs", json=body, headers=headers).json()["run_id"]
        client.get(f"/v1/runs/{run_id}/events", headers=headers)
        return run_id

    def listed(token):
        sessions = client.get("/v1/sessions", headers=as_caller(token)).json()["sessions"]
        return [(each["session"], each["runs"], each["last"]["run_id"]) for each in sessions]

    ada, ben = as_caller(ADA), as_caller(BEN)
    ids = [started_in(*each) for each in (("s", ada), ("t", ada), ("s", ada), ("s", ben))]
    ended(client, started(client, workflow="greeting", input={"name": "of no session"}))
    assert listed(ADA) == [("s", 2, ids[2]), ("t", 1, ids[1])]
    assert listed(BEN) == [("s", 1, ids[3])]
    client.delete(f"/v1/runs/{ids[2]}")
    assert listed(ADA) == [("t", 1, ids[1]), ("s", 1, ids[0])]


def test_the_plan_has_levels_and_edges(client):
    run_id = started(client, workflow="greeting", input={"name": "ada"})
    plan = client.get(f"/v1/runs/{run_id}/plan").json()["plan"]
    assert [(node["name"], node["level"]) for node in plan["nodes"]] == [
        ("look_up", 0),
        ("greet", 1),
    ]
    assert [edge["name"] for edge in plan["edges"]][1:2] == ["look_up->greet"]
    layout = client.get(f"/v1/runs/{run_id}/plan").json()["layout"]
    assert client.get(f"/v1/runs/{run_id}/layout").json() == {"layout": layout}
    boxes = {box["path"][-1]: box["y"] for box in layout["boxes"]}
    assert boxes["@entry"] < boxes["look_up"] < boxes["greet"] < boxes["@exit"]
    assert [line["name"] for line in layout["lines"]] == [each["name"] for each in plan["edges"]]
    for bad in ("{", '"a"', '["a"]', "[[1]]"):
        answer = client.get(f"/v1/runs/{run_id}/layout", params={"open": bad})
        assert (answer.status_code, answer.json()["error"]["id"]) == (400, "AX966")


def test_wrong_requests_say_what_is_wrong(client):
    cases = [
        ({"workflow": "nothing"}, 404, "AX965"),
        ({"workflow": "greeting", "input": 5}, 422, "AX120"),
        ({"workflow": "greeting", "other": 5}, 400, "AX966"),
        ({"workflow": 5}, 400, "AX966"),
    ]
    for body, status, id in cases:
        answer = client.post("/v1/runs", json=body)
        assert (answer.status_code, answer.json()["error"]["id"]) == (status, id), body
    form = client.post("/v1/runs", content="{}", headers={"content-type": "text/plain"})
    assert form.status_code == 400
    assert client.get("/v1/runs/none/state?at=1-a").status_code == 404


def test_a_second_server_on_the_journal_takes_over():
    journal = MemoryJournal()
    with served(journal) as first:
        run_id = started(first, workflow="refund", input={"amount": 7})
        [question] = asked(first, run_id)["questions"]
    with served(journal) as second:
        assert second.get(f"/v1/runs/{run_id}", headers=as_caller(BEN)).status_code == 404
        answers = {"answers": {question["id"]: "no"}}
        assert second.post(f"/v1/runs/{run_id}/answers", json=answers).status_code == 202
        assert ended(second, run_id)["output"] == {"decision": "7: no"}


def test_what_is_not_recorded_is_streamed_while_it_happens():
    async def followed():
        service = RunService(MemoryJournal(), {"greeting": greeting()}, loaded=0)
        ada, said = Caller(name="ada"), []
        async with service.running():
            run_id = await service.start(ada, "greeting", {"name": "ada"})
            async for event in service.stream(ada, run_id):
                if event.kind == "step" and event.data["kind"] == "run":
                    service.engine.max_loaded = 1  # the run begins when it is followed
                    await service.resume(ada, run_id)
                said.append(event.data["chunk"]["text"] if event.kind == "chunk" else event.kind)
        return said

    said = asyncio.run(followed())
    assert [each for each in said if each in ("Hello ", "Ada")] == ["Hello ", "Ada"]
    assert said[-1] == "step"


def test_runs_of_another_process_are_followed_by_reading_the_journal():
    async def followed():
        journal = MemoryJournal()
        ada = Caller(name="ada")
        one = RunService(journal, {"refund": refund()})
        other = RunService(journal, watch_only=True, poll_seconds=0.001)
        async with one.running():
            run_id = await one.start(ada, "refund", {"amount": 1})
            kinds = []
            async for event in other.stream(ada, run_id):
                if event.kind == "step":
                    kinds.append(event.data["kind"])
                    if event.data["kind"] == "asked":
                        await one.answer(ada, run_id, {event.data["question"]["id"]: "yes"})
        return kinds

    kinds = asyncio.run(followed())
    assert "answer" in kinds
    assert kinds[-1] == "ended"


def test_a_step_after_which_another_process_waits_long_is_followed_at_once(tmp_path, monkeypatch):
    """Though its journal writes the time of a run at work once a while."""
    monkeypatch.setattr("axil_sqlite.writer.FRESH", 600.0)

    async def followed():
        seen = {"run": asyncio.Event(), "first": asyncio.Event()}

        async def first(inputs):
            await seen["run"].wait()
            return inputs

        async def second(inputs):
            await seen["first"].wait()
            return inputs

        graph = RootGraph("long")
        graph.create_node(first, name="first")
        graph.create_node(second, name="second")
        graph.edge_from_entry("first", {"n": ""})
        graph.create_edge("first", "second", {"n": ""})
        graph.edge_to_exit("second", {"n": ""})
        with closing(SqliteJournal(tmp_path)) as one, closing(SqliteJournal(tmp_path)) as two:
            run = graph.build().start({"n": 1}, journal=one, run_id="long")
            other = RunService(two, watch_only=True, poll_seconds=0.001)
            boss = Caller(name="boss", sees_all=True)
            async with asyncio.timeout(60):
                ended = asyncio.ensure_future(run.result())
                while not two.infos(["long"]):  # noqa: ASYNC110 - there is no event for it
                    await asyncio.sleep(0.001)
                async for event in other.stream(boss, "long"):
                    if event.kind == "step":
                        seen.get(event.data["activation"] or event.data["kind"], seen["run"]).set()
                return (await ended).status

    assert asyncio.run(followed()) == "done"


def test_a_caller_that_sees_all_sees_runs_that_no_server_started(client, journal):
    greeting().invoke({"name": "x"}, journal=journal, run_id="mine")
    assert client.get("/v1/runs").json()["runs"] == []
    seen = client.get("/v1/runs", headers=as_caller(ALL)).json()["runs"]
    assert [run["run_id"] for run in seen] == ["mine"]


def test_a_search_gives_one_readable_hit_a_run(client):
    for name in ("ada", "ben"):
        ended(client, started(client, workflow="greeting", input={"name": name}))
    [hit] = client.get("/v1/search", params={"q": "hello ada"}).json()["found"]
    assert (hit["workflow"], hit["status"], hit["text"]) == ("greeting", "done", "Hello Ada")
    assert (hit["activation"], hit["steps"]) == ("greet", 2)


def test_a_list_says_what_runs_received_and_used_and_which_questions_wait(client):
    def waiting(**options):
        return client.get("/v1/questions", **options).json()["questions"]

    run_id = started(client, workflow="refund", input={"amount": 3})
    while not (found := waiting()):  # a question is there before its run has ended
        asked(client, run_id)
    assert (found[0]["run_id"], found[0]["question"]["text"]) == (run_id, "Refund 3?")
    assert waiting(headers=as_caller(BEN)) == []
    [listed] = client.get("/v1/runs").json()["runs"]
    assert (listed["input"], listed["cost"]) == ('{"amount": 3}', 0.0)
    answers = {found[0]["question"]["id"]: "yes"}
    client.post(f"/v1/runs/{run_id}/answers", json={"answers": answers})
    run = ended(client, run_id)
    assert waiting() == []
    [again] = client.get("/v1/runs").json()["runs"]
    assert again["seconds"] == run["seconds"] > listed["seconds"]


def test_a_late_follower_receives_what_is_at_work_and_what_it_has_shown():
    async def heard() -> list[tuple[str, str]]:
        feed, found = Feed(), []
        for node in ("over", "open"):
            who = Activation((), node, ())
            feed.firing_started(run_id="r", activation=who, kind="node")
            for _ in range(MOST_CHUNKS + 5):
                feed.chunk(run_id="r", activation=who, chunk="word")
        feed.appended("r", Entry("done", (), "over", (), {}))
        feed.stored("r")
        with feed.follow("r") as late:
            found = [(each.kind, each.data) for each in await late.take(1.0)]
        feed.closed("r")
        with feed.follow("r") as later:
            assert not later.waiting
        return found

    (kind, began), *shown = asyncio.run(heard())
    assert (kind, began["node"], began["lost"]) == ("started", "open", 5)
    assert [each["chunk"]["text"] for _, each in shown] == ["word"] * MOST_CHUNKS


def test_the_events_of_a_silent_run_say_each_second_that_the_connection_is_there():
    async def first_said() -> bytes:
        silence = StreamEvent(kind="", data=None)

        async def batches():
            while True:
                await asyncio.sleep(0.05)
                yield [silence]

        async with aclosing(Api(None)._frames(batches())) as frames:
            async with asyncio.timeout(60):
                return await anext(frames)

    assert asyncio.run(first_said()) == SILENCE


def test_a_resumed_run_is_followed_before_an_engine_takes_it():
    async def followed():
        service = RunService(MemoryJournal(), {"refund": refund()}, loaded=0, poll_seconds=0.001)
        ada, kinds = Caller(name="ada"), list[str]()
        async with service.running():
            run_id = await service.start(ada, "refund", {"amount": 1})
            await service.cancel(ada, run_id)
            await service.resume(ada, run_id)
            async for event in service.stream(ada, run_id):
                if event.kind == "step":
                    kinds.append(event.data["kind"])
                elif kinds[-1:] == ["ended"] and not service.engine.max_loaded:
                    service.engine.max_loaded = 1  # its end is shown, and the stream goes on
                    await service.resume(ada, run_id)
                if kinds[-1:] == ["asked"]:
                    break
        return kinds

    kinds = asyncio.run(followed())
    assert kinds[:2] == ["run", "ended"]
    assert kinds[-1] == "asked"


def _stranded(journal):
    """Keep runs that ask, of a workflow named "human"; return for each way how it is answered."""
    graph = RootGraph("human")

    async def ask(inputs, ctx: Context):
        return {"text": await ctx.ask("May this be sent?")}

    graph.create_node(ask, name="ask")
    graph.edge_from_entry("ask", {"message": ""})
    graph.edge_to_exit("ask", {"text": ""})
    said = {"messages": [{"id": "1", "role": "user", "content": "Send it."}]}
    with serving(journal, {"human": graph.build()}) as client:
        chat = client.post("/v1/chat/completions", json={"model": "human", **said}).json()["id"]
        reply = client.post("/v1/responses", json={"model": "human", "input": "x"}).json()["id"]
        front = {"threadId": "t", "runId": "r"}
        words = client.post("/ag-ui/human", json={**front, **said}).text
        [interrupt] = json.loads(events_of(words)[-1][2])["outcome"]["interrupts"]
        task = client.post("/a2a/human/", **_message("Send it.")).json()["result"]["task"]["id"]
    answer = {"model": "human", "messages": [{"role": "user", "content": "yes"}]}
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": "yes"}]
    named = {"metadata": {"run_id": chat}}
    return chat, {
        f"/v1/runs/{chat}/resume": {},
        "/v1/chat/completions": {"json": {**answer, **named}},
        "/v1/chat/completions?streamed": {"json": {**answer, **named, "stream": True}},
        "/v1/responses": {
            "json": {"model": "human", "input": "yes", "previous_response_id": reply}
        },
        "/ag-ui/human": {"json": {**front, "messages": [], "resume": resume}},
        "/a2a/human/": _message("yes", taskId=task),
    }


def _message(text, **more):
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}], **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    return {"json": body, "headers": {"A2A-Version": "1.0"}}


def test_a_run_whose_graph_is_not_served_here_is_refused_in_words_by_every_way(journal):
    run_id, ways = _stranded(journal)
    with serving(journal, {"human": greeting()}) as client:  # another graph of this name
        for path, request in ways.items():
            answer = client.post(path, **request)
            assert answer.status_code == (200 if "a2a" in path else 409), path
            assert "the run's workflow is not served here." in answer.text, path
        assert client.get(f"/v1/runs/{run_id}").json()["status"] == "paused"
        assert client.get(f"/v1/runs/{run_id}/plan").json()["plan"] is None
        [question] = client.get(f"/v1/runs/{run_id}").json()["questions"]
        answers = {"answers": {question["id"]: "yes"}}  # kept for a process that has the graph
        assert client.post(f"/v1/runs/{run_id}/answers", json=answers).status_code == 202


def test_an_option_that_there_is_not_is_refused_before_a_server_runs(journal):
    with pytest.raises(ConfigError, match=r'RunService takes no "poll_second".*"poll_seconds"'):
        RunService(journal, poll_second=1)
    with pytest.raises(ConfigError, match=r'RunService takes no "promts".*"prompts"'):
        RunService(journal, promts="whole")

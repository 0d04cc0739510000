"""Workflows of a few small nodes, and servers of them in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import BaseModel
from starlette.testclient import TestClient

from axil import Context, RootGraph, Workflow
from axil_agent import Agent, Scripted
from axil_journals import MemoryJournal
from axil_serve import Access, Caller, RunService, app_of
from axil_serve.a2a import A2a
from axil_serve.access import token_digest
from axil_serve.agui import AgUi
from axil_serve.chat import ChatCompletions
from axil_serve.feed import Feed, FeedEvent
from axil_serve.responses import Responses
from axil_serve.webhooks import Webhooks

ADA, BEN, EVE, ALL = "ada-" * 8, "ben-" * 8, "eve-" * 8, "all-" * 8


class Followed:
    """A node that waits until a caller follows the runs of the server; it passes its input on."""

    feed: Feed

    async def __call__(self, inputs: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(30):
            while not self.feed._followers:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0.001)
            for run_id in self.feed._followers:
                self.feed.publish(run_id, FeedEvent(kind="marked", data={}))
            while any(  # noqa: ASYNC110  # it is taken when all that was recorded is sent
                each.waiting for all_of_run in self.feed._followers.values() for each in all_of_run
            ):
                await asyncio.sleep(0.001)
        return inputs


class Score(BaseModel):
    """A typed output."""

    score: int
    why: str


PROTOCOLS = {
    "a2a": A2a(),
    "ag-ui": AgUi(),
    "openai": ChatCompletions(),
    "responses": Responses(),
    "webhooks": Webhooks(),
}


def greeting() -> Workflow:
    """Return a greeting in two steps, the second of which shows its words."""
    graph = RootGraph("greeting")

    def look_up(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"name": inputs["name"].title()}

    def greet(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        for word in ("Hello ", inputs["name"]):
            ctx.emit({"kind": "text", "text": word})
        return {"text": f"Hello {inputs['name']}"}

    graph.create_node(look_up, name="look_up")
    graph.create_node(greet, name="greet")
    graph.edge_from_entry("look_up", {"name": "whom"})
    graph.create_edge("look_up", "greet", {"name": "whom"})
    graph.edge_to_exit("greet", {"text": ""})
    return graph.build()


def refund() -> Workflow:
    """Return a refund that a person has to approve."""
    graph = RootGraph("refund")

    async def decide(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        answer = await ctx.ask(f"Refund {inputs['amount']}?")
        return {"decision": f"{inputs['amount']}: {answer}"}

    graph.create_node(decide, name="decide")
    graph.edge_from_entry("decide", {"amount": ""})
    graph.edge_to_exit("decide", {"decision": ""})
    return graph.build()


def triage(followed: Followed) -> Workflow:
    """Return an agent with a typed output, whose first reply does not fit."""
    graph = RootGraph("triage")
    graph.create_node(followed, name="followed")
    replies = ['Well: {"score": "high"}', '{"score": 3, "why": "so"}']
    graph.create_node(
        Agent,
        name="judge",
        model=Scripted(replies),
        output_type=Score,
        prompt_template="Judge {text}",
    )
    graph.edge_from_entry("followed", {"text": ""})
    graph.create_edge("followed", "judge", {"text": ""})
    graph.edge_to_exit("judge", {"score": "", "why": ""})
    return graph.build()


FITTING = [{}, {"score": 3}, {"score": 3, "why": "so"}]
"""The fields that front ends are shown of the reply of ``triage`` that fits."""


def broken_off(followed: Followed) -> Workflow:
    """Return a text whose first words do not count."""
    graph = RootGraph("broken")
    graph.create_node(followed, name="followed")

    def talk(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.emit({"kind": "text", "text": "An axil is"})
        ctx.emit({"kind": "reset", "chunks": 1})
        ctx.emit({"kind": "text", "text": "An angle."})
        return {"text": "An angle."}

    graph.create_node(talk, name="talk")
    graph.edge_from_entry("followed", {"name": ""})
    graph.create_edge("followed", "talk", {"name": ""})
    graph.edge_to_exit("talk", {"text": ""})
    return graph.build()


def access() -> Access:
    """Two callers with all rights, one that may only look, and one that sees all."""
    return Access(
        [
            (token_digest(ADA, "ada"), Caller(name="ada")),
            (token_digest(BEN, "ben"), Caller(name="ben")),
            (token_digest(EVE, "eve"), Caller(name="eve", rights=frozenset(["look"]))),
            (token_digest(ALL, "all"), Caller(name="all", sees_all=True)),
        ]
    )


@contextmanager
def served(journal: Any, **options: Any) -> Iterator[TestClient]:
    """Serve the workflows; the client has the token of Ada."""
    followed = Followed()
    workflows = {"greeting": greeting(), "refund": refund(), "triage": triage(followed)}
    with serving(journal, workflows, followed, **options) as client:
        yield client


@contextmanager
def serving(
    journal: Any, workflows: dict[str, Workflow], followed: Followed | None = None, **options: Any
) -> Iterator[TestClient]:
    """Serve these workflows; the client has the token of Ada."""
    service = RunService(journal, workflows, poll_seconds=0.01)
    if followed is not None:
        followed.feed = service.feed
    app = app_of(service, access(), protocols=PROTOCOLS, **options)
    headers = {"authorization": f"Bearer {ADA}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def client(journal: MemoryJournal) -> Iterator[TestClient]:
    with served(journal) as client:
        yield client


def as_caller(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def events_of(text: str) -> list[tuple[str, str, str]]:
    """Return the events of a stream: kind, id, data."""
    found: list[tuple[str, str, str]] = []
    for block in text.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines() if line[0] != ":")
        if "data" in fields:
            found.append((fields.get("event", ""), fields.get("id", ""), fields["data"]))
    return found

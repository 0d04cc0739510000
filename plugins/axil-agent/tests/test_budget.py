"""The budget of an agent's model calls is reserved before they are made, and counted once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axil import Limits, RootGraph
from axil_agent import Agent, SingleAgent
from axil_agent.converse import max_output_tokens, names_of, size_of
from axil_journals import MemoryJournal
from axil_models import (
    Estimator,
    Price,
    Pricing,
    Reply,
    Request,
    Structure,
    ToolCall,
    ToolSpec,
    Usage,
    file,
    image,
)


class Model:
    """Answers, and reports what is said it used."""

    name = "small"

    def __init__(self, *replies, together=0):
        """``together``: the number of requests that are answered at once."""
        self.replies, self.asked, self.at_work, self.most, self.together = (
            list(replies),
            0,
            0,
            0,
            together,
        )
        self.met = asyncio.Event()

    async def reply(self, request, emit):
        self.asked += 1
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        if self.at_work == self.together:
            self.met.set()
        await (self.met.wait() if self.together else asyncio.sleep(0))
        self.at_work -= 1
        return self.replies[min(self.asked, len(self.replies)) - 1]


def said(tokens=10, **more):
    return Reply(text="fine", usage=Usage(input_tokens=tokens, output_tokens=tokens), **more)


def fan(model, width, **settings):
    graph = RootGraph("fan")
    for n in range(width):
        graph.create_node(
            Agent,
            name=f"a{n}",
            model=model,
            formatters="twins",
            prompt_template="x" * 400,
            model_settings=settings,
        )
        graph.edge_from_entry(f"a{n}", {})
        graph.edge_to_exit(f"a{n}", ["message"])
    return graph.build()


def run(graph, **options):
    return asyncio.run(graph.start({}, **options).result())


def test_two_agents_that_pass_the_limit_only_together_do_not_both_ask():
    model = Model(said(300))
    result = run(fan(model, 2, max_tokens=500), limits=Limits(tokens=1000))
    assert (result.status, result.error.id, model.asked) == ("limited", "AX413", 1)
    assert sum(result.usage.tokens.values()) == 600


def test_agents_wait_for_what_others_leave_over():
    model = Model(said(10))
    result = run(fan(model, 5, max_tokens=500), limits=Limits(tokens=1000))
    assert (result.status, model.asked, model.most) == ("done", 5, 1)
    assert sum(result.usage.tokens.values()) == 100


def test_without_a_limit_no_call_waits():
    model = Model(said(10), together=5)
    assert asyncio.run(asyncio.wait_for(fan(model, 5).run({}), 60)).status == "done"
    assert model.most == 5


def test_money_is_counted_by_the_prices_of_the_run_and_the_model_that_answered():
    pricing = Pricing(
        models={
            "small": Price(input=1_000, output=10_000),
            "small-2026": Price(input=0, output=1_000_000),
        }
    )
    assert run(fan(Model(said(10)), 1), limits=Limits(pricing=pricing)).usage.cost == pytest.approx(
        0.11
    )
    assert (
        run(fan(Model(said(10, model="small-2026")), 1), limits=Limits(pricing=pricing)).usage.cost
        == 10
    )
    assert (
        run(
            fan(Model(said(10)), 1),
            limits=Limits(cost=0.01, pricing=pricing, estimate=Estimator(output_tokens=1)),
        ).status
        == "limited"
    )


@pytest.mark.parametrize(
    ("answered", "cost"),
    [
        ("dear", 1.0),
        ("dear-2026-05-01", 1.0),
        ("cheap-mini-2026", 0.5),
        ("somebody", 1.0),  # which of them it is, is not known: not less than it cost
        ("", 1.0),
    ],
)
def test_of_models_that_stand_in_the_one_that_answered_is_paid(answered, cost):
    class StandIns(Model):
        names = ("cheap", "cheap-mini", "dear")

    prices = {"cheap": 1_000, "cheap-mini": 500_000, "dear": 1_000_000}
    pricing = Pricing(models={name: Price(input=each, output=0) for name, each in prices.items()})
    reply = Reply(text="fine", usage=Usage(input_tokens=1), model=answered)
    result = run(fan(StandIns(reply), 1), limits=Limits(pricing=pricing))
    assert result.usage.cost == pytest.approx(cost)


def test_a_reply_that_was_recorded_is_counted_once():
    """The run pauses between two calls of one firing; what the first used was journaled with it."""
    question = Reply(
        tool_calls=(ToolCall(id="1", name="ask"),), usage=Usage(input_tokens=7, output_tokens=3)
    )
    model = Model(question, said(10))

    async def ask(ctx) -> str:
        """Ask a person."""
        return await ctx.ask("which?")

    graph = RootGraph("paused")
    graph.create_node(Agent, name="a", model=model, formatters="twins", tools=[ask])
    graph.edge_from_entry("a", {})
    graph.edge_to_exit("a", ["message"])
    graph.build()
    journal = MemoryJournal()
    first = run(graph, journal=journal, run_id="r")
    assert (first.status, sum(first.usage.tokens.values())) == ("paused", 10)
    again = run(graph, journal=journal, run_id="r", answers={first.questions[0].id: "this"})
    assert (again.status, model.asked) == ("done", 2)
    assert sum(again.usage.tokens.values()) == 30


def test_a_call_that_fails_leaves_no_reservation():
    class Broken(Model):
        async def reply(self, request, emit):
            raise ConnectionError

    graph = fan(Broken(), 1)

    async def main():
        started = graph.start({}, limits=Limits(tokens=5000))
        result = await started.result()
        return result, started.meter.ledger

    result, ledger = asyncio.run(main())
    assert (result.status, ledger.held, ledger.usage.tokens) == ("failed", 0, {})


def test_what_a_request_is_taken_to_need():
    tool = ToolSpec(name="add", description="Adds.", parameters={"type": "object"})
    request = Request(
        messages=[
            {"role": "user", "content": "12345"},
            {"role": "user", "content": [{"type": "text", "text": "6"}]},
        ],
        tools=[tool],
        settings={"max_tokens": 9},
        output=Structure(name="x", schema={"a": 1}),
    )
    assert size_of(request) == 5 + len('[{"type": "text", "text": "6"}]') + len("addAdds.") + len(
        '{"type": "object"}'
    ) + len('{"a": 1}')
    assert max_output_tokens(request) == 9
    assert max_output_tokens(Request(messages=[])) is None


def test_under_which_names_prices_know_a_model():
    class Several:
        names = ("a", "b")

    assert (names_of(Model()), names_of(Several()), names_of(object())) == (
        ("small",),
        ("a", "b"),
        (),
    )


def test_an_agent_outside_a_graph_is_not_limited():
    agent = SingleAgent(Model(said(10)), formatters="twins")
    assert agent.invoke({})["message"] == "fine"


def test_an_agent_without_memory_keeps_nothing_for_itself():
    journal = MemoryJournal()
    run(fan(Model(said(10)), 1), journal=journal, run_id="r")
    deltas = [entry.data["delta"] for entry in journal.entries("r") if entry.kind == "done"]
    assert deltas == [{}]


def test_a_large_image_counts_as_what_a_model_sees_of_it_and_a_file_as_it_is():
    def size(part: Any) -> int:
        return size_of(Request(messages=[{"role": "user", "content": [part]}]))

    small, large = (size(image(b"\x89PNG\r\n\x1a\n" + b"\0" * count)) for count in (300, 3_000_000))
    assert small < 600
    assert 12_000 < large < 12_200
    assert size(file(b"%PDF-" + b"\0" * 30_000)) > 40_000

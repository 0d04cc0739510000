"""Citations: the blocks that an answer names, of those that its model was shown."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel

from axil import NodeFailed, RootGraph
from axil_agent import Agent, ContextPolicy, Scripted, SingleAgent
from axil_agent.citations import citations_of
from axil_journals import MemoryJournal
from axil_models import ContextBlock, Reply, ToolCall

CITE = ContextPolicy(cite=True)
FERNS = ContextBlock(
    "Ferns drink every Friday.",
    "handbook.pdf#page=3",
    "0-25",
    score=2.0,
    title="handbook.pdf, page 3",
    metadata={"page": 3, "secret": "no place"},
)


class Library:
    """A retriever of two texts."""

    context_label = "LIBRARY"

    def get_blocks(self, query: Any, top_k: int = 8) -> list[ContextBlock]:
        return [FERNS, ContextBlock("Moss drinks daily.", "moss.md", score=1.0)]


CITED = {
    "type": "citation",
    "number": 1,
    "url": "handbook.pdf#page=3",
    "chunk_id": "0-25",
    "title": "handbook.pdf, page 3",
    "text": "Ferns drink every Friday.",
    "provider": "LIBRARY",
    "metadata": {"page": 3},
}


def test_an_answer_has_the_sources_that_it_names():
    model, shown = Scripted(["On Fridays [1]."]), list[Any]()
    agent = SingleAgent(model, retrievers=[Library()], context=CITE)
    answer = asyncio.run(agent.run({"question": "When?"}, on_chunk=shown.append))
    assert answer == {"message": "On Fridays [1].", "citations": [CITED]}
    prompt = model.requests[0].messages[-1]["content"]
    assert "[1] (LIBRARY) Ferns drink every Friday." in prompt
    assert "cite what you use by its number" in prompt
    assert {"kind": "part", "part": CITED} in shown


def test_without_the_policy_nothing_is_numbered():
    model = Scripted(["On Fridays [1]."])
    answer = SingleAgent(model, retrievers=[Library()]).invoke({"question": "When?"})
    assert answer == {"message": "On Fridays [1]."}
    assert "(LIBRARY) Ferns" in model.requests[0].messages[-1]["content"]
    assert "[1]" not in model.requests[0].messages[-1]["content"]


def test_numbers_count_in_texts_only_and_only_where_there_is_such_a_block():
    sources = [{"number": 1}, {"number": 2}]
    assert citations_of({"scores": [1, 2], "text": "none [7], [x], [0]"}, sources) == []
    assert citations_of({"a": ["see [2]"], "b": {"c": "[1, 2]"}}, sources) == sources[::-1]


class Advice(BaseModel):
    day: str
    why: str


def test_citations_go_along_edges_and_are_not_asked_of_the_model():
    first = Scripted([json.dumps({"day": "Friday", "why": "the handbook says so [1]"})])
    second = Scripted(["Thank you."])
    graph, journal = RootGraph("advice"), MemoryJournal()
    adviser = Agent(first, retrievers=[Library()], context=CITE, output_type=Advice)
    graph.create_node(adviser, name="adviser")
    graph.create_node(Agent(second), name="writer")
    graph.edge_from_entry("adviser", ["question"])
    graph.create_edge("adviser", "writer", ["day", "citations"])
    graph.edge_to_exit("adviser", ["citations"])
    graph.edge_to_exit("writer", ["message"])
    talk = graph.build()
    result = asyncio.run(talk.run({"question": "When?"}, journal=journal, run_id="r"))
    assert result.output["citations"] == [CITED]
    assert "citations" not in str(first.requests[0].messages) + str(first.requests[0].output)
    assert "handbook.pdf#page=3" in str(second.requests[0].messages)
    assert "handbook.pdf#page=3" in str(list(journal.entries("r")))


def test_a_resumed_run_cites_what_its_prompt_held():
    """The blocks are recorded with their numbers: nothing is retrieved again."""
    graph, journal = RootGraph("r"), MemoryJournal()
    model = Scripted(["[2] says so."])

    class Once(Library):
        asked = 0

        def get_blocks(self, query: Any, top_k: int = 8) -> list[ContextBlock]:
            self.asked += 1
            return super().get_blocks(query, top_k)

    library, stops = Once(), [True]

    async def fails(inputs: Any) -> Any:
        if stops.pop():
            raise ValueError("not today")
        return inputs

    agent = Agent(model, retrievers=[library], context=CITE)
    graph.create_node(agent, name="a")
    graph.create_node(fails, name="b")
    graph.edge_from_entry("a", ["question"])
    graph.create_edge("a", "b", ["message", "citations"])
    graph.edge_to_exit("b", ["message", "citations"])
    built = graph.build()
    with pytest.raises(NodeFailed, match="not today"):
        asyncio.run(built.run({"question": "?"}, journal=journal, run_id="r"))
    stops.append(False)
    second = asyncio.run(built.resume("r", journal=journal))
    assert [each["url"] for each in second.output["citations"]] == ["moss.md"]
    assert library.asked == 1


class Asked(Library):
    """A retriever that the model asks."""

    passive, active = False, True
    asked = 0

    def get_blocks(self, query: Any, top_k: int = 8) -> list[ContextBlock]:
        self.asked += 1
        return [ContextBlock(f"{query.query_text} {self.asked}.", f"{self.asked}.md")]


def looks(*queries: str) -> Reply:
    calls = [
        ToolCall(
            id=f"c{query}", name="retrieve_context", arguments={"source": "LIBRARY", "query": query}
        )
        for query in queries
    ]
    return Reply(tool_calls=tuple(calls))


class Played:
    """A model that gives these replies; at None it waits for ever."""

    name = "played"

    def __init__(self, *replies: Reply | None) -> None:
        self.replies, self.requests = list(replies), list[Any]()
        self.stuck = asyncio.Event()

    async def reply(self, request: Any, emit: Any, /) -> Reply:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if reply is None:
            self.stuck.set()
            await asyncio.Event().wait()
        assert reply is not None
        return reply


def test_blocks_that_the_model_asked_for_are_numbered_on_and_cited():
    passive, library = Library(), Asked()
    passive.context_label = "HANDBOOK"
    said = Reply(text="So it is [1] [4], and [5].")
    model = Played(looks("Ferns", "Moss"), looks("Oaks"), said)
    agent = SingleAgent(model, retrievers=[passive, library], context=CITE)
    answer = agent.invoke({"question": "When?"})
    told = [(each["number"], each["url"]) for each in answer["citations"]]
    assert told == [(1, "handbook.pdf#page=3"), (4, "2.md"), (5, "3.md")]
    results = [m["content"] for m in model.requests[2].messages if m["role"] == "tool"]
    assert "[3] (LIBRARY) Ferns 1." in results[0]
    assert "[4] (LIBRARY) Moss 2." in results[1]
    assert "[5] (LIBRARY) Oaks 3." in results[2]


def test_a_resumed_run_cites_what_the_model_asked_for_before():
    library, journal = Asked(), MemoryJournal()
    model = Played(looks("Ferns"), None, looks("Moss"), Reply(text="As [1] and [2] say."))
    graph = RootGraph("g")
    graph.create_node(Agent(model, retrievers=[library], context=CITE), name="a")
    graph.edge_from_entry("a", ["question"])
    graph.edge_to_exit("a", ["message", "citations"])
    built = graph.build()

    async def twice() -> Any:
        first = asyncio.create_task(built.run({"question": "?"}, journal=journal, run_id="r"))
        await model.stuck.wait()
        first.cancel()
        await asyncio.wait({first})
        return await built.resume("r", journal=journal)

    result = asyncio.run(twice())
    assert [each["url"] for each in result.output["citations"]] == ["1.md", "2.md"]
    assert library.asked == 2


@pytest.mark.parametrize(
    "given", ['{"sources": 5}', '{"sources": ["a"]}', '{"sources": [{"url": "a"}]}', "[" * 200_000]
)
def test_what_another_tool_of_its_name_gives_is_no_source(given):
    call = Reply(tool_calls=(ToolCall(id="c", name="retrieve_context", arguments={}),))

    def retrieve_context() -> str:
        return given

    class Model:
        async def reply(self, request: Any, emit: Any, /) -> Reply:
            return call if len(request.messages) == 2 else Reply(text="It says so [1].")

    one = SingleAgent(
        Model(), instructions="Cite.", tools=[retrieve_context], context=CITE, name="one"
    )
    assert one.invoke("?") == {"message": "It says so [1].", "citations": []}

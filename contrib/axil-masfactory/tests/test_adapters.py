"""Memories, retrievers, embedders, tools, models: what they give by MASFactory's names."""

from __future__ import annotations

from typing import Any

import pytest

import axil_models
from masfactory import (
    FileSystemRetriever,
    HybridEmbedder,
    SentenceTransformerEmbedder,
    SimpleEmbedder,
    SimpleKeywordRetriever,
    Unsupported,
    VectorMemory,
    VectorRetriever,
)
from masfactory.adapters.context.types import ContextQuery
from masfactory.adapters.mcp import MCP
from masfactory.adapters.model import Model, ModelResponseType
from masfactory.adapters.model.base import answer_of, reply_of, tool_specs
from masfactory.adapters.tool_adapter import ToolAdapter
from masfactory.integrations.memoryos import MemoryOSMemory, make_memoryos_mcp
from masfactory.integrations.ultrarag import UltraRAGRetriever, make_ultrarag_mcp

EMBED = SimpleEmbedder(vocab_size=512).get_embedding_function()


def texts(provider: Any, query: str, top_k: int = 8) -> list[str]:
    return [block.text for block in provider.get_blocks(ContextQuery(query), top_k=top_k)]


def test_a_vector_memory_gives_what_is_near_and_forgets_the_oldest():
    memory = VectorMemory(EMBED, query_threshold=0.1, memory_size=2)
    for key, value in (("a", "ferns grow in shade"), ("b", "cars need fuel"), ("c", "old ferns")):
        memory.insert(key, value)
    assert texts(memory, "ferns") == ["old ferns"]
    memory.update("c", "young ferns")
    memory.update("d", "ferns that nobody keeps")
    memory.insert("b", "cars need roads")
    assert texts(memory, "young ferns", 1) == texts(memory, "young ferns", -1) == ["young ferns"]
    assert texts(memory, "cars") == ["cars need roads"]
    memory.delete("c")
    assert texts(memory, "ferns") == []
    memory.reset()
    assert texts(memory, "cars") == []


def test_retrievers_give_the_documents_that_fit(tmp_path):
    documents = {"fern": "ferns grow in shade", "car": "cars need fuel"}
    by_words = SimpleKeywordRetriever(documents)
    assert texts(by_words, "fuel for cars") == ["cars need fuel", "ferns grow in shade"]
    assert texts(by_words, "fern", 1) == ["ferns grow in shade"]
    assert texts(by_words, " ") == []
    near = VectorRetriever(documents, EMBED, similarity_threshold=0.2)
    assert texts(near, "cars need fuel") == ["cars need fuel"]
    (tmp_path / "fern.txt").write_text("ferns grow in shade")
    (tmp_path / "skip.md").write_text("ferns grow in shade")
    files = FileSystemRetriever(tmp_path, EMBED, similarity_threshold=0.2)
    assert [b.uri for b in files.get_blocks(ContextQuery("ferns in shade"))] == ["fern.txt"]


def test_vectors_of_several_embedders_stand_side_by_side():
    double = HybridEmbedder([SimpleEmbedder(16), SimpleEmbedder(16)], [1.0, 2.0])
    vector = double.get_embedding_function()("fern")
    assert len(vector) == 32
    assert vector[16:] == [2 * each for each in vector[:16]]
    with pytest.raises(ValueError, match="found 1 weights, expected 2"):
        HybridEmbedder([SimpleEmbedder(16), SimpleEmbedder(16)], [1.0])


def test_an_embedder_that_axil_has_not_says_what_to_take():
    with pytest.raises(Unsupported, match=r"SentenceTransformerEmbedder.*OpenAI-compatible"):
        SentenceTransformerEmbedder()


def test_items_of_a_function_become_blocks():
    found = [{"body": "one", "where": "u1"}, {"body": "two", "where": "u2"}]
    provider = MCP(name="X", call=lambda query, k: found, text_key="body", uri_key="where")
    blocks = provider.get_blocks(ContextQuery("q"), top_k=1)
    assert [(block.text, block.uri) for block in blocks] == [("one", "u1")]
    with pytest.raises(ValueError, match='X: found an item without "text"'):
        MCP(name="X", call=lambda query, k: found).get_blocks(ContextQuery("q"))


def test_integrations_give_what_their_functions_find():
    def find(query: ContextQuery, top_k: int) -> list[dict[str, Any]]:
        return [{"text": f"hit {query.query_text}"}]

    kept: list[Any] = []
    memory = MemoryOSMemory(retrieve=find, insert_fn=lambda key, value: kept.append((key, value)))
    memory.insert("k", "v")
    memory.reset()
    assert kept == [("k", "v")]
    for provider in (
        memory,
        UltraRAGRetriever(retrieve=find),
        make_memoryos_mcp(call=find),
        make_ultrarag_mcp(call=find),
    ):
        assert texts(provider, "x") == ["hit x"]
    assert (memory.context_label, make_ultrarag_mcp(call=find).context_label) == (
        "MemoryOS",
        "UltraRAG",
    )


def test_a_tool_adapter_tells_of_functions_and_calls_them():
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    adapter = ToolAdapter([add])
    assert adapter.details[0]["name"] == "add"
    assert adapter.call("add", {"a": 1}) == 2
    with pytest.raises(KeyError, match='no tool "sub"; there are add'):
        adapter.call("sub", {})


def test_replies_of_either_kind_become_the_other():
    call = axil_models.ToolCall(id="1", name="add", arguments={"a": 1})
    reported = answer_of(axil_models.Reply(tool_calls=(call,)))
    assert reported["type"] is ModelResponseType.TOOL_CALL
    assert reply_of(reported).tool_calls == (call,)
    assert reply_of({"type": "content", "content": "x"}).text == "x"
    (spec,) = tool_specs([{"type": "function", "function": {"name": "f", "description": "d"}}])
    assert (spec.name, spec.description) == ("f", "d")


def test_a_model_counts_what_it_used():
    model = Model("m")
    model.token_tracker.accumulate(3, 4)
    assert model.token_tracker.total_usage == 7
    model.token_tracker.reset()
    assert model.token_tracker.total_usage == 0


def test_there_is_never_a_visualizer():
    from masfactory import visualizer

    assert not visualizer.is_available()
    assert visualizer.connect_bridge(timeout_s=1.0) is None

"""The model that comes with the dependency: what it finds, and that it asks nothing of anywhere."""

from __future__ import annotations

import logging
import socket
from importlib.util import find_spec
from typing import Any

import pytest

from axil import run_sync
from axil_context import StoreRetriever
from axil_models import ContextQuery
from axil_testing.kit import Kit
from axil_wordllama import WordLlamaEmbedder

if find_spec("wordllama") is None:
    pytest.skip("it has no wheel for Python 3.14", allow_module_level=True)


class TestEmbedder(Kit):
    kind = "embedders"
    component = WordLlamaEmbedder


def test_other_words_for_one_thing_are_near_without_a_connection(monkeypatch):
    def refused(*given: Any, **named: Any) -> Any:
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    before = logging.getLogger().level, list(logging.getLogger().handlers)

    async def go() -> list[str]:
        retriever = StoreRetriever(
            embedder=WordLlamaEmbedder(),
            documents=["The automobile needs fuel.", "The banana is yellow.", "Bears sleep."],
        )
        return [b.text for b in await retriever.get_blocks(ContextQuery("petrol for my car"), 1)]

    assert run_sync(go()) == ["The automobile needs fuel."]
    assert (logging.getLogger().level, logging.getLogger().handlers) == before


@pytest.mark.parametrize("length", [64, 256])
def test_vectors_are_as_long_as_1_and_the_same_each_time(length):
    one, other = WordLlamaEmbedder(dimensions=length), WordLlamaEmbedder(dimensions=length)
    texts = ["a red fox", "", "a lone \ud800 surrogate", "東京", "word " * 3000]
    vectors = run_sync(one.embed(texts))
    assert [len(vector) for vector in vectors] == [length] * 5
    assert sum(value * value for value in vectors[0]) == pytest.approx(1)
    assert not any(vectors[1])
    # beside other texts, too
    assert run_sync(other.embed(texts[:1]))[0] == pytest.approx(vectors[0], abs=1e-6)

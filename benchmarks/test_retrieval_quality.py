"""Tests of retrievers on the labelled set; a little less than was measured, so that a slip is seen.
``make bench`` prints the figures.
"""

from __future__ import annotations

import asyncio

import pytest

from . import retrieval

LEAST = {
    "keyword (BM25)": (0.93, 0.85),
    "vector (lexical embedder)": (0.85, 0.70),
    "hybrid of both (RRF)": (0.90, 0.82),
}


@pytest.mark.parametrize("name", LEAST)
def test_answers_are_among_the_first(name):
    recall, reciprocal = asyncio.run(retrieval.quality(retrieval.retrievers()[name]))
    assert (recall, reciprocal) >= LEAST[name]
    assert reciprocal >= LEAST[name][1]


def test_a_hybrid_finds_more_than_the_weaker_of_the_two():
    measured = {
        name: asyncio.run(retrieval.quality(each)) for name, each in retrieval.retrievers().items()
    }
    assert measured["hybrid of both (RRF)"] > measured["vector (lexical embedder)"]


def test_chroma_finds_what_an_exact_search_finds(tmp_path):
    pytest.importorskip("chromadb", reason="chromadb is not installed")
    from axil_chroma import ChromaRetriever

    async def measured() -> tuple[float, float]:
        chroma = ChromaRetriever(path=str(tmp_path / "c"), paths=[str(retrieval.HANDBOOK)])
        try:
            return await retrieval.quality(chroma)
        finally:
            await chroma.close()

    exact = asyncio.run(retrieval.quality(retrieval.retrievers()["vector (lexical embedder)"]))
    assert asyncio.run(measured()) == pytest.approx(exact, abs=0.03)


def test_every_label_names_a_section_that_there_is():
    from axil_context import Sources, chunked

    known = {
        f"{document.uri.rpartition('/')[2]}#{chunk.heading.rpartition(' > ')[2]}"
        for document in Sources(paths=[str(retrieval.HANDBOOK)]).read()
        for chunk in chunked(document.text)
    }
    assert {label for each in retrieval.QUESTIONS for label in each["relevant"]} <= known

"""Quality of retrievers on a small labelled set: the handbook beside this file, questions about it,
and which section answers each.

Recall@5: the share of questions whose section is among the first five blocks. MRR: the mean of 1 /
place of the section. The set is small and by one author: it shows that something has broken, not
how good a retriever is on other texts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axil_context import HybridRetriever, KeywordRetriever, VectorRetriever
from axil_models import ContextQuery, blocks_of

HANDBOOK = Path(__file__).with_name("handbook")
QUESTIONS = json.loads((HANDBOOK / "questions.json").read_text("utf-8"))


def retrievers() -> Mapping[str, Any]:
    """Return what is compared."""
    paths = [str(HANDBOOK)]
    keyword, vector = KeywordRetriever(paths=paths), VectorRetriever(paths=paths)
    return {
        "keyword (BM25)": keyword,
        "vector (lexical embedder)": vector,
        "hybrid of both (RRF)": HybridRetriever(providers=[keyword, vector]),
    }


def place(blocks: Any, relevant: list[str]) -> int | None:
    """At which place, from 1, the first relevant section is."""
    for rank, block in enumerate(blocks, 1):
        heading = str(block.metadata.get("heading", "")).rpartition(" > ")[2]
        if f"{Path(block.uri).name}#{heading}" in relevant:
            return rank
    return None


async def quality(retriever: Any, depth: int = 20) -> tuple[float, float]:
    """Recall@5 and MRR."""
    places = [
        place(await blocks_of(retriever, ContextQuery(each["question"]), depth), each["relevant"])
        for each in QUESTIONS
    ]
    recall = sum(rank is not None and rank <= 5 for rank in places) / len(places)
    return recall, sum(1 / rank for rank in places if rank) / len(places)


def table() -> str:
    """Return the figures, as Markdown."""
    rows = ["| retriever | recall@5 | MRR |", "|---|---:|---:|"]
    for name, retriever in retrievers().items():
        recall, reciprocal = asyncio.run(quality(retriever))
        rows.append(f"| {name} | {recall:.2f} | {reciprocal:.2f} |")
    sections = len(
        next(iter(retrievers().values())).get_blocks(ContextQuery("the of a is in and"), 1000)
    )
    return "\n".join(
        [*rows, "", f"{len(QUESTIONS)} questions about a handbook of {sections} sections."]
    )


if __name__ == "__main__":
    print(table())

"""Questions about a folder of texts: what keyword and vector search find is put into the prompt,
and says where it is from.

The model is a script, so this runs without a key; with one, give the agent model={"type": "openai",
"name": …}.

python examples/search_documents.py
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from axil import RootGraph
from axil_agent import Agent, ContextPolicy, Scripted
from axil_context import HybridRetriever
from axil_models import ContextQuery

TEXTS = str(Path(__file__).parent / "texts")
SCRIPT = {
    "rules": [
        {
            "match": {"user_contains": "(TEXTS) "},
            "replies": ['{"answer": "In the axil, the angle between a leaf and its stem."}'],
        }
    ],
    "default": '{"answer": "I do not know."}',
}


def questions(paths: list[str]) -> RootGraph:
    """Return an agent that is shown the three best blocks of the texts."""
    both = HybridRetriever(
        providers=[
            {"type": kind, "paths": paths, "chunk_chars": 400} for kind in ("keyword", "vector")
        ],
        context_label="TEXTS",
    )
    graph = RootGraph("questions")
    agent = graph.create_node(
        Agent(
            model=Scripted(SCRIPT),
            instructions="Answer from the context, and say so if it holds no answer.",
            prompt_template="{question}",
            retrievers=[both],
            context=ContextPolicy(per_provider=3, total=3),
        ),
        name="agent",
    )
    graph.edge_from_entry(agent, ["question"])
    graph.edge_to_exit(agent, {"answer": "one sentence"})
    return graph.build()


async def found(question: str) -> list[str]:
    """Return the places of the best blocks."""
    both = HybridRetriever(
        providers=[
            {"type": kind, "paths": [TEXTS], "chunk_chars": 400} for kind in ("keyword", "vector")
        ]
    )
    blocks = await both.get_blocks(ContextQuery(question), top_k=2)
    return [
        f"{Path(str(block.uri)).name} {block.chunk_id}  {' '.join(block.text.split())[:70]}…"
        for block in blocks
    ]


if __name__ == "__main__":
    question = "Where does a bud begin to grow?"
    for line in asyncio.run(found(question)):
        print(line)
    print(questions([TEXTS]).invoke({"question": question})[0]["answer"])

"""A run that waits for a person: it ends with the question as data, and is resumed later, from its
journal.

python examples/pause_and_resume.py
"""

from __future__ import annotations

import asyncio

from axil import Question, RootGraph
from axil_journals import MemoryJournal


def draft(inputs):
    return {"letter": f"Dear {inputs['name']}, we are sorry."}


async def approve(inputs, ctx):
    answer = await ctx.ask(
        Question(text=f"Send this? {inputs['letter']}", kind="choice", options=("yes", "no"))
    )
    return {"letter": inputs["letter"], "sent": answer == "yes"}


graph = RootGraph("letter")
graph.create_node(draft, name="draft")
graph.create_node(approve, name="approve")
graph.edge_from_entry("draft", ["name"])
graph.create_edge("draft", "approve", ["letter"])
graph.edge_to_exit("approve", ["letter", "sent"])
graph.build()


async def main() -> None:
    journal = MemoryJournal()  # axil-sqlite has one that outlives the process
    result = await graph.run({"name": "Ada"}, run_id="letter-1", journal=journal)
    (question,) = result.questions
    print(f"{result.status}: {question.node} asks: {question.text}")

    result = await graph.resume("letter-1", journal=journal, answers={question.id: "yes"})
    print(f"{result.status}: {result.output['letter']} Sent: {result.output['sent']}.")


if __name__ == "__main__":
    asyncio.run(main())

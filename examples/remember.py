"""Three kinds of memory at once: the conversation, what was said in earlier runs, and a board for
the agents of one run.

The models are scripts, so this runs without a key.

python examples/remember.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from axil import RootGraph
from axil_agent import Agent, HistoryMemory, Scripted, SingleAgent
from axil_context import Blackboard, FileMemory


class Team(BaseModel, extra="allow"):
    """A board that grows: notes of agents side by side are all there."""

    blackboard: Annotated[list[dict[str, Any]], "append"]


def talk(file: Path) -> None:
    """Hold two conversations, each with an agent of its own: the second knows the first."""
    for thread, question in (
        ("monday", "My fern is called Fred."),
        ("tuesday", "What is my fern called?"),
    ):
        model = Scripted(
            {
                "rules": [{"match": {"user_contains": "Fred"}, "replies": ["It is Fred."]}],
                "default": "You never told me.",
            }
        )
        memories = [HistoryMemory(max_tokens=1000), FileMemory(path=str(file))]
        agent = SingleAgent(model, output_keys=["answer"], memories=memories)
        print(f"{thread}: {agent.invoke({'question': question}, thread=thread)['answer']}")


def inspect() -> str:
    """Two look, side by side; the chief reads what they have noted."""
    graph = RootGraph("inspection", state=Team)
    for name, reply in (("roof", "the roof leaks"), ("pump", "the pump hums")):
        looks = graph.create_node(
            Agent(
                model=Scripted([reply]), formatters="twins", memories=[Blackboard()], role_name=name
            ),
            name=name,
        )
        graph.edge_from_entry(looks, ["question"])
    rules = [
        {
            "match": {"user_contains": "roof: the roof leaks\n(blackboard) pump: the pump hums"},
            "replies": ["roof and pump"],
        }
    ]
    chief = graph.create_node(
        Agent(
            model=Scripted({"rules": rules, "default": "nothing"}),
            formatters="twins",
            memories=[Blackboard()],
        ),
        name="chief",
    )
    for name in ("roof", "pump"):
        graph.create_edge(name, chief, ["answer"])
    graph.edge_to_exit(chief, ["answer"])
    return str(graph.build().invoke({"question": "What has to be repaired?"})[0]["answer"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        talk(Path(folder) / "memory.jsonl")
    print(f"to repair: {inspect()}")

"""The workflow of newsroom.yaml, built in Python: researchers, a writer and a critic in a loop, an
editor. It says the same.

python examples/newsroom.py

Without a key the answers come from replies/newsroom.yaml; with OPENAI_API_KEY (and axil-openai)
from a model.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from axil import Graph, RootGraph
from axil_agent import Agent, HistoryMemory, Scripted, measure_text
from axil_control import LogicSwitch, Loop

QUESTION = "Why do plants branch where the leaf meets the stem?"
WRITER = (
    "You are the writer. You get a question and notes; answer the question from the notes in at "
    "most 60 words, for curious people. "
    "When you get remarks of a critic, send the whole text again, improved. Send nothing but the "
    "text."
)
CRITIC = (
    "You are the critic. Measure the text that you get: it has at most 60 words, and no sentence "
    "has more than 20. It begins with the "
    "answer. If all is well, answer ACCEPT and nothing else. Otherwise answer REVISE, and in one "
    "or two sentences say what has to change."
)
EDITOR = (
    "You are the editor. You get what the critic said last, and a text. Give the text a short "
    "title, and send both: "
    '"# ", the title, an empty line, the text. Change nothing else.'
)


def agent(model: Any, instructions: str, **settings: Any) -> Agent:
    """Return an agent whose whole reply is the field that its out-edge carries."""
    limits = {"max_tokens": 600, **settings.pop("model_settings", {})}
    return Agent(model, instructions, model_settings=limits, **settings)


def research(model: Any) -> Graph:
    """Two researchers, at the same time."""
    graph = Graph()
    graph.create_node(
        agent(
            model,
            "You are the botanist. Note in two or three sentences what botany knows of the "
            "question.",
        ),
        name="botanist",
    )
    graph.create_node(
        agent(
            model,
            "You are the historian. Note in two sentences where the words come from, and who "
            "knew it first.",
        ),
        name="historian",
    )
    for name, field in (("botanist", "botany"), ("historian", "history")):
        graph.edge_from_entry(name, ["question"])
        graph.edge_to_exit(name, {field: "your notes"})
    return graph


def newsroom(model: Any, rounds: int = 3) -> RootGraph:
    """Research, then drafts until the critic accepts one or the rounds are over, then the
    editor.
    """
    graph = RootGraph("newsroom")
    graph.create_node(research(model), name="research")
    loop = graph.create_node(Loop(max_iterations=rounds), name="drafts")
    graph.create_node(agent(model, EDITOR), name="editor")

    writer = loop.create_node(agent(model, WRITER, memories=HistoryMemory()), name="writer")
    measuring = {"tools": [measure_text], "model_settings": {"parallel_tool_calls": False}}
    critic = loop.create_node(
        agent(model, CRITIC, memories=HistoryMemory(), **measuring), name="critic"
    )
    verdict = loop.create_node(LogicSwitch, name="verdict")
    loop.edge_from_controller(writer, ["question", "botany", "history", "remarks"])
    loop.create_edge(writer, critic, {"draft": "the text"})
    loop.create_edge(writer, verdict, ["draft"])
    loop.create_edge(critic, verdict, {"remarks": "ACCEPT, or REVISE and why"})
    both = ["draft", "remarks"]
    verdict.condition_binding(
        lambda message: "ACCEPT" in message["remarks"], loop.edge_to_terminate_node(verdict, both)
    )
    verdict.condition_binding(
        lambda message: "ACCEPT" not in message["remarks"], loop.edge_to_controller(verdict, both)
    )

    graph.edge_from_entry("research", ["question"])
    graph.edge_from_entry(loop, ["question"])
    graph.create_edge("research", loop, ["botany", "history"])
    graph.create_edge(loop, "editor", both)
    graph.edge_to_exit("editor", {"article": "title and text"})
    return graph.build()


def chosen_model() -> Any:
    """Return a real model where there is a key, else the script."""
    if os.environ.get("OPENAI_API_KEY"):
        return {
            "type": "openai",
            "name": os.environ.get("AXIL_MODEL")
            or os.environ.get("OPENAI_MODEL")
            or "gpt-4.1-mini",
        }
    return Scripted.from_file(Path(__file__).parent / "replies" / "newsroom.yaml")


if __name__ == "__main__":
    output, _ = newsroom(chosen_model()).invoke({"question": QUESTION})
    print(output["article"])

"""The kind of graph that review.yaml describes, built in Python: a nested review loop, a board that
reads side by side, attributes.

python examples/review_loop.py
"""

from __future__ import annotations

from pathlib import Path

from axil import Graph, RootGraph, node
from axil_control import LogicSwitch, Loop

TEXT = Path(__file__).parent / "texts" / "axils.md"
FORBIDDEN = {"very", "obviously", "basically"}


# Bodies are plain functions. They ask for what they want by name; `inline` says that a body is
# cheap and never waits.


@node(inline=True)
def first_sentences(inputs):
    body = " ".join(line for line in inputs["text"].splitlines() if not line.startswith("#"))
    return {"draft": ". ".join(body.split(". ")[:8]) + "."}


@node(inline=True)
def length(inputs, attributes):
    count = len(inputs["draft"].split())
    return {
        "objections": [f"{count} words, at most {attributes['limit']}"]
        if count > attributes["limit"]
        else []
    }


@node(inline=True)
def words(inputs):
    found = FORBIDDEN & set(inputs["draft"].lower().split())
    return {"objections": [f"do not say {', '.join(sorted(found))}"] if found else []}


@node(inline=True)
def edit(inputs):
    """Meets the objections, one sentence at a time."""
    kept = [word for word in inputs["draft"].split() if word not in FORBIDDEN]
    sentences = " ".join(kept).split(". ")
    if any("at most" in objection for objection in inputs["objections"]):
        sentences.remove(max(sentences, key=len))
    return {"draft": ". ".join(sentences).rstrip(".") + "."}


def board() -> Graph:
    """Two reviewers, at the same time.

    The lists of what they object to are joined where their edges meet.
    """
    graph = Graph()
    graph.create_node(length, name="length")
    graph.create_node(words, name="words")
    for reviewer in ("length", "words"):
        graph.edge_from_entry(reviewer, ["draft"])
        graph.edge_to_exit(reviewer, ["objections"])
    graph.create_edge("entry", "exit", ["draft"])
    return graph


def review() -> RootGraph:
    """Draft, then up to ten rounds of board and edit.

    The board's consent leaves the loop at once.
    """
    graph = RootGraph("review", attributes={"limit": 60})
    draft = graph.create_node(first_sentences, name="draft")
    loop = graph.create_node(Loop(max_iterations=10), name="loop")
    graph.edge_from_entry(draft, ["text"])
    graph.create_edge(draft, loop, ["draft"])
    graph.edge_to_exit(loop, ["draft", "objections"])

    loop.create_node(board(), name="board")
    verdict = loop.create_node(LogicSwitch, name="verdict")
    editor = loop.create_node(edit, name="edit")
    both = ["draft", "objections"]
    loop.edge_from_controller("board", ["draft"])
    loop.create_edge("board", verdict, both)
    verdict.condition_binding(
        lambda message: not message["objections"], loop.edge_to_terminate_node(verdict, both)
    )
    verdict.condition_binding(
        lambda message: message["objections"], loop.create_edge(verdict, editor, both)
    )
    loop.edge_to_controller(editor, ["draft"])
    return graph.build()


if __name__ == "__main__":
    output, attributes = review().invoke({"text": TEXT.read_text("utf-8")})
    print(output["draft"])
    print(
        f"\n({'accepted' if not output['objections'] else 'not accepted'} in round "
        f"{attributes['current_iteration']})"
    )

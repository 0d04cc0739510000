"""A race: three are asked, and the first answer is taken. Runs offline, in a tenth of a second."""

from __future__ import annotations

from typing import Any

import axil


def asked(name: str, seconds: float) -> Any:
    """Return a node that answers after a while."""

    async def answer(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, str]:
        await ctx.sleep(seconds)
        return {"answer": f"{name}, after {seconds} seconds"}

    return answer


def race() -> axil.Workflow:
    """Return a workflow that takes the first answer and cancels the others."""
    graph = axil.RootGraph("race")
    take = graph.create_node(
        lambda inputs: inputs,
        name="take",
        join={"type": "quorum", "config": {"of": 1, "rest": "cancel"}},
    )
    for name, seconds in (("slow", 30.0), ("quick", 0.1), ("slower", 60.0)):
        node = graph.create_node(asked(name, seconds), name=name)
        graph.edge_from_entry(node, {})
        graph.create_edge(node, take, ["answer"])
    graph.edge_to_exit(take, ["answer"])
    return graph.build()


if __name__ == "__main__":
    print(race().invoke()[0]["answer"])

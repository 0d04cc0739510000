"""Agents that keep within a budget of money: what a call may cost is reserved before it is made.

python examples/budget.py
"""

from __future__ import annotations

import asyncio

from axil import Limits, RootGraph
from axil_agent import Agent, Scripted
from axil_models import Estimator, Price, Pricing
from axil_wrappers import Budget, Fallback, Retry

# Money for a million tokens, in whatever unit you count: the figures are yours.
PRICING = Pricing(models={"scripted": Price(input=2.0, output=10.0)})

busy = {"status": 503, "retry_after": 0}
model = Scripted(
    [busy, "An axil is the angle between a stem and a leaf.", "New growth starts there."]
)
model.name = "scripted"  # what the price list calls it


def build(cost: float) -> RootGraph:
    """Return a fact, then a comment on it that may cost so much; without the means for one there is
    none.
    """
    graph = RootGraph("facts", node_wrappers={Agent: [Retry(tries=3, wait_seconds=0)]})
    fact = graph.create_node(Agent(model, prompt_template="A fact on {topic}."), name="fact")
    comment = graph.create_node(
        Agent(model, prompt_template="Comment on: {message}"),
        name="comment",
        wrappers=[
            Fallback(value={"message": "(no comment)"}),
            Budget(cost=cost, on_limit="fail_node"),
        ],
    )
    graph.edge_from_entry(fact, ["topic"])
    graph.create_edge(fact, comment, ["message"])
    graph.edge_to_exit(comment, {"message": "the comment"})
    return graph.build()


async def main() -> None:
    limits = Limits(cost=0.05, pricing=PRICING, estimate=Estimator(output_tokens=500))
    for cost in (0.02, 0.0001):
        result = await build(cost).run({"topic": "axils"}, limits=limits)
        print(f"{result.status}, {result.usage.cost:.6f} spent: {result.output['message']}")

    tight = Limits(cost=0.004, pricing=PRICING, estimate=Estimator(output_tokens=500))
    result = await build(0.02).run({"topic": "axils"}, limits=tight)
    print(f"{result.status}: {result.error}")


if __name__ == "__main__":
    asyncio.run(main())

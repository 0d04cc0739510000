"""A support desk: a front agent that remembers its customers, handoffs to those that know more, and
a refund that a person has to allow.

The models are scripts, so this runs without a key; with OPENAI_API_KEY a model answers.

python examples/teams/support.py
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

from axil import RootGraph
from axil_agent import Agent, Scripted
from axil_context import FileMemory
from axil_journals import MemoryJournal
from axil_models import Command
from axil_teams import Swarm


def refund(order: str, euros: int) -> Command:
    """Pay an order back.

    Args:
        order: its number
        euros: how much
    """
    return Command(f"{euros} euros for order {order} are on their way.", write={"refunded": order})


refund.needs_approval = lambda arguments: arguments["euros"] > 20


def transfer(to: str) -> dict[str, Any]:
    """Return a scripted handoff."""
    return {"tool_calls": [{"name": f"transfer_to_{to}", "arguments": {"reason": "a refund"}}]}


def model(*replies: Any) -> Any:
    """Return a real model where there is a key, else the script."""
    if os.environ.get("OPENAI_API_KEY"):
        return {"type": "openai", "name": os.environ.get("AXIL_MODEL") or "gpt-4.1-mini"}
    return Scripted(list(replies))


def support(notes: Path) -> RootGraph:
    """Return the desk; what customers said is kept in a file, for later runs."""
    front = Agent(
        model(transfer("billing"), "Billing looks at it.", "Your order 17 was paid back."),
        "You are the front desk. Money is for billing, what is broken is for repair.",
        memories=[FileMemory(path=str(notes))],
    )
    billing = Agent(
        model(
            {"tool_calls": [{"name": "refund", "arguments": {"order": "17", "euros": 40}}]},
            "The money is on its way.",
        ),
        "You are billing. Refund what was not delivered.",
        tools=[refund],
    )
    repair = Agent(model("Send it to us."), "You are repair.")
    graph = RootGraph("support", attributes={"refunded": ""})
    graph.create_node(
        Swarm,
        name="desk",
        members={"front": front, "billing": billing, "repair": repair},
        handoffs={"front": ["billing", "repair"], "billing": ["front"]},
        turns=6,
    )
    graph.edge_from_entry("desk")
    graph.edge_to_exit("desk")
    return graph.build()


async def day(notes: Path) -> None:
    """Let a customer write, a person allow the refund, and the customer write again."""
    graph, journal = support(notes), MemoryJournal()
    result = await graph.run({"message": "Order 17 never came. 40 euros!"}, journal=journal)
    while result.questions:  # in a server: sent to a person, and answered days later
        print(f"a person is asked: {result.questions[0].text}")
        answers = {question.id: "allow" for question in result.questions}
        result = await graph.resume(result.run_id, journal=journal, answers=answers)
    print(f"desk: {result.output['message']} (refunded: {result.state['refunded']})")
    again = await graph.run({"message": "What about my order 17?"})
    print(f"desk: {again.output['message']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(day(Path(folder) / "customers.jsonl"))

"""Urgent work first, two a second, and a service that is down is not asked for ever. Runs offline,
in about three seconds.
"""

from __future__ import annotations

import time
from typing import Any

import axil
from axil.plugin import Replace, Retry, hook_manager
from fern_pacing import CircuitBreaker, PriorityAndRate


class Again:
    """A hook that tries what failed again, at once."""

    @axil.hookimpl
    def firing_failure(self, firing: Any, error: Exception) -> Retry | None:
        """Try again whatever has no connection."""
        return Retry() if isinstance(error, ConnectionError) else None


def paced() -> tuple[axil.Workflow, list[tuple[str, float]]]:
    """Return a workflow of three errands and one that always fails, and the log of its starts."""
    log: list[tuple[str, float]] = []
    graph = axil.RootGraph("errands")

    def errand(name: str) -> Any:
        async def run(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, str]:
            log.append((name, ctx.now()))
            if name == "broken":
                raise ConnectionError("nobody answers")
            return {name: "done"}

        return run

    for name in ("letters", "broken", "parcels", "doctor"):
        node = graph.create_node(errand(name), name=name, lane="errands")
        graph.edge_from_entry(node, {})
        graph.edge_to_exit(node, [name])
    return graph.build(), log


def hooks() -> Any:
    """Return the hooks: two starts a second, the doctor first; after three failures an answer."""
    refused = Replace({"broken": "not asked any more"})
    breaker = CircuitBreaker(failures=3, by="lane", instead=refused)
    pace = PriorityAndRate(priorities={"doctor": 2, "broken": -1}, rate={"errands": 2})
    return hook_manager([Again(), breaker, pace])


if __name__ == "__main__":
    workflow, starts = paced()
    began = time.monotonic()
    output, _ = workflow.invoke(hooks=hooks(), limits=axil.Limits(lanes={"errands": 1}))
    for name, at in starts:
        print(f"{at - starts[0][1]:4.1f} s  {name}")
    print(output)

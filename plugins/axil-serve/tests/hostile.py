"""A run whose every text is markup."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from axil import Context, Question, RootGraph, Workflow
from axil_journals import MemoryJournal
from axil_serve import RunService
from axil_serve.export import page_of

HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
)


def hostile() -> Workflow:
    """Return a graph whose every text is markup."""
    graph = RootGraph("hostile", attributes={"field": HOSTILE})
    graph.create_node(lambda inputs: {HOSTILE: HOSTILE}, name="bad")
    graph.edge_from_entry("bad", {"name": HOSTILE})
    graph.edge_to_exit("bad", {HOSTILE: HOSTILE})
    return graph.build()


def asking() -> Workflow:
    """Return a graph that asks for a call whose every text is markup."""
    graph = RootGraph("asking")
    data = dict.fromkeys(("tool", "does", "changes", "description", "more"), HOSTILE)
    call = {**data, "arguments": {HOSTILE: HOSTILE}}

    async def ask(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        question = Question(text=f"{HOSTILE} asks", kind="tool_approval", data=call)
        return {"said": str(await ctx.ask(question))}

    graph.create_node(ask, name="ask")
    graph.edge_from_entry("ask", {"name": ""})
    graph.edge_to_exit("ask", {"said": ""})
    return graph.build()


def exported(workflow: Any, input: Any) -> str:
    """Return a run as one page."""
    journal = MemoryJournal()
    service = RunService(journal, {"w": workflow}, watch_only=True)

    def made() -> str:
        workflow.invoke(input, journal=journal, run_id="r")
        return asyncio.run(page_of(service, "r"))

    return apart(made)


def apart(call: Callable[[], Any]) -> Any:
    """Call in a thread: the tests of a browser have a loop at work."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call).result(30)

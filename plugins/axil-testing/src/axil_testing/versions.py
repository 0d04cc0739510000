"""One graph in two versions of its state, ``brief`` and ``paper``, with the migration between them:
for tests of records that another version wrote.

>>> sorted(brief().plan.graph.schema.fields), sorted(paper().plan.graph.schema.fields)
(['cost', 'notes', 'topic'], ['cents', 'notes', 'title'])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel

from axil import Out, Workflow, run_sync, schema_of
from axil_testing.specs import node, workflow


class Brief(BaseModel):
    """The first version of the state."""

    topic: str = ""
    notes: Annotated[list[str], "append"] = []
    cost: Annotated[float, "sum"] = 0.0


class Paper(BaseModel):
    """``Brief``, one version on: the topic is a title, notes are numbered, the cost is in cents."""

    title: str = ""
    notes: Annotated[list[str], "append"] = []
    cents: Annotated[int, "sum"] = 0


def to_paper(values: dict[str, Any]) -> Mapping[str, Any]:
    """Migrate values of a ``Brief``."""
    if "topic" in values:
        values["title"] = values.pop("topic").title()
    if "cost" in values:
        values["cents"] = round(values.pop("cost") * 100)
    if "notes" in values:
        values["notes"] = [f"- {note}" for note in values["notes"]]
    return values


async def asks(task: Any, ctx: Any) -> Out:
    """Ask a person, and note the answer."""
    return Out({}, {"notes": [await ctx.ask("?")]})


def writing(**delta: Any) -> Callable[[Any, Any], Out]:
    """Return a body that writes ``delta``."""
    return lambda task, ctx: Out({}, delta)


def typed(model: Any, **more: Any) -> dict[str, Any]:
    """Return the settings of a graph whose state is ``model``."""
    return {"schema": schema_of(model), "payload": "state", **more}


def brief(**more: Any) -> Workflow:
    """Return the graph in its first version."""
    first = node("a", writing(topic="growth", notes=["n1"], cost=0.25))
    nodes = [first, node("b", asks, mode="async", ctx=True)]
    return workflow(nodes, ["in a", "a b", "b out"], **typed(Brief), **more)


def paper(**more: Any) -> Workflow:
    """Return the graph in its second version, with the migration."""
    more = {"state_version": 2, "migrations": {1: to_paper}, **more}
    first = node("a", writing(title="Growth", notes=["n1"], cents=25))
    nodes = [first, node("b", asks, mode="async", ctx=True)]
    return workflow(nodes, ["in a", "a b", "b out"], **typed(Paper), **more)


def paused(flow: Workflow, journal: Any, **options: Any) -> str:
    """Run the graph as run ``r`` until it asks, and return the question's id."""
    given = {"topic": "seeds"} if "topic" in flow.plan.graph.schema.fields else {}
    result = run_sync(flow.run(given, journal=journal, run_id="r", **options))
    assert result.status == "paused"
    return result.questions[0].id

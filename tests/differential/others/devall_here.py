"""The outcome of a random file in DevAll's vocabulary, run by axil."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from axil import AxilError, ComponentRef, Workflow, run_sync
from axil.plugin import CompileOptions, Registry, gather_messages, text_of
from axil_files import load_spec

from .devall_program import Graph, Noted, Outcome, document

NOTES: list[Noted] = []
"""The notes of the run that goes on."""


class Noting:
    """A wrapper that notes what a body is given."""

    def wrap(self, body: Any, node: Any) -> Any:
        """Return the body that is noted, unless it is a whole cycle."""
        if body.mode == "scope":
            return body

        def noting(task: Any, ctx: Any) -> Any:
            NOTES[-1].add(node.name, [text_of(m) for m in gather_messages(task.tokens)])
            return body(task, ctx)

        noting.mode = body.mode  # type: ignore[attr-defined]
        noting.wants_ctx = True  # type: ignore[attr-defined]
        return noting


@cache
def registry() -> Registry:
    """Return all that is installed, and the wrapper."""
    made = Registry()
    made.register("wrappers", "noting", Noting)
    return made


def here(folder: Path) -> Callable[[Graph], Outcome]:
    """Return a function that runs a graph's file from a folder."""

    def run(graph: Graph) -> Outcome:
        file = folder / "flow.yaml"
        file.write_text(json.dumps(document(graph)), "utf-8")
        spec = load_spec(file, registry=registry())
        noting = ComponentRef(type="noting")
        nodes = [
            replace(node, wrappers=(*node.wrappers[:1], noting, *node.wrappers[1:]))
            for node in spec.nodes
        ]
        NOTES.append(Noted())
        workflow = Workflow(replace(spec, nodes=tuple(nodes)), CompileOptions(registry=registry()))
        try:
            result = run_sync(workflow.run("TASK"))
        except AxilError as error:
            if isinstance(error.__cause__, OverflowError):
                return NOTES.pop().outcome("limited")
            return NOTES.pop().outcome("entries" if "AX402" in str(error) else str(error))
        return NOTES.pop().outcome("done" if result.status == "done" else str(result.status))

    return run

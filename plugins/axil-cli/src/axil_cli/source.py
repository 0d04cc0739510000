"""The sources of workflows: a file, or a graph that is made in Python.

``module:graph`` and ``file.py:graph`` name the latter. To name one on the command line is to give
leave to execute its module; where a journal names it, leave is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from axil import Workflow
from axil.plugin import FromEnvironment, Plan, did_you_mean, format_names, is_private
from axil_cli.command import Session, misuse
from axil_files import load, python_target

if TYPE_CHECKING:
    from axil_journals import PlanScope

TARGET = "a workflow file; or a graph in Python, as module:graph or file.py:graph"
"""The help of an argument that names a workflow."""


def workflow_of(target: str, session: Session, *, hooks: Any = None, **reading: Any) -> Workflow:
    """Return the workflow that ``target`` names, not yet compiled if it is a file.

    Args:
        hooks: in place of the session's.
        reading: arguments of ``axil_files.load``: ``vars``, ``allow_code``, ``texts``.
    Raises: SpecError, PluginError: as ``axil_files.load``; ConfigError: AX700 variables are given
    to a graph in Python, AX701 there is no such graph.
    """
    python = python_target(target)
    wanted = hooks or session.hooks
    if python is None:
        return load(target, registry=session.registry, hooks=wanted, **reading)
    if reading.get("vars"):
        message = f"{target} is a graph in Python, and has no variables."
        raise misuse("--set", message, "Give it a parameter in Python, or an attribute.")
    return hooked(python.load(), wanted)


def hooked(workflow: Workflow, hooks: Any) -> Workflow:
    """Return a workflow that has further hook plugins; itself, where there are none."""
    if hooks is None:
        return workflow
    from axil.plugin import hook_manager

    own = workflow.setting.hooks
    plugins = [*(own.get_plugins() if own is not None else ()), *hooks.get_plugins()]
    return Workflow(workflow.spec, replace(workflow.setting, hooks=hook_manager(plugins)))


def with_breaks(paths: Iterable[str], hooks: Any) -> Any:
    """Return the hook plugins, with one that stops before the nodes that ``--break`` names."""
    if not (breaks := frozenset(paths)):
        return hooks
    from axil.plugin import hook_manager
    from axil_journals import Breakpoints

    made = hooks or hook_manager()
    made.register(Breakpoints(breaks))
    return made


def check_breaks(paths: Iterable[str], workflow: Workflow) -> None:
    """Check that each path of ``--break`` is that of a node, or of something inside one.

    Raises: ConfigError (AX700): there is no such node.
    """
    named = [path for path in paths if path != "*"]
    if not named:
        return
    there = list(_paths(workflow.plan))
    for path in named:
        if path not in there and not any(path.startswith(f"{each}/") for each in there):
            near = did_you_mean(path, there) or f"Available: {format_names(there, 20)}."
            raise misuse("--break", f'there is no node "{path}".', near)


def _paths(plan: Plan) -> Iterator[str]:
    """Yield the paths of all nodes that are no graphs, through the graphs around them."""
    from axil_journals import walk_plan

    for step in walk_plan(plan):
        if step.node is None or step.node.vertex.body.mode == "scope":
            continue
        scope: PlanScope = step.scope
        around: list[str] = []
        while scope.parent is not None:
            around += [scope.name] if scope.kind == "graph" else []
            scope = scope.parent
        yield "/".join([*reversed(around), step.node.name])


def settings(
    given: Iterable[str], option: str = "--set", example: str = "tone=dry"
) -> dict[str, Any]:
    """``--set`` options as variables, and others like it; a secret's value is shown nowhere.

    Raises: ConfigError (AX700).

    >>> settings(["rounds=3", "tone=dry", 'version="3"'])
    {'rounds': 3, 'tone': 'dry', 'version': '3'}
    >>> settings(["API_KEY=sk-123"])
    {'API_KEY': ${API_KEY}}
    """
    values: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise misuse(
                option, f'expected name=value, found "{each}".', f"Write {option} {example}."
            )
        name = name.strip()
        values[name] = (
            FromEnvironment(value, "${" + name + "}") if is_private(name) else as_data(value)
        )
    return values


def as_data(text: str) -> Any:
    """Return JSON where it is JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def as_input(text: str | None, payload: str) -> Any:
    """Return the input as a graph takes it: a text for messages, fields for the others; for typed
    state its fields, or the text of a conversation.

    >>> as_input('{"n": 1}', "fields"), as_input("hello", "fields"), as_input("hello", "messages")
    ({'n': 1}, {'message': 'hello'}, 'hello')
    """
    if payload == "messages":
        return text or ""
    data: Any = {} if text is None else as_data(text)
    if isinstance(data, dict):
        return cast("dict[str, Any]", data)
    return text if payload == "state" else {"message": text}


__all__ = [
    "TARGET",
    "as_data",
    "as_input",
    "check_breaks",
    "hooked",
    "settings",
    "with_breaks",
    "workflow_of",
]

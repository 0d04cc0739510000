"""Commands of tools: what they write and where they go on.

A command is recorded with its call, and kept in ``local`` until the firing ends; then it becomes
part of the outcome, so a firing that fails or is undone has written nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil import Context, Out, StateError
from axil.plugin import EXIT, BodyRules, RouteError, Task, did_you_mean, format_names
from axil_models import Command, plain_data

_COMMANDS = "@commands"


def plain_command(command: Command) -> dict[str, object]:
    """Return a command as plain data."""
    return {"write": plain_data(dict(command.write)), "go_to": list(command.targets)}


def take_command(command: Mapping[str, Any], ctx: Any) -> None:
    """Keep a command until the firing ends; a later one overwrites fields."""
    local = ctx.local
    before: Mapping[str, Any] = local.get(_COMMANDS, {"write": {}, "go_to": []})
    go_to = [*before["go_to"], *(n for n in command["go_to"] if n not in before["go_to"])]
    local[_COMMANDS] = {"write": {**before["write"], **command["write"]}, "go_to": go_to}


def leads_elsewhere(local: Mapping[str, Any]) -> bool:
    """Return whether a command that was taken says where to go on."""
    return bool(local.get(_COMMANDS, {}).get("go_to"))


def with_command(out: Out, rules: BodyRules, ctx: Context, task: Task) -> Out:
    """Return the outcome, with what commands of tools write and where they go.

    Raises: StateError (AX203): the state has no such field; RouteError (AX222): no edge leads
    there.
    """
    command = None if ctx.touched is None else ctx.local.pop(_COMMANDS, None)
    if command is None:
        return out
    state = task.state
    known = state.schema.fields if state.schema.closed else state
    for name in command["write"]:
        if name.startswith("@") or name not in known:
            message = f'a tool of "{rules.node}" writes "{name}", which the state does not have.'
            hint = did_you_mean(name, list(known)) or "Give the graph an attribute of that name."
            raise StateError(message, id="AX203", hint=hint)
    delta = {**out.delta, **command["write"]}
    return Out(out.output, delta, _targets(command["go_to"], rules, task) or out.to)


def _targets(names: list[str], rules: BodyRules, task: Task) -> frozenset[str]:
    plan = task.owner.plan if task.owner is not None else None
    known = [] if plan is None else [arc.target_name for arc in task.node.out]
    targets = [EXIT if n in ("exit", "end") and n not in known else n for n in names]
    if strangers := [name for name in targets if name not in known]:
        hint = did_you_mean(strangers[0], known) or f"Its edges lead to {format_names(known)}."
        message = f'a tool of "{rules.node}" goes to {format_names(strangers)}'
        raise RouteError(f"{message}, where no edge leads.", hint=hint)
    return frozenset(targets)

"""Members of teams: any node, given by what a file says of it, or as an object of Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from axil import ComponentRef, Graph, NodeSpec, SpecError
from axil.plugin import CompileOptions, Place, format_names
from axil_agent import Agent
from axil_files import LoadOptions, inline_spec
from axil_teams.errors import TeamError
from axil_teams.handoff import Handoff

_AGENTS = ("agent", "dynamic_agent")


def nodes_of(
    members: Mapping[str, Any],
    team: str,
    setting: CompileOptions,
    handoffs: Mapping[str, Sequence[str]],
) -> tuple[NodeSpec, ...]:
    """Return a node for each member, in their order; an agent's with a tool for each handoff.

    Raises: TeamError (AX670): there is none; SpecError: one is no node.
    """
    if not members:
        raise TeamError("AX670", f'the team "{team}" has no members.', "Add at least one member.")
    written: dict[str, Any] = {n: each for n, each in members.items() if isinstance(each, Mapping)}
    nodes = {node.id: node for node in _written(written, setting)} if written else {}
    made = Graph()
    for name, each in members.items():
        if name not in written:
            made.create_node(_with_tools(each, handoffs.get(name, ())), name=name)
    nodes |= {node.id: node for node in made.to_spec().nodes}
    return tuple(_with_handoffs(nodes[name], handoffs.get(name, ())) for name in members)


def _written(members: Mapping[str, Any], setting: CompileOptions) -> Sequence[NodeSpec]:
    """Return the nodes of a file."""
    outer = dict(setting.extras) or {"folder": setting.folder or "."}
    reading = LoadOptions(
        environment=setting.environment,
        allow_code=setting.allow_code,
        grants=setting.grants,
        registry=setting.registry,
    )
    names, nodes = list(members), [{**each, "id": name} for name, each in members.items()]
    graph = {"nodes": nodes, "start": names, "end": names}
    places = [_place(name, setting.place) for name in members]
    try:
        read = inline_spec(graph, outer, reading=reading).nodes
    except SpecError as error:
        problems = [replace(each, where=_moved(each.where, places)) for each in error.problems]
        raise SpecError(problems) from error
    return [_placed(node, place) for node, place in zip(read, places, strict=True)]


def _placed(node: NodeSpec, place: Place | None) -> NodeSpec:
    if place is None or node.use is None:
        return node
    return replace(node, place=place, use=replace(node.use, place=place))


_GROUPS = ("members", "critics", "spokes")
"""Settings of teams that hold several members."""
_NODE = re.compile(r"nodes\[(\d+)\](.*)", re.DOTALL)
_KEY = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def _place(name: str, team: Place | None) -> Place | None:
    """Return the place of a member in the file of its team."""
    if team is None or team.lines is None:
        return team
    ways = [*(("config", group, name) for group in _GROUPS), ("config", name)]
    way = next((way for way in ways if (*team.keys, *way) in team.lines), ("config",))
    return team.at(*way)


def _moved(where: str, places: Sequence[Place | None]) -> str:
    """Return a place of the graph that the members were read as, as one of the team's file."""
    found = _NODE.fullmatch(where)
    place = places[int(found[1])] if found is not None else None
    if found is None or place is None:
        return where
    keys = [key or int(index) for key, index in _KEY.findall(found[2])]
    return str(place.at(*keys))


def _with_handoffs(node: NodeSpec, targets: Sequence[str]) -> NodeSpec:
    """Return an agent of a file with its tools for handing over."""
    if node.use is None or node.use.type not in _AGENTS or not targets:
        return node
    own: Any = node.use.config.get("tools") or ()
    tools = [*own, *({"type": "handoff", "config": {"to": target}} for target in targets)]
    config = {**node.use.config, "tools": tools}
    use = ComponentRef(type=node.use.type, config=config, place=node.use.place)
    return replace(node, use=use)


def _with_tools(member: Any, targets: Sequence[str]) -> Any:
    """Return a member of Python; an agent has its tools for handing over, once."""
    if isinstance(member, Agent):
        known = {each.to for each in member.tools if isinstance(each, Handoff)}
        for target in targets:
            if target not in known:
                member.add_tool(Handoff(Handoff.Config(to=target)))
    return member


def one_of(given: str, members: Mapping[str, Any], what: str) -> str:
    """Return the name of a member; without one, the first.

    Raises: TeamError (AX670): there is none of that name.
    """
    if given and given not in members:
        hint = f"The members are {format_names(list(members))}."
        raise TeamError("AX670", f'{what} is "{given}", which is not a member.', hint)
    return given or next(iter(members), "")

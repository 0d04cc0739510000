"""Agents of Agent Spec that stand for themselves, and teams of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from axil_importers.agentspec.models import asking, tools_of, typed
from axil_importers.agentspec.parts import Data, Spec, titles
from axil_importers.draft import Step, literal
from axil_importers.parts import agent, ask

_PLACE: Final = re.compile(r"\{\{\s*([A-Za-z_][\w ]*?)\s*\}\}")
_DONE: Final = "FINISH"
_MESSAGE: Final = "question"


def alone(spec: Spec, given: Data) -> None:
    """Add one agent, with what the user says and its inputs."""
    draft, kind = spec.draft, str(given["component_type"])
    step = draft.step(f'"{given.get("name")}"', kind)
    inputs = _inputs(spec, given)
    name = draft.name(str(given.get("name") or "agent"))
    outputs = titles(given.get("outputs"))
    fields = {draft.field("output", t, wanted=t): typed(e) for t, e in outputs.items()}
    if not fields:
        fields = {draft.field("output", "answer", wanted="answer"): "The answer."}
    if kind == "A2AAgent" and str(given.get("agent_url")).startswith("http"):
        head = _remote(spec, given, name, step, next(iter(fields)))
        fields = dict([next(iter(fields.items()))])
    elif kind in ("Agent", "SpecializedAgent"):
        config, texts = _asked(spec, given, step, inputs)
        config["output"] = fields
        head = agent(draft, name, texts, config, fields)
        step.became = f"agent {name}"
    else:
        first = next(iter(fields))
        head = ask(draft, step, name, (kind, first), {t: f"{{{f}}}" for t, f in inputs.items()})
    _enter(spec, inputs, head)
    draft.edge(name, "@exit", keys=dict.fromkeys(fields, "The answer."))


def _remote(spec: Spec, given: Data, name: str, step: Step, field: str) -> str:
    asked = {_MESSAGE: "{" + spec.draft.field("@in", _MESSAGE, wanted=_MESSAGE) + "}"}
    head = ask(spec.draft, step, name, ("an agent that speaks A2A", field), asked)
    step.leave(
        "its graph has messages, and this one has fields",
        f"Begin a graph of messages with the node a2a_agent, url {given['agent_url']}.",
    )
    return head


def _inputs(spec: Spec, *given: Data) -> dict[str, str]:
    """Return the fields of the inputs of agents, and of what the user says."""
    names = [_MESSAGE, *(t for each in given for t in titles(each.get("inputs")))]
    names += [p for each in given for p in _PLACE.findall(str(each.get("system_prompt") or ""))]
    return {each: spec.draft.field("@in", each, wanted=each) for each in dict.fromkeys(names)}


def _enter(spec: Spec, inputs: Mapping[str, str], head: str) -> None:
    draft = spec.draft
    start = draft.name("start")
    fields = {each: {"path": each} for each in inputs.values()}
    draft.node(start, "assign", {"fields": fields}, fields)
    keys = {f: "What the user says." if t == _MESSAGE else t for t, f in inputs.items()}
    draft.edge("@entry", start, keys=keys)
    draft.edge(start, head)


def _asked(
    spec: Spec, given: Data, step: Step, inputs: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of an agent, and its prompts."""
    who, more = given, cast("Data", {})
    if given["component_type"] == "SpecializedAgent":
        who = spec.at(given["agent"])
        more = spec.at(given.get("agent_specialization_parameters") or {})
    config = asking(spec, who.get("llm_config"), step)
    tools = tools_of(spec, who, f'"{who.get("name")}".')
    tools += tools_of(spec, {"tools": more.get("additional_tools")}, f'"{given.get("name")}".')
    if tools:
        config["tools"] = tools
    config["memories"] = ["history"]
    said = f"{who.get('system_prompt') or ''}\n{more.get('additional_instructions') or ''}".strip()
    if who.get("transforms"):
        step.approximate("the history is not summarized", "Give it a memory that summarizes.")
    parts: list[str] = []
    end = 0
    for place in _PLACE.finditer(said):
        parts.append(literal(said[end : place.start()]))
        parts.append("{" + inputs[place[1]] + "}" if place[1] in inputs else "")
        end = place.end()
    system = "".join(parts) + literal(said[end:])
    return config, {"system": system, "prompt": "{" + inputs[_MESSAGE] + "}"}


def team(spec: Spec, given: Data) -> None:
    """Add a manager, who chooses workers until it is done; a swarm's is the first agent."""
    draft, is_swarm = spec.draft, given["component_type"] == "Swarm"
    whole = draft.step(f'"{given.get("name")}"', str(given["component_type"]))
    manager = spec.at(given["first_agent" if is_swarm else "group_manager"])
    if is_swarm:
        pairs = cast("list[list[Any]]", given.get("relationships") or [])
        found = [spec.at(each) for pair in pairs for each in pair]
        whole.approximate(
            "the first agent chooses who works, each time", "Compare with the tool handoff."
        )
    else:
        found = [spec.at(each) for each in cast("list[Any]", given["workers"])]
    members = {str(e["id"]): e for e in found if e["id"] != manager["id"]}
    inputs = _inputs(spec, manager, *members.values())
    chosen = draft.field("chosen", wanted="chosen")
    fields = {i: draft.field("said", i, wanted=str(e.get("name"))) for i, e in members.items()}
    words = {i: " ".join(str(e.get("name")).replace('"', " ").split()) for i, e in members.items()}
    heard = "".join(f"\n{literal(words[i])}: {{{f}}}" for i, f in fields.items())
    boss = draft.name(str(manager.get("name") or "manager"))
    step = draft.step(f'"{manager.get("name")}"', str(manager["component_type"]))
    config, texts = _asked(spec, manager, step, inputs)
    answer = draft.field("answer", wanted="answer")
    enum = [*dict.fromkeys(words.values()), _DONE]
    what = f"Who works next; {_DONE}: nobody."
    config["output"] = {
        chosen: {"type": "string", "enum": enum, "description": what},
        answer: "What the user is told.",
    }
    texts["prompt"] += heard
    head = agent(draft, boss, texts, config, [chosen, answer])
    step.became = f"agent {boss}"
    whole.became = f"a cycle from {boss}"
    _enter(spec, inputs, head)
    draft.edge(boss, "@exit", f'state.{chosen} == "{_DONE}"', keys={answer: "The answer."})
    for id, each in members.items():
        own = draft.step(f'"{each.get("name")}"', str(each["component_type"]))
        name = draft.name(str(each.get("name") or "worker"))
        if each["component_type"] not in ("Agent", "SpecializedAgent"):
            first = ask(draft, own, name, (str(each["component_type"]), fields[id]), {})
        else:
            settings, said = _asked(spec, each, own, inputs)
            settings["output"] = {fields[id]: "What it found."}
            said["prompt"] += f"\n{{{answer}}}"
            first = agent(draft, name, said, settings, [fields[id]])
            own.became = f"agent {name}"
        draft.edge(boss, first, f'state.{chosen} == "{words[id]}"')
        draft.edge(name, head)

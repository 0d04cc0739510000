"""Nodes of Agent Spec: what each becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from axil_importers.agentspec.models import asking, tools_of, typed
from axil_importers.agentspec.parts import Convert, Data, Flow, titles
from axil_importers.draft import Draft, literal
from axil_importers.http import Request, can_be_sent, request
from axil_importers.models import tool_of
from axil_importers.parts import agent, ask

_LIST: Final = "iterated_"


def start(flow: Flow, id: str) -> None:
    """Add the inputs of the run, or of the flow."""
    node, name = flow.nodes[id], flow.names[id]
    inputs = titles(node.get("inputs") or node.get("outputs"))
    made = {flow.field(id, title): title for title in inputs}
    fields = {f: flow.bindings.get(title, {"path": f}) for f, title in made.items()}
    flow.draft.node(name, "assign", {"fields": fields or {"began": {"value": True}}}, fields)
    flow.steps[id].became = f"assign {name}"
    for field, title in made.items():
        default = inputs[title].get("default")
        flow.draft.attributes[field] = "" if default is None else default
    if not flow.outer:
        keys = {f: str(inputs[t].get("description") or t) for f, t in made.items()}
        flow.draft.edge("@entry", name, keys=keys)
        if any("default" in each for each in inputs.values()):
            flow.steps[id].approximate(
                "inputs that have a default have to be given", "Give the default."
            )


def end(flow: Flow, id: str) -> None:
    """Add the outputs of the run, or of the flow."""
    node, name = flow.nodes[id], flow.names[id]
    names = list(titles(node.get("outputs") or node.get("inputs")))
    fields: dict[str, Any] = {each: flow.value(id, each) for each in names}
    push: list[str] = []
    if flow.outer:
        fields = {flow.field(id, each): value for each, value in fields.items()}
        push = list(fields)
    flow.draft.node(name, "assign", {"fields": fields or {"done": {"value": True}}}, push)
    flow.steps[id].became = f"assign {name}"


def llm(flow: Flow, id: str) -> None:
    """Add an agent with one prompt."""
    node = flow.nodes[id]
    given = node.get("llm_config") or node.get("llmconfig")
    config = asking(flow.spec, given, flow.steps[id])
    _asked(flow, id, config, {"system": "", "prompt": flow.text(id, node.get("prompt_template"))})


def agent_node(flow: Flow, id: str) -> None:
    """Add an agent with its tools."""
    node = flow.nodes[id]
    who = flow.spec.at(node["agent"])
    kind = str(who["component_type"])
    if kind not in ("Agent", "SpecializedAgent"):
        other(flow, id)
        return
    who = specialized(flow, who)
    config = asking(flow.spec, who.get("llm_config"), flow.steps[id])
    tools = tools_of(flow.spec, who, f"{flow.place}{flow.names[id]}.")
    if tools:
        config["tools"] = tools
    inputs = list(titles(node.get("inputs")))
    prompt = "\n".join(f"{literal(each)}: {{{flow.path(id, each)}}}" for each in inputs)
    texts = {"system": flow.text(id, who.get("system_prompt")), "prompt": prompt}
    _asked(flow, id, config, texts)
    if who.get("human_in_the_loop"):
        flow.steps[id].approximate(
            "it asks the user nothing by itself", "Give it the tool ask_user."
        )


def specialized(flow: Flow, who: Data) -> Data:
    """Return an agent with what specializes it."""
    if who["component_type"] != "SpecializedAgent":
        return who
    inner = flow.spec.at(who["agent"])
    more = flow.spec.at(who.get("agent_specialization_parameters") or {})
    said = f"{inner.get('system_prompt') or ''}\n{more.get('additional_instructions') or ''}"
    tools: list[Any] = [*(inner.get("tools") or []), *(more.get("additional_tools") or [])]
    return {**inner, "system_prompt": said.strip(), "tools": tools}


def _asked(flow: Flow, id: str, config: dict[str, Any], texts: Mapping[str, str]) -> None:
    name, step = flow.names[id], flow.steps[id]
    outputs = titles(flow.nodes[id].get("outputs"))
    fields = flow.writes(id)
    made = {fields[title]: typed(each) for title, each in outputs.items()}
    if len(made) == 1 and next(iter(outputs.values())).get("type") == "string":
        made = {each: str(one.get("description") or "The answer.") for each, one in made.items()}
    if not made:
        field = flow.draft.field("output", *flow.outer, id, wanted=name)
        made, fields = {field: "The answer."}, {"": field}
    config["output"] = made
    head = agent(flow.draft, name, texts, config, fields.values())
    if flow.heads[id] == name:
        flow.heads[id] = head
    else:
        for edge in flow.draft.edges:
            if edge["to"] == name and edge["from"] != head:
                edge["to"] = head
    step.became = f"agent {name}"


def branching(flow: Flow, id: str) -> None:
    """Add a node whose out-edges have conditions."""
    name = flow.names[id]
    title = next(iter(titles(flow.nodes[id].get("inputs"))), "")
    field = flow.draft.field("branch", *flow.outer, id, title, wanted=f"{name}_value")
    fields = {field: "{" + flow.path(id, title) + "}"}
    flow.draft.node(name, "assign", {"fields": fields}, fields)
    flow.steps[id].became = f"assign {name}, and conditions on its edges"


def tool(flow: Flow, id: str) -> None:
    """Add a request, or the call of a tool that is known here; else a question to a person."""
    node = flow.nodes[id]
    given = flow.spec.at(node["tool"])
    if given["component_type"] == "RemoteTool":
        _request(flow, id, given)
        return
    named, step = str(given.get("name") or ""), flow.steps[id]
    known = tool_of(named)
    inputs = list(titles(node.get("inputs")))
    if known is None:
        other(flow, id, f"the tool {named}")
        return
    field = next(iter(flow.writes(id).values()), flow.draft.field("output", *flow.outer, id))
    arguments = {known[2]: flow.value(id, inputs[0])} if known[2] and inputs else {}
    config = {"tool": {"type": known[0]}, "arguments": arguments, "field": field}
    flow.draft.node(flow.names[id], "call_tool", config, [field])
    step.became = f"call_tool {flow.names[id]}, the tool {known[0]}"
    step.approximate(f"{named} is {known[0]} here", "Look at what it gives.")


def api(flow: Flow, id: str) -> None:
    """Add a request."""
    _request(flow, id, flow.nodes[id])


def _request(flow: Flow, id: str, given: Data) -> None:
    step, name = flow.steps[id], flow.names[id]
    sensitive = cast("Data", given.get("sensitive_headers") or {})
    asked = Request(
        method=str(given.get("http_method") or "GET").upper(),
        url=flow.text(id, given.get("url")),
        query=_pairs(flow, id, given.get("query_params")),
        headers=_pairs(flow, id, given.get("headers")),
        secrets=list(sensitive),
    )
    if given.get("data") and asked.method != "GET":
        asked.body = _body(flow, id, given["data"])
        asked.send = "text" if isinstance(asked.body, str) else "json"
    fields = flow.writes(id)
    if not can_be_sent(asked):
        other(flow, id, "the request")
        return
    if len(fields) == 1:
        request(flow.draft, step, name, next(iter(fields.values())), asked)
        return
    field = flow.draft.field("output", *flow.outer, id, wanted=f"{name}_answer")
    request(flow.draft, step, name, field, asked)
    if fields:
        after = flow.tails[id] = flow.draft.name(f"{name}_values")
        taken = {each: {"path": f"{field}.{title}"} for title, each in fields.items()}
        flow.draft.node(after, "assign", {"fields": taken}, taken)
        flow.draft.edge(name, after)


def _pairs(flow: Flow, id: str, given: Any) -> list[tuple[str, str]]:
    pairs = cast("Data", given or {}).items()
    return [(flow.text(id, key), flow.text(id, each)) for key, each in pairs]


def _body(flow: Flow, id: str, given: Any) -> Any:
    if isinstance(given, str):
        return flow.text(id, given)
    if isinstance(given, Mapping):
        items = cast("Data", given).items()
        return {"object": {key: _body(flow, id, each) for key, each in items}}
    return {"value": given}


def message(flow: Flow, id: str) -> None:
    """Add a text for the user."""
    name = flow.names[id]
    field = flow.draft.field("said", *flow.outer, id, wanted=f"{name}_says")
    fields = {field: flow.text(id, flow.nodes[id].get("message"))}
    flow.draft.node(name, "assign", {"fields": fields}, fields)
    flow.steps[id].became = f"assign {name}"
    flow.steps[id].approximate(
        "the message is a field, and is not shown by itself",
        f"Carry the field {field} to the exit.",
    )


def question(flow: Flow, id: str) -> None:
    """Add a question to the user."""
    name, node = flow.names[id], flow.nodes[id]
    asked = flow.draft.field("ask", *flow.outer, id, wanted=f"{name}_question")
    head = flow.draft.name(f"{name}_question")
    text = flow.text(id, node.get("message")) or "What do you say?"
    flow.draft.node(head, "assign", {"fields": {asked: text}}, [asked])
    fields = {each: title for title, each in flow.writes(id).items()}
    config = {"prompt": "{" + asked + "}", "fields": fields or {"reply": "the answer"}}
    flow.draft.node(name, "human_form", config, fields)
    flow.draft.edge(head, name)
    flow.heads[id] = head
    flow.steps[id].became = f"human_form {name}"


def inner(flow: Flow, id: str) -> None:
    """Add the nodes of flows inside the flow, one beside the other."""
    node, name, step = flow.nodes[id], flow.names[id], flow.steps[id]
    several = node.get("subflows") or [node.get("subflow")]
    flow.draft.node(name, "passthrough", {})
    tail = flow.tails[id] = flow.draft.name(f"{name}_after")
    results: dict[str, list[str]] = {}
    for at, each in enumerate(cast("list[Any]", several)):
        given = flow.spec.at(each)
        outer = (*flow.outer, id, str(at))
        sub = Flow(flow.spec, given, f"{flow.place}{name}.", outer, flow.draft)
        known = titles(node.get("inputs"))
        sub.bindings = {t: flow.value(id, t) for t in titles(given.get("inputs")) if t in known}
        sub.convert(KINDS, other)
        flow.draft.edge(name, sub.first())
        for last in sub.lasts():
            flow.draft.edge(sub.tails[last], tail)
            for title in titles(sub.nodes[last].get("outputs") or sub.nodes[last].get("inputs")):
                results.setdefault(title, []).append(sub.field(last, title))
    written = flow.writes(id)
    fields = {f: {"first": results[t]} for t, f in written.items() if t in results}
    flow.draft.node(tail, "assign", {"fields": fields or {"done": {"value": True}}}, fields)
    step.became = f"nodes from {name} to {tail}"
    if node["component_type"] == "CatchExceptionNode":
        step.approximate("errors are not caught", "Put the wrapper fallback around its nodes.")


def each_item(flow: Flow, id: str) -> None:
    """Add a map with the flow inside as its graph."""
    node, name, step, draft = flow.nodes[id], flow.names[id], flow.steps[id], flow.draft
    given = flow.spec.at(node["subflow"])
    inputs = [t for t in titles(node.get("inputs")) if t.startswith(_LIST)]
    over = inputs[0] if inputs else next(iter(titles(node.get("inputs"))), "")
    listed = draft.field("list", *flow.outer, id, wanted=f"{name}_list")
    item = draft.field("item", *flow.outer, id, wanted=f"{name}_item")
    head = flow.heads[id] = draft.name(f"{name}_list")
    value = {**cast("Data", flow.value(id, over)), "as_list": True}
    draft.node(head, "assign", {"fields": {listed: value}}, [listed])
    draft.edge(head, name)
    body = Draft(f"{name}_body", draft)
    takes = body.name("takes")
    body.node(takes, "assign", {"fields": {item: {"path": item}}}, [item])
    body.edge("@entry", takes, keys={item: "the item"})
    sub = Flow(flow.spec, given, f"{flow.place}{name}.", (*flow.outer, id, "0"), body)
    sub.bindings = {over.removeprefix(_LIST): {"path": item}}
    for title in titles(node.get("inputs")):
        if title != over:
            sub.bindings[title.removeprefix(_LIST)] = {"path": flow.path(id, title)}
            body.attributes.setdefault(flow.path(id, title), "")
    sub.convert(KINDS, other)
    body.edge(takes, sub.first())
    written = flow.writes(id)
    field = next(iter(written.values()), draft.field("output", *flow.outer, id))
    last = body.name("gives")
    titled = list(titles(given.get("outputs")))
    ends = sub.lasts()
    results = [sub.field(each, titled[0]) for each in ends] if titled else []
    said: Any = {"first": results} if results else {"value": True}
    body.node(last, "assign", {"fields": {field: said}})
    for each in ends:
        body.edge(sub.tails[each], last)
    body.edge(last, "@exit", keys={field: "what the item gives"})
    is_parallel = node["component_type"] == "ParallelMapNode"
    config = {"over": listed, "item": item, "max_parallel": 10 if is_parallel else 1}
    draft.node(name, "map", {**config, "body": body.graph()}, [field])
    step.became = f"map {name}"
    if len(inputs) > 1 or len(written) > 1:
        step.approximate(
            "one list goes in, and one comes out", "Make one list of objects before it."
        )
    reducers = set(cast("Data", node.get("reducers") or {}).values())
    if reducers - {"append", "APPEND"}:
        step.approximate("the results are a list, and not reduced", "Reduce it in a script.")


def other(flow: Flow, id: str, what: str = "") -> None:
    """Add a question to a person, who does by hand what nothing here does."""
    node, name = flow.nodes[id], flow.names[id]
    fields = flow.writes(id)
    given = {t: "{" + flow.path(id, t) + "}" for t in titles(node.get("inputs"))}
    first = next(iter(fields.values()), flow.draft.field("output", *flow.outer, id, wanted=name))
    kind = what or str(node["component_type"])
    head = ask(flow.draft, flow.steps[id], name, (kind, first), given)
    if flow.heads[id] == name:
        flow.heads[id] = head
    else:
        for edge in flow.draft.edges:
            if edge["to"] == name and edge["from"] != head:
                edge["to"] = head
    if len(fields) > 1:
        made = next(each for each in flow.draft.nodes if each["id"] == name)
        made["config"]["fields"] = {each: title for title, each in fields.items()}
        made["push"] = list(fields.values())


KINDS: Final[Mapping[str, Convert]] = {
    "StartNode": start,
    "EndNode": end,
    **dict.fromkeys(("LlmNode", "LLMNode"), llm),
    "AgentNode": agent_node,
    "BranchingNode": branching,
    "ToolNode": tool,
    "ApiNode": api,
    "OutputMessageNode": message,
    "InputMessageNode": question,
    **dict.fromkeys(("FlowNode", "ParallelFlowNode", "CatchExceptionNode"), inner),
    **dict.fromkeys(("MapNode", "ParallelMapNode"), each_item),
}

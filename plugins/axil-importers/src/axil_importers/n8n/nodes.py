"""n8n's nodes without models: what each becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from axil_importers.draft import Step, literal
from axil_importers.http import Request, can_be_sent, request
from axil_importers.n8n.expressions import nodes_in, text_of, value_of
from axil_importers.n8n.flow import Data, Flow

Convert = Callable[[Flow, str, Step, str], None]
_RUN: Final = """
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const itemsOf = (value) => (Array.isArray(value) ? value : [value]).map((json) => ({ json }));
const reader = (value) => {
  const all = itemsOf(value);
  return { all: () => all, first: () => all[0], last: () => all[all.length - 1], item: all[0],
           json: all[0].json };
};
const $input = reader(given.input), items = $input.all(), item = items[0];
const $json = item.json, $ = (name) => reader(given[name]), $items = (name) => $(name).all();
const $node = new Proxy({}, { get: (_, name) => $(name) });
async function main() {
%s
}
main().then((made) => {
  const plain = [made].flat().map((each) => (each && each.json !== undefined ? each.json : each));
  process.stdout.write(JSON.stringify({ made: plain.length === 1 ? plain[0] : plain }));
});
"""
_RUN_PYTHON: Final = """import json
import sys

given = json.load(sys.stdin)


def items_of(value):
    return [{"json": each} for each in (value if isinstance(value, list) else [value])]


def main(items):
    _items = items
%s


printed, sys.stdout = sys.stdout, sys.stderr
made = main(items_of(given["input"]))
plain = [each.get("json", each) for each in (made if isinstance(made, list) else [made])]
printed.write(json.dumps({"made": plain[0] if len(plain) == 1 else plain}))
"""
_SETS: Final = ("string", "number", "boolean", "values")


def reading(flow: Flow, name: str) -> Callable[[str, str], str]:
    """Return how the expressions of a node find values."""
    return lambda node, inside: flow.path(name, node, inside)


def trigger(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add the input of the run."""
    kind, field = flow.kind(name), flow.field(name)
    inputs = {"input": "What begins the run, as an object."}
    fields: dict[str, Any] = {field: {"path": "input"}}
    if "chat" in kind.lower():
        inputs = {"chatInput": "What the user says."}
        fields = {field: {"object": {"chatInput": {"path": "chatInput"}, "sessionId": "run"}}}
    if kind in ("manualTrigger", "start", "scheduleTrigger", "executeWorkflowTrigger"):
        inputs, fields = {}, {field: {"value": {"started": True}}}
    if kind not in ("manualTrigger", "start", "chatTrigger", "manualChatTrigger"):
        step.approximate(
            f"{kind} does not start runs",
            "Start them with axil serve, axil submit, or the system's timer; give the input.",
        )
    flow.draft.node(made, "assign", {"fields": fields}, fields)
    flow.draft.edge("@entry", made, keys=inputs)
    step.became = f"assign {made}"


def edit(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add fields of an object."""
    given, resolve = flow.parameters(name), reading(flow, name)
    field = flow.field(name)
    pairs: list[tuple[str, Any]] = []
    assignments = cast("Data", given.get("assignments") or {})
    for each in cast("list[Data]", assignments.get("assignments") or []):
        pairs.append((str(each.get("name")), each.get("value")))
    old = cast("Data", given.get("values") or {})
    for kind in _SETS:
        pairs += [(str(e.get("name")), e.get("value")) for e in old.get(kind) or ()]
    for each in cast("list[Data]", cast("Data", given.get("fields") or {}).get("values") or []):
        values = [v for k, v in each.items() if k.endswith("Value")]
        pairs.append((str(each.get("name")), values[0] if values else ""))
    if given.get("mode") == "raw" or "jsonOutput" in given:
        text = text_of(given.get("jsonOutput") or "", resolve, step)
        said: Any = {"first": (), "value": "", "parse": True}
        raw = flow.draft.field("raw", name, wanted=f"{name}_text")
        first = flow.draft.name(f"{made}_text")
        flow.draft.node(first, "assign", {"fields": {raw: text}}, [raw])
        flow.draft.edge(first, made)
        flow.heads[name] = first
        said = {"path": raw, "parse": True}
    else:
        said = (
            {"object": {k: value_of(v, resolve, step) for k, v in pairs}}
            if pairs
            else {"value": {}}
        )
    if given.get("includeOtherFields") or (old and not given.get("keepOnlySet")):
        step.approximate("other fields are not kept", "Read them of the node before.")
    flow.draft.node(made, "assign", {"fields": {field: said}}, [field])
    step.became = f"assign {made}"


def code(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add the program, with what came as JSON."""
    given, field = flow.parameters(name), flow.field(name)
    text = str(given.get("jsCode") or given.get("functionCode") or given.get("pythonCode") or "")
    names = [each for each in nodes_in(text) if each in flow.nodes]
    inputs = {"input": {"path": flow.path(name, "", "")}}
    inputs |= {each: {"path": flow.path(name, each, "")} for each in names}
    is_python = str(given.get("language", "")).startswith("python")
    if is_python:
        body = "\n".join(f"    {line}" for line in text.splitlines())
        config = {"code": _RUN_PYTHON.replace("%s", body or "    return items")}
    else:
        config = {"code": _RUN.replace("%s", text or "return items;"), "interpreter": "node"}
        step.approximate("the program is JavaScript", "Node.js has to be installed.")
    config = {**config, "inputs": inputs, "fields": {field: "made"}}
    flow.draft.node(made, "script", config, [field])
    step.became = f"script {made} (needs --allow code)"
    if "$env" in text or "$helpers" in text or "this.helpers" in text:
        step.approximate("it uses what only n8n gives", "Write that part of the program anew.")


def http(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add a request; one whose host is a value is a page that is got, else left to a person."""
    given, field = flow.parameters(name), flow.field(name)
    asked = _request(flow, name, step)
    if can_be_sent(asked):
        request(flow.draft, step, made, field, asked)
        return
    if asked.method != "GET":
        ask(flow, name, step, made)
        return
    config = {"tool": {"type": "http_get"}, "arguments": {"url": asked.url}, "field": field}
    flow.draft.node(made, "call_tool", config, [field])
    step.became = f"call_tool {made} (needs --allow network)"
    if asked.headers or asked.query:
        step.approximate("headers and parameters are not sent", "Put parameters into the address.")
    if given.get("authentication") not in (None, "none"):
        step.approximate("it does not log in", "Write a tool of your own, with the key.")


def _request(flow: Flow, name: str, step: Step) -> Request:
    given, resolve = flow.parameters(name), reading(flow, name)
    asked = Request(
        method=str(given.get("method") or given.get("requestMethod") or "GET"),
        url=text_of(given.get("url") or "", resolve, step).strip(),
        query=_pairs(flow, name, step, ("queryParameters", "queryParametersUi")),
        headers=_pairs(flow, name, step, ("headerParameters", "headerParametersUi")),
    )
    for key in ("jsonQuery", "queryParametersJson", "jsonHeaders", "headerParametersJson"):
        if given.get(key):
            step.approximate(f"{key} is not sent", "Write it into query or headers of the node.")
    if given.get("authentication") not in (None, "none"):
        asked.secrets.append("Authorization")
    kind = str(given.get("contentType") or given.get("bodyContentType") or "json")
    said = given.get("jsonBody") or given.get("bodyParametersJson")
    plain = given.get("body") if kind in ("raw", "json") else None
    pairs = _pairs(flow, name, step, ("bodyParameters", "bodyParametersUi"))
    if asked.method == "GET" or given.get("sendBody") is False:
        return asked
    if said or isinstance(plain, str | Mapping):
        asked.body = value_of(said or plain, resolve, step)
        if isinstance(asked.body, str):
            media = str(given.get("rawContentType") or "application/json")
            asked.send, asked.headers = "text", [*asked.headers, ("Content-Type", media)]
    elif pairs:
        asked.body = {"object": dict(pairs)}
        asked.send = "json" if kind == "json" else "form"
    if kind in ("binaryData", "multipart-form-data"):
        step.approximate("files are not sent", "Send them by a tool of your own.")
    return asked


def _pairs(flow: Flow, name: str, step: Step, keys: tuple[str, ...]) -> list[tuple[str, Any]]:
    given, resolve = flow.parameters(name), reading(flow, name)
    found: list[tuple[str, Any]] = []
    for key in keys:
        inner = given.get(key)
        if isinstance(inner, Mapping):
            said = cast("Data", inner)
            for each in cast("list[Data]", said.get("parameters") or said.get("parameter") or []):
                if each.get("name"):
                    value = value_of(each.get("value", ""), resolve, step)
                    found.append((str(each["name"]), value))
    return found


def merge(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add the union of what came."""
    fields = flow.sources(name)
    field = flow.field(name)
    said: Any = {"merge": fields} if fields else {"value": ""}
    flow.draft.node(made, "assign", {"fields": {field: said}}, [field])
    step.became = f"assign {made}"
    mode = str(flow.parameters(name).get("mode") or "append")
    if mode not in ("combine", "multiplex", "passThrough", "wait", "chooseBranch"):
        step.approximate(
            f'the mode "{mode}" gives one object of all', "Read the nodes before it by their names."
        )


def passing(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add what came, unchanged."""
    flow.draft.node(made, "passthrough", {})
    step.became = f"passthrough {made}"
    if flow.kind(name) == "wait":
        step.approximate("it does not wait", "Give the time to the tool sleep.")
    if flow.kind(name) == "stopAndError":
        step.approximate("it does not fail the run", "Let a script fail there.")


def listing(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add a list: taken out of what came, or cut."""
    given, field, kind = flow.parameters(name), flow.field(name), flow.kind(name)
    inside = str(given.get("fieldToSplitOut") or "") if kind in ("splitOut", "itemLists") else ""
    said: dict[str, Any] = {"path": flow.path(name, "", inside.split(",")[0].strip())}
    if kind == "limit":
        most = given.get("maxItems", 1)
        said["take"] = most if isinstance(most, int) else 1
        if not isinstance(most, int):
            step.approximate("how many is JavaScript; it is one here", "Set take.")
    elif kind in ("sort", "removeDuplicates", "summarize"):
        step.leave(f"{kind} is not done", "Do it in a script.")
    else:
        step.approximate(
            "nodes behind it get the whole list", "Put what is to run once per item into a map."
        )
    flow.draft.node(made, "assign", {"fields": {field: said}}, [field])
    step.became = f"assign {made}"


def batches(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add a cycle that takes one item after another."""
    draft, field = flow.draft, flow.field(name)
    rest = draft.field("rest", name, wanted=f"{name}_rest")
    begin, take = draft.name(f"{made}_begin"), draft.name(f"{made}_item")
    outside = [each for each in flow.into.get(name, []) if not reaches(flow, name, each)]
    fields = [flow.field(each) for each in outside] or flow.sources(name)[:1]
    listed: dict[str, Any] = {"first": fields, "as_list": True} if fields else {"value": []}
    draft.node(begin, "assign", {"fields": {rest: listed}}, [rest])
    draft.node(made, "passthrough", {})
    taken = {field: {"path": rest, "at": 0}, rest: {"path": rest, "drop": 1}}
    draft.node(take, "assign", {"fields": taken}, taken)
    draft.edge(begin, made)
    draft.edge(made, take, f"len(state.{rest}) > 0")
    flow.heads[name] = begin
    step.became = f"a cycle from {made}"
    is_new = float(flow.nodes[name].get("typeVersion") or 1) >= 3
    done = flow.main.get(name, [])[0 if is_new else 1 :][:1]
    if not any(done):
        draft.edge(made, "@exit", f"not (len(state.{rest}) > 0)")
    if flow.parameters(name).get("batchSize") not in (None, 1, "1"):
        step.approximate("one item is taken at a time", "A batch is a list that is cut by take.")


def reaches(flow: Flow, source: str, target: str) -> bool:
    """Return whether a way leads from one node to another."""
    seen, waiting = {source}, [source]
    while waiting:
        for ends in flow.main.get(waiting.pop(), []):
            for each in ends:
                if each == target:
                    return True
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
    return False


def respond(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add the output of the run."""
    given = flow.parameters(name)
    body = given.get("responseBody")
    said = text_of(body, reading(flow, name), step) if body else {"path": flow.path(name, "", "")}
    field = flow.field(name)
    flow.draft.node(made, "assign", {"fields": {field: said}}, [field])
    step.became = f"assign {made}"


def ask(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add a question to a person, who does by hand what nothing here does."""
    given, field, kind = flow.parameters(name), flow.field(name), flow.kind(name)
    prompt = flow.draft.field("ask", name, wanted=f"{name}_question")
    first = flow.draft.name(f"{made}_question")
    lines = [f"Do by hand what {literal(kind)} ({literal(name)}) did, and give its result."]
    for key, value in given.items():
        if isinstance(value, str | int | float) and value != "":
            lines.append(f"{literal(key)}: {text_of(value, reading(flow, name), step)}")
    flow.draft.node(first, "assign", {"fields": {prompt: "\n".join(lines)}}, [prompt])
    config = {"prompt": "{" + prompt + "}", "fields": {field: "the result"}}
    flow.draft.node(made, "human_form", config, [field])
    flow.draft.edge(first, made)
    flow.heads[name] = first
    step.became = f"human_form {made}, which asks a person"
    step.leave(
        f"nothing here does {kind}",
        "Put a node of your own there: call_tool with your tool, a script, an MCP server.",
    )


KINDS: Final[Mapping[str, Convert]] = {
    **dict.fromkeys(("set", "editFields"), edit),
    **dict.fromkeys(("code", "function", "functionItem"), code),
    **dict.fromkeys(("noOp", "wait", "stopAndError", "if", "filter", "switch"), passing),
    **dict.fromkeys(
        ("splitOut", "itemLists", "aggregate", "limit", "sort", "removeDuplicates", "summarize"),
        listing,
    ),
    "httpRequest": http,
    "merge": merge,
    "splitInBatches": batches,
    "respondToWebhook": respond,
}

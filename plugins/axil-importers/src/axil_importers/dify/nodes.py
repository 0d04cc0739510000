"""Dify's nodes without models: what each becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from axil_importers.dify.scope import JINJA, Node, Scope, title_of
from axil_importers.draft import Step, literal, prompt_literal
from axil_importers.http import Request, can_be_sent, request
from axil_importers.models import tool_of

Convert = Callable[[Scope, Node, Step, str], None]
_RUN_PYTHON: Final = """
import json as _json
import sys as _sys

_printed, _sys.stdout = _sys.stdout, _sys.stderr
_printed.write(_json.dumps(main(**_json.load(_sys.stdin)), ensure_ascii=False))
"""
_RUN_JAVASCRIPT: Final = """
const _given = JSON.parse(require("fs").readFileSync(0, "utf8"));
Promise.resolve(main(_given)).then((made) => process.stdout.write(JSON.stringify(made)));
"""
_JINJA: Final = """import json
import sys

from jinja2.sandbox import SandboxedEnvironment

given = json.load(sys.stdin)
text = SandboxedEnvironment().from_string(given.pop("template")).render(given)
print(json.dumps({"output": text}))
"""


def start(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add the inputs, as fields."""
    variables = cast("list[Mapping[str, Any]]", node["data"].get("variables") or [])
    inputs = {str(each["variable"]): str(each.get("label") or "") for each in variables}
    fields = {scope.writes(node, each)[0]: label for each, label in inputs.items()}
    if any(each.get("required") is False for each in variables):
        step.approximate(
            "inputs that may be missing have to be given", "Give an empty text for what is missing."
        )
    if scope.whole.kinds.get("sys") == "chat":
        query, _ = scope.field(["sys", "query"])
        scope.whole.written.add(query)
        fields = {query: "What the user says.", **fields}
    if any(str(each.get("type", "")).startswith("file") for each in variables):
        step.approximate(
            "a file is given as its path in the workspace", "Put it there: --workspace DIR."
        )
    if not fields:
        _pass(scope, name, step)
        scope.draft.edge("@entry", name, keys={})
        return
    _assign(scope, name, step, {each: {"path": each} for each in fields})
    scope.draft.edge("@entry", name, keys={k: v or k for k, v in fields.items()})


def end(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add the outputs, and the way to the exit."""
    outputs = cast("list[Mapping[str, Any]]", node["data"].get("outputs") or [])
    made = {
        str(each["variable"]): {"path": scope.path(each.get("value_selector") or (), step)}
        for each in outputs
    }
    _assign(scope, name, step, made or {"done": {"value": True}}, is_pushed=False)
    scope.draft.edge(name, "@exit", keys={each: each for each in made or {"done": ""}})


def answer(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a text for the user, and the way to the exit."""
    (field,) = scope.writes(node, "answer")
    _assign(scope, name, step, {field: scope.template(node["data"].get("answer"), step)})
    back = {"answer": "{" + field + "}"}
    said = scope.draft.name(f"{name}_says")
    scope.draft.node(said, "assign", {"fields": back})
    scope.draft.edge(name, said)
    scope.draft.edge(said, "@exit", keys={"answer": "What the user is told."})


def code(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add the program, with its inputs as JSON."""
    data = node["data"]
    given = cast("list[Mapping[str, Any]]", data.get("variables") or [])
    inputs = {
        str(each["variable"]): {"path": scope.path(each.get("value_selector") or (), step)}
        for each in given
    }
    is_python = str(data.get("code_language", "python3")).startswith("python")
    outputs = list(cast("Mapping[str, Any]", data.get("outputs") or {"result": {}}))
    fields = dict(zip(scope.writes(node, *outputs), outputs, strict=True))
    config: dict[str, Any] = {
        "code": f"{data.get('code') or ''}\n{_RUN_PYTHON if is_python else _RUN_JAVASCRIPT}",
        "inputs": inputs,
        "fields": fields,
    }
    if not is_python:
        config["interpreter"] = "node"
        step.approximate("the program is JavaScript", "Node.js has to be installed.")
    scope.draft.node(name, "script", config, fields)
    step.became = f"script {name} (needs --allow code)"


def template(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a text with places; with statements and filters of Jinja, a program that renders it."""
    data = node["data"]
    variables = {
        str(each["variable"]): scope.path(each.get("value_selector") or (), step)
        for each in cast("list[Mapping[str, Any]]", data.get("variables") or [])
    }
    (field,) = scope.writes(node, "output")
    text = str(data.get("template") or "")
    parts: list[str] = []
    at = 0
    for place in JINJA.finditer(text):
        rest = place[2].replace("[", ".").replace("]", "")
        parts += [
            literal(text[at : place.start()]),
            "{" + variables.get(place[1], place[1]) + rest + "}",
        ]
        at = place.end()
    if "{%" in text or "{{" in JINJA.sub("", text):
        inputs = {each: {"path": path} for each, path in variables.items()}
        config = {"code": _JINJA, "inputs": {"template": literal(text), **inputs}}
        scope.draft.node(name, "script", {**config, "fields": {field: "output"}}, [field])
        step.became = f"script {name} (needs --allow code)"
        step.approximate(
            "the template has statements or filters of Jinja",
            "Install jinja2, or write the text as an assign.",
        )
        return
    _assign(scope, name, step, {field: "".join(parts) + literal(text[at:])})


def aggregator(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add the first of several variables that has a value."""
    advanced = cast("Mapping[str, Any]", node["data"].get("advanced_settings") or {})
    groups = cast("list[Mapping[str, Any]]", advanced.get("groups") or [])
    if not advanced.get("group_enabled"):
        groups = [{"group_name": "", "variables": node["data"].get("variables")}]
    fields: dict[str, Any] = {}
    for group in groups:
        label = str(group.get("group_name") or "")
        (field,) = scope.writes(node, f"{label}_output" if label else "output")
        paths = [scope.path(each, step) for each in group.get("variables") or ()]
        fields[field] = {"first": paths} if paths else {"value": ""}
    _assign(scope, name, step, fields)


def assigner(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add variables that are set, emptied or grow."""
    data = node["data"]
    items = cast("list[Mapping[str, Any]]", data.get("items") or [])
    if not items:
        given = {"type": "variable", "value": data.get("input_variable_selector")}
        target = data.get("assigned_variable_selector")
        mode = data.get("write_mode") or "over-write"
        one: dict[str, Any] = {"variable_selector": target, "operation": mode, "value": given}
        items = [one]
    fields: dict[str, Any] = {}
    for each in items:
        selector = cast("list[Any]", each.get("variable_selector") or [])
        field, _ = scope.field(selector)
        scope.whole.written.add(field)
        value = each.get("value")
        if each.get("input_type") == "variable" and isinstance(value, list):
            value = cast("Any", {"type": "variable", "value": value})
        fields[field] = _assigned(scope, step, (str(each.get("operation")), field), value)
    _assign(scope, name, step, fields)


def _assigned(scope: Scope, step: Step, how: tuple[str, str], value: Any) -> Any:
    operation, field = how
    made = scope.value(value, step)
    inner = cast("dict[str, Any]", made) if isinstance(made, dict) else {"value": made}
    if operation in ("clear", "remove-first", "remove-last") and operation != "clear":
        step.approximate(f"{operation} is not done", f"Write the field {field} by a script.")
        return {"path": field}
    if operation == "clear":
        return {"value": ""}
    if operation in ("append", "extend", "+=", "-="):
        scope.reads.add(field)
        number = inner.get("value")
        if "path" in inner and operation != "-=":
            return {"path": field, "plus": inner["path"]}
        if isinstance(number, int | float):
            return {"path": field, "plus": -number if operation == "-=" else number}
    if operation not in ("over-write", "overwrite", "set"):
        step.approximate(f'"{operation}" is done as overwriting', f"Look at the field {field}.")
    return cast("Any", made)


def http(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a request; one whose host is a value is a page that is got, else left to a person."""
    data = node["data"]
    asked = _request(scope, node, step)
    if not can_be_sent(asked) and asked.method != "GET":
        ask(scope, node, step, name)
        return
    body, status, _, _ = scope.writes(node, "body", "status_code", "headers", "files")
    if can_be_sent(asked):
        asked.status = status
        request(scope.draft, step, name, body, asked)
        return
    scope.draft.node(
        name,
        "call_tool",
        {"tool": {"type": "http_get"}, "arguments": {"url": asked.url}, "field": body},
        [body],
    )
    step.became = f"call_tool {name} (needs --allow network)"
    if data.get("headers") or data.get("params") or asked.secrets:
        step.approximate(
            "headers, parameters and authorization are not sent",
            "Put parameters into the address; for a key write a tool of your own.",
        )


def _request(scope: Scope, node: Node, step: Step) -> Request:
    data = node["data"]
    asked = Request(
        method=str(data.get("method") or "get").upper(),
        url=scope.template(data.get("url"), step).strip(),
        query=_lines(scope, data.get("params"), step),
        headers=_lines(scope, data.get("headers"), step),
        parse=False,
    )
    auth = cast("Mapping[str, Any]", data.get("authorization") or {})
    if auth.get("type") not in (None, "no-auth"):
        config = cast("Mapping[str, Any]", auth.get("config") or {})
        asked.secrets.append(str(config.get("header") or "Authorization"))
    body = cast("Mapping[str, Any]", data.get("body") or {})
    kind, given = str(body.get("type") or "none"), cast("Any", body.get("data"))
    items = cast("list[Mapping[str, Any]]", given) if isinstance(given, list) else []
    if kind in ("json", "raw-text"):
        text = str((items[0].get("value") if items else cast("Any", given)) or "")
        if text:
            media = "application/json" if kind == "json" else "text/plain"
            asked.body, asked.send = scope.template(text, step), "text"
            asked.headers = [*asked.headers, ("Content-Type", media)]
    elif kind in ("form-data", "x-www-form-urlencoded"):
        pairs = [
            (str(e["key"]), scope.template(e.get("value"), step))
            for e in items
            if e.get("key") and e.get("type") != "file"
        ] or _lines(scope, given, step)
        asked.body, asked.send = {"object": dict(pairs)}, "form"
        if len(pairs) < len(items):
            step.approximate("files are not sent", "Send them by a tool of your own.")
    elif kind == "binary":
        step.approximate("files are not sent", "Send them by a tool of your own.")
    return asked


def _lines(scope: Scope, given: Any, step: Step) -> list[tuple[str, str]]:
    """Return pairs that are written as lines, ``name: value``."""
    if not isinstance(given, str):
        return []
    pairs = (line.partition(":") for line in given.splitlines() if ":" in line)
    return [(key.strip(), scope.template(value.strip(), step)) for key, _, value in pairs]


def extractor(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a file of the workspace, as text."""
    (field,) = scope.writes(node, "text")
    path = {"path": scope.path(node["data"].get("variable_selector") or (), step)}
    config = {"tool": {"type": "load_file"}, "arguments": {"path_or_id": path}, "field": field}
    scope.draft.node(name, "call_tool", config, [field])
    step.became = f"call_tool {name}"
    step.approximate(
        "the file is read from the workspace, as text", "Give its path, and --workspace DIR."
    )


def listing(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a list, cut to size."""
    data = node["data"]
    path = scope.path(data.get("variable") or (), step)
    result, first, last = scope.writes(node, "result", "first_record", "last_record")
    limit = cast("Mapping[str, Any]", data.get("limit") or {})
    whole: dict[str, Any] = {"path": path}
    if limit.get("enabled"):
        whole["take"] = int(limit.get("size") or 1)
    _assign(
        scope,
        name,
        step,
        {result: whole, first: {"path": path, "at": 0}, last: {"path": path, "at": -1}},
    )
    for part in ("filter_by", "order_by", "extract_by"):
        if cast("Mapping[str, Any]", data.get(part) or {}).get("enabled"):
            step.approximate(f"{part} is not done", "Do it in a script before this node.")


def retrieval(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a search in texts that are to be put in: an export does not hold the knowledge."""
    data = node["data"]
    (field,) = scope.writes(node, "result")
    query = {"path": scope.path(data.get("query_variable_selector") or (), step)}
    provider = {"type": "keyword", "documents": ["Put what is to be known here."]}
    config = {"provider": provider, "query": query, "field": field}
    scope.draft.node(name, "retrieve", config, [field])
    step.became = f"retrieve {name}"
    step.approximate(
        "the export does not hold the knowledge",
        "Put texts into documents, or name paths; or another provider: chroma, store.",
    )


def tool(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a tool that is known here; another is left to a person."""
    data = node["data"]
    called = str(data.get("tool_name") or "")
    known = tool_of(called) or tool_of(str(data.get("provider_id") or ""))
    parameters = {
        **cast("Mapping[str, Any]", data.get("tool_configurations") or {}),
        **cast("Mapping[str, Any]", data.get("tool_parameters") or {}),
    }
    if known is None:
        ask(scope, node, step, name)
        return
    theirs, argument, ours = known
    field = scope.writes(node, "text")[0]
    names = [each for each in parameters if each in (argument, "query", "url", "urls", "input")]
    arguments = {ours: scope.value(parameters[names[0]], step)} if ours and names else {}
    config = {"tool": {"type": theirs}, "arguments": arguments, "field": field}
    scope.draft.node(name, "call_tool", config, [field])
    step.became = f"call_tool {name}, the tool {theirs}"
    step.approximate(
        f"the tool {called} is {theirs} here", "Look at what it gives; other settings are left out."
    )


def human(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a question to a person, with the actions as one of its answers."""
    data = node["data"]
    inputs = cast("list[Mapping[str, Any]]", data.get("inputs") or [])
    names = [str(each.get("output_variable_name") or each.get("variable")) for each in inputs]
    actions = cast("list[Mapping[str, Any]]", data.get("user_actions") or [])
    fields = dict(zip(scope.writes(node, *names), names, strict=True))
    if actions:
        (chosen,) = scope.writes(node, "__action_id")
        fields[chosen] = "one of " + ", ".join(str(each["id"]) for each in actions)
    ahead: dict[str, Any] = {}
    prompt = scope.flat(data.get("form_content"), step, ahead)
    before(scope, name, node, ahead)
    config = {"prompt": prompt or title_of(node), "fields": fields or {"answer": "the answer"}}
    scope.draft.node(name, "human_form", config, fields)
    step.became = f"human_form {name}"
    if data.get("delivery_methods"):
        step.approximate(
            "the question is not sent by itself",
            "Answer with axil runs answer, on the page, or by a channel.",
        )


def ask(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add a question to a person, who does by hand what nothing here does."""
    data = node["data"]
    kind = str(data.get("type"))
    theirs = str(data.get("tool_label") or data.get("tool_name") or data.get("method") or kind)
    names = ["body", "status_code"] if kind == "http-request" else ["text", "json"]
    given = data.get("tool_parameters") or {k: data.get(k) for k in ("url", "body") if data.get(k)}
    ahead: dict[str, Any] = {}
    texts: list[str] = []
    for key, value in cast("Mapping[str, Any]", given).items():
        inner: Any = value
        if isinstance(value, Mapping):
            inner = cast("Mapping[str, Any]", value).get("value", "")
        if isinstance(inner, list):
            shown = "{{#" + ".".join(str(each) for each in cast("list[Any]", inner)) + "#}}"
            is_selector = len(cast("list[Any]", inner)) > 1 and kind == "tool"
            inner = shown if is_selector else cast("Any", inner)
        texts.append(f"{prompt_literal(str(key))}: {scope.flat(inner, step, ahead)}")
    fields = scope.writes(node, *names)
    before(scope, name, node, ahead)
    what = f"{prompt_literal(kind)} {prompt_literal(theirs)}"
    prompt = f"Do by hand what {what} did, and give its result.\n"
    config = {"prompt": prompt + "\n".join(texts), "fields": {fields[0]: "the result"}}
    scope.draft.node(name, "human_form", config, fields[:1])
    step.became = f"human_form {name}, which asks a person"
    step.leave(
        f"nothing here does {kind} {theirs}",
        "Put a node of your own there: call_tool with your tool, a script, an MCP server.",
    )


def before(scope: Scope, name: str, node: Node, ahead: Mapping[str, Any]) -> None:
    """Add a node ahead that makes fields; edges lead there instead."""
    if ahead:
        first = scope.draft.name(f"{name}_values")
        scope.draft.node(first, "assign", {"fields": dict(ahead)}, ahead)
        scope.draft.edge(first, name)
        scope.heads[str(node["id"])] = first


def _assign(
    scope: Scope, name: str, step: Step, fields: Mapping[str, Any], *, is_pushed: bool = True
) -> None:
    scope.draft.node(name, "assign", {"fields": dict(fields)}, fields if is_pushed else ())
    step.became = f"assign {name}"


def _pass(scope: Scope, name: str, step: Step) -> None:
    scope.draft.node(name, "passthrough", {})
    step.became = f"passthrough {name}"


KINDS: Final[Mapping[str, Convert]] = {
    "start": start,
    "end": end,
    "answer": answer,
    "code": code,
    "template-transform": template,
    "variable-aggregator": aggregator,
    "variable-assigner": aggregator,
    "assigner": assigner,
    "http-request": http,
    "document-extractor": extractor,
    "list-operator": listing,
    "knowledge-retrieval": retrieval,
    "tool": tool,
    "human-input": human,
}

"""Flowise's agentflows: what a node gives is a field of the state, and edges only trigger."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from axil_importers.draft import Draft, Step, state_of
from axil_importers.flowise.nodes import Data, nodes_of
from axil_importers.flowise.texts import plain, text_of, value_of
from axil_importers.http import Request, can_be_sent, request
from axil_importers.imported import Imported
from axil_importers.models import model_of, tool_of
from axil_importers.parts import agent, ask, call, keyword, retrieve

_PROVIDERS: Final = {"openai": "openai", "anthropic": "anthropic", "google": "google"}
_TYPES: Final = {"string": "string", "number": "number", "boolean": "boolean"}
_SAYING: Final = frozenset(
    {"llm", "agent", "tool", "retriever", "customFunction", "http", "executeFlow"}
)
_INSIDE: Final = frozenset({"output", "content", "text"})
_RUN: Final = """
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const $flow = { state: given.state || {} }, $vars = {};
%s
async function main() {
%s
}
main().then((made) => process.stdout.write(JSON.stringify({ made: made ?? "" })));
"""
_JUDGED: Final = {
    "equal": "{0} == {1}",
    "notEqual": "not ({0} == {1})",
    "contains": "{1} in {0}",
    "notContains": "not ({1} in {0})",
    "smaller": "{0} < {1}",
    "smallerEqual": "{0} <= {1}",
    "larger": "{0} > {1}",
    "largerEqual": "{0} >= {1}",
    "isEmpty": "not {0}",
    "empty": "not {0}",
    "notEmpty": "{0}",
    "is": "{0} == {1}",
    "isNot": "not ({0} == {1})",
}


class Agentflow:
    """One agentflow being imported."""

    def __init__(self, given: Data, draft: Draft) -> None:
        self.draft = draft
        self.nodes: dict[str, Data] = {}
        self.steps: dict[str, Step] = {}
        self.owners: dict[str, str] = {}
        for at, id, each in nodes_of(given, draft):
            self.nodes[id] = cast("Data", each["data"])
            self.owners[id] = str(each.get("parentNode") or "")
            self.steps[id] = draft.step(f'nodes[{at}] "{self.title(id)}"', self.kind(id))
        edges = cast("list[Data]", given["edges"])
        self.edges = [
            (str(e["source"]), str(e.get("sourceHandle")), str(e["target"])) for e in edges
        ]
        self.heads: dict[str, str] = {}
        self.tails: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def kind(self, id: str) -> str:
        """Return the type of a node, without its ending."""
        return str(self.nodes[id]["name"]).removesuffix("Agentflow")

    def title(self, id: str) -> str:
        """Return what people call a node."""
        return str(self.nodes[id].get("label") or self.nodes[id]["name"])

    def setting(self, id: str, name: str) -> Any:
        """Return a setting of a node, whose names begin with its kind; or None."""
        inputs = cast("Data", self.nodes[id]["inputs"] or {})
        value: Any = inputs.get(self.kind(id) + name)
        if value in (None, "", [], {}):
            value = inputs.get(name[:1].lower() + name[1:])
        return None if value in ("", [], {}) else value

    def field(self, id: str) -> str:
        """Return the field that holds what a node gives."""
        return self.draft.field("node", id, wanted=self.title(id))

    def state(self, key: str) -> str:
        """Return the field of a key of the flow's state."""
        return self.draft.field("state", key, wanted=key)

    def resolve(self, id: str) -> Callable[[str], str]:
        """Return how the texts of a node find the path of a variable."""

        def found(variable: str) -> str:
            path = sought(variable)
            if path and self.owners.get(id):
                self.draft.attributes.setdefault(path.partition(".")[0], "")
            return path

        def sought(variable: str) -> str:
            first, *rest = variable.replace("[", ".").replace("]", "").split(".")
            if first == "question":
                return self.draft.field("@in", "question", wanted="question")
            if first == "$form" and rest:
                return ".".join([self.draft.field("@in", rest[0], wanted=rest[0]), *rest[1:]])
            if first == "$flow" and rest[:1] == ["state"] and len(rest) > 1:
                field = self.state(rest[1])
                self.draft.attributes.setdefault(field, "")
                return ".".join([field, *rest[2:]])
            if first == "$iteration":
                return ".".join([self.draft.field("item", self.owners.get(id, "")), *rest])
            owner = id if first == "output" else first
            if owner not in self.nodes:
                return ""
            while rest and rest[0] in _INSIDE:
                rest = rest[1:]
            return ".".join([self.field(owner), *rest])

        return found

    def text(self, id: str, given: Any) -> str:
        """Return a text of a node with places of axil."""
        return text_of(given, self.resolve(id), self.steps[id])

    def earlier(self, id: str) -> list[str]:
        """Return the nodes whose results are the messages before a node."""
        found: list[str] = []
        seen, waiting = {id}, [id]
        while waiting:
            at = waiting.pop()
            for source, _, target in self.edges:
                if target != at or source in seen or source not in self.nodes:
                    continue
                seen.add(source)
                is_said = self.kind(source) in _SAYING and self.owners[source] == self.owners[id]
                (found if is_said else waiting).append(source)
        return found

    # ------------------------------------------------------------------ the graph

    def imported(self) -> Imported:
        """Return the workflow file and the findings."""
        self.scope("", self.draft)
        return self.draft.imported()

    def scope(self, owner: str, draft: Draft) -> None:
        """Add the nodes of one graph, and their edges."""
        outer, self.draft = self.draft, draft
        own = [each for each in self.nodes if self.owners[each] == owner]
        for id in own:
            name = self.names[id] = draft.name(self.title(id))
            self.heads[id] = self.tails[id] = name
            _KINDS.get(self.kind(id), _other)(self, id, name)
            self._update(id, name)
        for id in own:
            self._wire(id, own)
        self.draft = outer

    def _update(self, id: str, name: str) -> None:
        """Write the state as a node does after its work."""
        given = self.setting(id, "UpdateState")
        pairs = [
            (
                self.state(str(each["key"])),
                value_of(each.get("value"), self.resolve(id), self.steps[id]),
            )
            for each in cast("list[Data]", given or [])
            if each.get("key")
        ]
        if pairs:
            after = self.draft.name(f"{name}_state")
            self.draft.node(after, "assign", {"fields": dict(pairs)}, dict(pairs))
            self.draft.edge(name, after)
            self.tails[id] = after

    def _wire(self, id: str, own: list[str]) -> None:
        kind, draft = self.kind(id), self.draft
        if kind == "loop":
            _back(self, id, own)
            return
        asked = _branches(self, id)
        ends = [(handle, target) for source, handle, target in self.edges if source == id]
        for handle, target in ends:
            number = handle.rpartition("-")[2]
            at = int(number) if number.isdecimal() else -1
            if target in own:
                draft.edge(
                    self.tails[id], self.heads[target], asked[at] if 0 <= at < len(asked) else ""
                )
        if not any(target == id for _, _, target in self.edges) and kind != "start":
            draft.edge("@entry", self.heads[id])
        taken = {int(n) for h, _ in ends if (n := h.rpartition("-")[2]).isdecimal()}
        field = self.field(id)
        writes = {str(each["id"]): each.get("push", []) for each in draft.nodes}
        keys = {field: f"what {self.title(id)} gives"} if field in writes[self.names[id]] else {}
        if not ends:
            draft.edge(self.tails[id], "@exit", keys=keys)
        for at, when in enumerate(asked):
            if ends and at not in taken:
                draft.edge(self.tails[id], "@exit", when, keys={})


def _back(flow: Agentflow, id: str, own: list[str]) -> None:
    """Lead back to an earlier node, so often as the loop allows."""
    draft, name, step = flow.draft, flow.names[id], flow.steps[id]
    target = str(flow.setting(id, "BackToNode") or "").partition("-")[0]
    if target not in own:
        step.leave("the node that it goes back to is not there", "Draw an edge from it.")
        draft.edge(name, "@exit", keys={})
        return
    count = flow.field(id)
    most = flow.setting(id, "MaxCount") or cast("Data", flow.nodes[id]["inputs"]).get(
        "maxLoopCount"
    )
    number = int(str(most)) if str(most).isdecimal() else 5
    draft.edge(name, flow.heads[target], f"state.{count} <= {number}")
    draft.edge(name, "@exit", f"not (state.{count} <= {number})", keys={})


def _branches(flow: Agentflow, id: str) -> list[str]:
    """Return the conditions of the outputs of a node."""
    kind, step, field = flow.kind(id), flow.steps[id], flow.field(id)
    if kind == "conditionAgent":
        return [f"state.{field} == {_quoted(each)}" for each in _scenarios(flow, id)]
    if kind == "humanInput":
        return [f'state.{field} == "{word}"' for word in ("proceed", "reject")]
    if kind != "condition":
        return []
    made: list[str] = []
    for each in cast(
        "list[Data]", flow.setting(id, "Conditions") or flow.nodes[id]["inputs"]["conditions"]
    ):
        operation = str(each.get("operation") or "equal")
        sides = [_side(flow, id, each, key) for key in ("value1", "value2")]
        if operation not in _JUDGED:
            step.approximate(f'"{operation}" is asked as "contains"', "Correct its out-edges.")
        own = _JUDGED.get(operation, "{1} in {0}").format(*sides)
        made.append(" and ".join([*(f"not ({e})" for e in made), f"({own})"]) if made else own)
    return [*made, " and ".join(f"not ({each})" for each in made) or "true"]


def _side(flow: Agentflow, id: str, given: Data, key: str) -> str:
    said = value_of(str(given.get(key) or ""), flow.resolve(id), flow.steps[id])
    if isinstance(said, dict):
        return state_of(str(cast("Data", said)["path"]))
    text = plain(given.get(key))
    if given.get("type") == "number":
        if re.fullmatch(r"-?\d+(\.\d+)?", text):
            return text
        return "0"
    if given.get("type") == "boolean":
        return "true" if text.lower() == "true" else "false"
    if "{{" in text:
        flow.steps[id].approximate(
            "it compares with a text that has variables in it", "Make the text with an assign."
        )
    return _quoted(text)


def _quoted(text: str) -> str:
    plain = " ".join(text.split())
    return '"' + plain.replace('"', "'").replace("\\", "/") + '"'


def _scenarios(flow: Agentflow, id: str) -> list[str]:
    given = cast("list[Data]", flow.setting(id, "Scenarios") or [])
    return [" ".join(plain(each.get("scenario")).split()) for each in given]


# ---------------------------------------------------------------------- nodes


def _start(flow: Agentflow, id: str, name: str) -> None:
    draft = flow.draft
    for each in cast("list[Data]", flow.setting(id, "State") or []):
        if each.get("key"):
            draft.attributes[flow.state(str(each["key"]))] = plain(each.get("value"))
    labels = {"question": "What the user says."}
    if flow.setting(id, "InputType") == "formInput":
        given = cast(
            "list[Data]", cast("Data", flow.nodes[id]["inputs"]).get("formInputTypes") or []
        )
        labels = {str(e["name"]): str(e.get("label") or e["name"]) for e in given if e.get("name")}
    keys = {draft.field("@in", each, wanted=each): label for each, label in labels.items()}
    fields = {each: {"path": each} for each in keys} or {"began": {"value": True}}
    draft.node(name, "assign", {"fields": fields}, keys)
    draft.edge("@entry", name, keys=keys)
    flow.steps[id].became = f"assign {name}"


def _agent(flow: Agentflow, id: str, name: str) -> None:
    step, field = flow.steps[id], flow.field(id)
    config = _asking(flow, id)
    said: dict[str, list[str]] = {"system": [], "prompt": []}
    for each in cast("list[Data]", flow.setting(id, "Messages") or []):
        part = "system" if each.get("role") in ("system", "developer") else "prompt"
        said[part].append(flow.text(id, each.get("content")))
    own = flow.setting(id, "UserMessage")
    if own:
        said["prompt"].append(flow.text(id, own))
    has_none = not any(said["prompt"])
    if has_none:
        question = flow.draft.field("@in", "question", wanted="question")
        if question in flow.draft.attributes:
            said["prompt"] = ["{" + question + "}"]
    if flow.setting(id, "EnableMemory"):
        config["memories"] = ["history"]
    if has_none or "memories" in config:
        said["prompt"] += ["{" + flow.field(each) + "}" for each in flow.earlier(id)]
    _tools(flow, id, config)
    config["output"] = {field: _typed(flow.setting(id, "StructuredOutput"))}
    texts = {part: "\n\n".join(each for each in given if each) for part, given in said.items()}
    flow.heads[id] = agent(flow.draft, name, texts, config, [field])
    step.became = f"agent {name}"


def _asking(flow: Agentflow, id: str) -> dict[str, Any]:
    """Return the model of a node, and the settings of its calls."""
    step = flow.steps[id]
    own = str(flow.setting(id, "Model") or "")
    given = cast("Data", flow.setting(id, "ModelConfig") or {})
    named = str(given.get("modelName") or given.get("customModelName") or "")
    word = next((p for w, p in _PROVIDERS.items() if w in own.lower() and "azure" not in own), own)
    config: dict[str, Any] = {"model": model_of(word if named else "", named, step)}
    if isinstance(given.get("temperature"), int | float):
        config["model_settings"] = {"temperature": given["temperature"]}
    return config


def _tools(flow: Agentflow, id: str, config: dict[str, Any]) -> None:
    step, found = flow.steps[id], list[str]()
    lost: list[str] = []
    for each in cast("list[Data]", flow.setting(id, "Tools") or []):
        named = str(each.get("agentSelectedTool") or "")
        known = tool_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", named))
        (lost if known is None else found).append(named if known is None else known[0])
    if lost:
        step.approximate(
            f"it lacks tools: {', '.join(lost)}", "Add yours, or an MCP server, to its tools."
        )
    if found:
        config["tools"] = list(dict.fromkeys(found))
    if flow.setting(id, "KnowledgeDocumentStores") or flow.setting(id, "KnowledgeVSEmbeddings"):
        config["retrievers"] = [keyword()]
        step.approximate("the export does not hold the knowledge", "Put texts into documents.")


def _typed(given: Any) -> Any:
    properties: dict[str, Any] = {}
    for each in cast("list[Data]", given or []):
        one: dict[str, Any] = {"description": str(each.get("description") or "")}
        kind = str(each.get("type"))
        if kind == "enum":
            values = [e.strip() for e in str(each.get("enumValues") or "").split(",") if e.strip()]
            one |= {"type": "string", **({"enum": values} if values else {})}
        elif kind in ("stringArray", "jsonArray"):
            inner = _TYPES["string"] if kind == "stringArray" else "object"
            one |= {"type": "array", "items": {"type": inner}}
            if inner == "object":
                one["items"] = _object(each.get("jsonSchema"))
        else:
            one["type"] = _TYPES.get(kind, "string")
        properties[str(each.get("key"))] = one
    return {"type": "object", "properties": properties} if properties else "The answer."


def _object(text: Any) -> dict[str, Any]:
    try:
        read: Any = json.loads(str(text or ""))
    except ValueError:
        read = {}
    pairs = cast("Mapping[str, Any]", read).items() if isinstance(read, Mapping) else ()
    properties = {
        key: {
            "type": _TYPES.get(str(cast("Data", each).get("type")), "string"),
            "description": str(cast("Data", each).get("description") or ""),
        }
        for key, each in pairs
        if isinstance(each, Mapping)
    }
    return {"type": "object", "properties": properties or {"value": "a part"}}


def _classifier(flow: Agentflow, id: str, name: str) -> None:
    field = flow.field(id)
    names = _scenarios(flow, id)
    classes = [" ".join(each.replace('"', "'").replace("\\", "/").split()) for each in names]
    system = flow.text(id, flow.setting(id, "Instructions"))
    typed = {"type": "string", "enum": list(dict.fromkeys(classes)), "description": "The scenario."}
    config = {**_asking(flow, id), "output": {field: typed}}
    texts = {"system": system, "prompt": flow.text(id, flow.setting(id, "Input"))}
    flow.heads[id] = agent(flow.draft, name, texts, config, [field])
    flow.steps[id].became = f"agent {name}, and conditions on its edges"


def _condition(flow: Agentflow, id: str, name: str) -> None:
    flow.draft.node(name, "passthrough", {})
    flow.steps[id].became = f"passthrough {name}"


def _loop(flow: Agentflow, id: str, name: str) -> None:
    count = flow.field(id)
    flow.draft.attributes[count] = 0
    flow.draft.node(name, "assign", {"fields": {count: {"path": count, "plus": 1}}}, [count])
    flow.steps[id].became = f"assign {name}, which counts, and an edge back"


def _iteration(flow: Agentflow, id: str, name: str) -> None:
    draft, step, field = flow.draft, flow.steps[id], flow.field(id)
    over = value_of(flow.setting(id, "Input"), flow.resolve(id), step)
    listed = draft.field("list", id, wanted=f"{name}_list")
    item = draft.field("item", id, wanted=f"{name}_item")
    first = draft.name(f"{name}_list")
    value = {**cast("Data", over), "as_list": True} if isinstance(over, dict) else over
    draft.node(first, "assign", {"fields": {listed: value}}, [listed])
    draft.edge(first, name)
    flow.heads[id] = first
    body = Draft(f"{name}_body", draft)
    takes = body.name("takes")
    body.node(takes, "assign", {"fields": {item: {"path": item}}}, [item])
    body.edge("@entry", takes, keys={item: "the item"})
    inner = [each for each in flow.nodes if flow.owners[each] == id]
    if not inner:
        step.approximate("nothing is inside it", "Put what is to run once per item into its body.")
    kept, flow.edges = flow.edges, [e for e in flow.edges if e[0] in inner or e[2] in inner]
    flow.scope(id, body)
    flow.edges = kept
    last = body.name("gives")
    leaving = [each for each in body.edges if each["to"] == "@exit"]
    result = flow.field(inner[-1]) if inner else item
    body.edges[:] = [e for e in body.edges if e["to"] != "@exit" and e["from"] != "@entry"]
    body.edges.insert(0, {"from": "@entry", "to": takes, "keys": {item: "the item"}})
    roots = [e for e in inner if not any(t == e for s, _, t in kept if s in inner)]
    for each in roots:
        body.edge(takes, flow.heads[each])
    for each in leaving:
        condition = each.get("condition")
        made: dict[str, Any] = {"from": each["from"], "to": last, "keys": {}}
        body.edges.append({**made, "condition": condition} if condition else made)
    if not inner:
        body.edge(takes, last)
    body.node(last, "assign", {"fields": {field: {"path": result}}})
    body.edge(last, "@exit", keys={field: "what the item gives"})
    config = {"over": listed, "item": item, "max_parallel": 1, "body": body.graph()}
    draft.node(name, "map", config, [field])
    step.became = f"map {name}"
    written = {f for n in body.nodes for f in n.get("push", ())}
    if any(key[0] == "state" and f in written for key, f in draft.fields()):
        step.approximate(
            "the state that it writes is kept inside one item",
            "Read its output, the list, instead.",
        )


def _tool(flow: Agentflow, id: str, name: str) -> None:
    step, field = flow.steps[id], flow.field(id)
    inputs = cast("Data", flow.nodes[id]["inputs"])
    named = str(inputs.get("toolAgentflowSelectedTool") or inputs.get("selectedTool") or "tool")
    given = {
        str(e.get("inputArgName")): flow.text(id, e.get("inputArgValue"))
        for e in cast("list[Data]", inputs.get("toolInputArgs") or [])
    }
    theirs = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", named)
    if call(flow.draft, step, name, (theirs, field), next(iter(given.values()), "")):
        return
    flow.heads[id] = ask(flow.draft, step, name, (f"the tool {named}", field), given)


def _retriever(flow: Agentflow, id: str, name: str) -> None:
    query = flow.text(id, flow.setting(id, "Query"))
    retrieve(flow.draft, flow.steps[id], name, flow.field(id), query)


def _code(flow: Agentflow, id: str, name: str) -> None:
    step, field = flow.steps[id], flow.field(id)
    inputs = {
        str(e["variableName"]): value_of(e.get("variableValue"), flow.resolve(id), step)
        for e in cast("list[Data]", flow.setting(id, "InputVariables") or [])
        if str(e.get("variableName") or "").isidentifier()
    }
    text = str(flow.setting(id, "JavascriptFunction") or 'return "";')
    names = re.findall(r"\$flow\.state\.(\w+)", text)
    lines = "".join(f"const ${each} = given.{each};\n" for each in inputs)
    if names:
        state = {each: {"path": flow.state(each)} for each in dict.fromkeys(names)}
        inputs["state"] = {"object": state}
        for each in names:
            flow.draft.attributes.setdefault(flow.state(each), "")
    code = _RUN.replace("%s", lines, 1).replace("%s", text, 1)
    config = {"code": code, "interpreter": "node", "inputs": inputs, "fields": {field: "made"}}
    flow.draft.node(name, "script", config, [field])
    step.became = f"script {name} (needs --allow code)"
    packages = re.findall(r"require\(['\"]([^'\"]+)['\"]\)", text)
    what = f", with {', '.join(packages)}" if packages else ""
    step.approximate("the program is JavaScript", f"Node.js has to be installed{what}.")


def _http(flow: Agentflow, id: str, name: str) -> None:
    step, field = flow.steps[id], flow.field(id)
    inputs = cast("Data", flow.nodes[id]["inputs"])
    asked = Request(
        method=str(inputs.get("method") or "GET").upper(),
        url=flow.text(id, inputs.get("url")),
        query=_pairs(flow, id, inputs.get("queryParams")),
        headers=_pairs(flow, id, inputs.get("headers")),
    )
    body: Any = inputs.get("body")
    if body and asked.method != "GET":
        if inputs.get("bodyType") in ("formData", "xWwwFormUrlencoded"):
            asked.body, asked.send = {"object": dict(_pairs(flow, id, body))}, "form"
        else:
            media = "application/json" if inputs.get("bodyType") == "json" else "text/plain"
            asked.body, asked.send = flow.text(id, body), "text"
            asked.headers = [*asked.headers, ("Content-Type", media)]
    if can_be_sent(asked):
        request(flow.draft, step, name, field, asked)
    else:
        given = {"method": asked.method, "url": asked.url, "body": flow.text(id, body or "")}
        flow.heads[id] = ask(flow.draft, step, name, ("the request", field), given)


def _pairs(flow: Agentflow, id: str, given: Any) -> list[tuple[str, str]]:
    rows = cast("list[Data]", given) if isinstance(given, list) else []
    return [(str(e["key"]), flow.text(id, e.get("value"))) for e in rows if e.get("key")]


def _human(flow: Agentflow, id: str, name: str) -> None:
    draft, step, field = flow.draft, flow.steps[id], flow.field(id)
    asked = flow.setting(id, "Description") or flow.setting(id, "ModelPrompt")
    question = draft.field("ask", id, wanted=f"{name}_question")
    head = draft.name(f"{name}_question")
    draft.node(head, "assign", {"fields": {question: flow.text(id, asked) or "Go on?"}}, [question])
    fields = {field: "proceed, or reject"}
    if flow.setting(id, "EnableFeedback"):
        fields[draft.field("feedback", id, wanted=f"{name}_feedback")] = "feedback"
    draft.node(name, "human_form", {"prompt": "{" + question + "}", "fields": fields}, fields)
    draft.edge(head, name)
    flow.heads[id] = head
    step.became = f"human_form {name}, and conditions on its edges"
    if flow.setting(id, "DescriptionType") == "dynamic":
        step.approximate("a model does not write the question", "Put an agent before it.")


def _reply(flow: Agentflow, id: str, name: str) -> None:
    field = flow.field(id)
    text = flow.text(id, flow.setting(id, "Message"))
    flow.draft.node(name, "assign", {"fields": {field: text}}, [field])
    flow.steps[id].became = f"assign {name}"


def _other(flow: Agentflow, id: str, name: str) -> None:
    inputs = cast("Data", flow.nodes[id]["inputs"])
    given = {k: flow.text(id, v) for k, v in inputs.items() if isinstance(v, str) and v}
    what = (flow.kind(id), flow.field(id))
    flow.heads[id] = ask(flow.draft, flow.steps[id], name, what, given)


_KINDS: Final[Mapping[str, Callable[[Agentflow, str, str], None]]] = {
    "start": _start,
    "llm": _agent,
    "agent": _agent,
    "conditionAgent": _classifier,
    "condition": _condition,
    "loop": _loop,
    "iteration": _iteration,
    "tool": _tool,
    "retriever": _retriever,
    "customFunction": _code,
    "http": _http,
    "humanInput": _human,
    "directReply": _reply,
}

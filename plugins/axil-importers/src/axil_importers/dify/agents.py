"""Dify's nodes that ask models: what each becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil_importers.dify.nodes import Convert, before
from axil_importers.dify.scope import Node, Scope
from axil_importers.draft import Step, prompt_literal
from axil_importers.models import model_of, settings_of, tool_of

Data = Mapping[str, Any]
_TYPES: Final = {
    "string": "string",
    "select": "string",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "object": "object",
}


def model_config(given: Any, step: Step) -> dict[str, Any]:
    """Return the settings of an agent that say which model it asks."""
    model = cast("Data", given or {})
    asked = model_of(
        str(model.get("provider") or ""), str(model.get("name") or model.get("model") or ""), step
    )
    params = cast("Data", model.get("completion_params") or {})
    settings = settings_of(params, step) if params else {}
    return {"model": asked, **({"model_settings": settings} if settings else {})}


def llm(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add an agent that answers in prose."""
    data = node["data"]
    context = cast("Data", data.get("context") or {})
    selector = cast("Sequence[Any]", context.get("variable_selector") or ())
    ahead: dict[str, Any] = {}
    system: list[str] = []
    asked: list[str] = []
    given: Any = data.get("prompt_template") or []
    for each in cast("list[Data]", [given] if isinstance(given, Mapping) else given):
        text = each.get("text")
        if each.get("edition_type") == "jinja2":
            text = _jinja(each, data, step)
        made = scope.flat(text, step, ahead, selector)
        (system if each.get("role") == "system" else asked).append(made)
        if each.get("role") == "assistant":
            step.approximate(
                "messages of the assistant in the prompt are part of the user's", "Write them anew."
            )
    memory = cast("Data", data.get("memory") or {})
    query = memory.get("query_prompt_template")
    if memory and (query or scope.whole.kinds.get("sys") == "chat"):
        asked.append(scope.flat(query or "{{#sys.query#}}", step, ahead))
    fields = scope.writes(node, "text")
    config = {
        **model_config(data.get("model"), step),
        "instructions": "\n\n".join(system),
        "prompt_template": "\n\n".join(asked) or "Go on.",
        "output": {fields[0]: "The answer."},
    }
    if memory:
        config["memories"] = ["history"]
        step.approximate(
            "it remembers the run; the conversation goes on in a thread", "Run it with --thread."
        )
    if cast("Data", data.get("vision") or {}).get("enabled"):
        step.approximate("pictures are not given to the model", "Bring them as parts of a message.")
    schema = cast("Data", data.get("structured_output") or {}).get("schema")
    if data.get("structured_output_enabled") and schema:
        fields = _structured(scope, node, config, cast("Data", schema))
    _agent(scope, node, step, (name, config, fields), ahead)


def _structured(scope: Scope, node: Node, config: dict[str, Any], schema: Data) -> list[str]:
    (field,) = scope.writes(node, "structured_output")
    properties = cast("Mapping[str, Data]", schema.get("properties") or {})
    inner = {key: _property(each) for key, each in properties.items()}
    whole = {"type": "object", "properties": inner} if inner else {"type": "object"}
    config["output"] = {**config["output"], field: whole}
    return list(config["output"])


def _property(given: Data) -> dict[str, Any]:
    kind = given.get("type") if isinstance(given.get("type"), str) else "string"
    made: dict[str, Any] = {"type": kind, "description": str(given.get("description") or "")}
    if kind == "object" and given.get("properties"):
        inner = cast("Mapping[str, Data]", given["properties"])
        made["properties"] = {key: _property(each) for key, each in inner.items()}
    if kind == "array" and isinstance(given.get("items"), Mapping):
        made["items"] = _property(cast("Data", given["items"]))
    if given.get("enum"):
        made["enum"] = list(given["enum"])
    return made


def _jinja(each: Data, data: Data, step: Step) -> str:
    text = str(each.get("jinja2_text") or each.get("text") or "")
    config = cast("Data", data.get("prompt_config") or {})
    for variable in cast("list[Data]", config.get("jinja2_variables") or []):
        place = "{{#" + ".".join(str(part) for part in variable.get("value_selector") or ()) + "#}}"
        for form in ("{{ %s }}", "{{%s}}"):
            text = text.replace(form % variable.get("variable"), place)
    if "{%" in text:
        step.approximate(
            "statements of Jinja in the prompt are text", "Make the text with a node before it."
        )
    return text


def _agent(
    scope: Scope,
    node: Node,
    step: Step,
    made: tuple[str, dict[str, Any], Sequence[str]],
    ahead: Mapping[str, Any],
) -> None:
    name, config, fields = made
    before(scope, name, node, ahead)
    scope.draft.node(name, "agent", {**config, "hide_unused_fields": True}, fields)
    step.became = f"agent {name}"


def classifier(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add an agent that names one of the classes; edges ask which."""
    data = node["data"]
    ahead: dict[str, Any] = {}
    classes = cast("list[Data]", data.get("classes") or [])
    fields = scope.writes(node, "class_name")
    query = _query(scope, data.get("query_variable_selector"), step, ahead)
    said = scope.flat(data.get("instruction") or data.get("instructions"), step, ahead)
    enum = class_names(classes)
    config = {
        **model_config(data.get("model"), step),
        "instructions": f"You sort what is said into classes.\n{said}".strip(),
        "prompt_template": query,
        "output": {fields[0]: {"type": "string", "enum": enum, "description": "The class."}},
    }
    _agent(scope, node, step, (name, config, fields), ahead)


def class_names(classes: Sequence[Data]) -> list[str]:
    """Return a name for each class, in order, none twice."""
    names: list[str] = []
    for number, each in enumerate(classes, 1):
        name = str(each.get("name") or "").strip() or f"class {number}"
        names.append(f"{name} ({number})" if name in names else name)
    return names or ["other"]


def _query(scope: Scope, selector: Any, step: Step, ahead: dict[str, Any]) -> str:
    path = ".".join(str(each) for each in cast("list[Any]", selector or []))
    return scope.flat("{{#" + path + "#}}", step, ahead) if path else "Go on."


def extractor(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add an agent with typed output."""
    data = node["data"]
    ahead: dict[str, Any] = {}
    output: dict[str, Any] = {}
    for each in cast("list[Data]", data.get("parameters") or []):
        (field,) = scope.writes(node, str(each["name"]))
        output[field] = _parameter(each)
    query = _query(scope, data.get("query"), step, ahead)
    said = scope.flat(data.get("instruction"), step, ahead)
    config = {
        **model_config(data.get("model"), step),
        "instructions": f"You take values out of a text.\n{said}".strip(),
        "prompt_template": query,
        "output": output or {scope.writes(node, "result")[0]: "What is found."},
    }
    _agent(scope, node, step, (name, config, list(output)), ahead)


def _parameter(given: Data) -> dict[str, Any]:
    kind = str(given.get("type") or "string")
    made: dict[str, Any] = {"description": str(given.get("description") or given["name"])}
    if kind.startswith("array"):
        inner = kind.partition("[")[2].rstrip("]") or "string"
        made |= {"type": "array", "items": {"type": _TYPES.get(inner, "string")}}
    else:
        made["type"] = _TYPES.get(kind, "string")
    if given.get("options"):
        made["enum"] = list(given["options"])
    if not given.get("required"):
        made["optional"] = True
    return made


def agent(scope: Scope, node: Node, step: Step, name: str) -> None:
    """Add an agent with tools."""
    data = node["data"]
    given = cast("Mapping[str, Any]", data.get("agent_parameters") or {})
    values = {
        key: cast("Data", each).get("value") if isinstance(each, Mapping) else each
        for key, each in given.items()
    }
    ahead: dict[str, Any] = {}
    fields = scope.writes(node, "text")
    model: Any = values.get("model") or {}
    config: dict[str, Any] = {
        **model_config(model, step),
        "instructions": scope.flat(values.get("instruction"), step, ahead),
        "prompt_template": scope.flat(values.get("query"), step, ahead) or "Go on.",
        "output": {fields[0]: "The answer."},
    }
    tools = tools_of(values.get("tools"), step)
    if tools:
        config["tools"] = tools
    turns = values.get("maximum_iterations")
    if isinstance(turns, int):
        config["max_turns"] = max(1, turns)
    _agent(scope, node, step, (name, config, fields), ahead)


def tools_of(given: Any, step: Step) -> list[dict[str, str]]:
    """Return the tools that are known here; of the others say that they are missing."""
    found: list[dict[str, str]] = []
    lost: list[str] = []
    for each in cast("list[Data]", given or []):
        called = str(each.get("tool_name") or each.get("type") or "")
        known = tool_of(called) or tool_of(str(each.get("provider_name") or ""))
        if known is None:
            lost.append(called)
        elif {"type": known[0]} not in found:
            found.append({"type": known[0]})
    if lost:
        step.approximate(
            f"it lacks tools: {', '.join(lost)}", "Add yours, or an MCP server, to its tools."
        )
    return found


def single(scope: Scope, app: Data, step: Step) -> None:
    """Add an app without a graph: one agent."""
    draft = scope.draft
    form = cast("list[Mapping[str, Data]]", app.get("user_input_form") or [])
    inputs = {str(f["variable"]): str(f.get("label") or "") for e in form for f in e.values()}
    fields = {
        draft.field("@in", "query", wanted="query"): "What the user says.",
        **{draft.field("@in", each, wanted=each): label for each, label in inputs.items()},
    }
    text = prompt_literal(str(app.get("pre_prompt") or ""))
    for each in inputs:
        text = text.replace("{{{" + each + "}}}", "{" + draft.field("@in", each) + "}")
    config = {
        **model_config(app.get("model"), step),
        "instructions": text,
        "prompt_template": "{query}",
        "output": {"answer": "The answer."},
        "hide_unused_fields": True,
    }
    mode = cast("Data", app.get("agent_mode") or {})
    tools = tools_of(mode.get("tools") if mode.get("enabled") else [], step)
    if tools:
        config["tools"] = tools
    sets = cast("Data", app.get("dataset_configs") or {}).get("datasets")
    if cast("Data", sets or {}).get("datasets"):
        config["retrievers"] = [{"type": "keyword", "documents": ["Put what is to be known here."]}]
        step.approximate("the export does not hold the knowledge", "Put texts into documents.")
    name = draft.name("agent")
    draft.node(name, "agent", config)
    draft.edge("@entry", name, keys={key: label or key for key, label in fields.items()})
    draft.edge(name, "@exit", keys={"answer": "The answer."})
    step.became = f"agent {name}"


KINDS: Final[Mapping[str, Convert]] = {
    "llm": llm,
    "agent": agent,
    "question-classifier": classifier,
    "parameter-extractor": extractor,
}

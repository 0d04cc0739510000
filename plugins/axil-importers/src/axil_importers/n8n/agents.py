"""n8n's nodes that ask models, with the nodes that help them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from axil_importers.draft import Step
from axil_importers.models import model_of, settings_of, tool_of
from axil_importers.n8n.expressions import text_of
from axil_importers.n8n.flow import Data, Flow, short
from axil_importers.n8n.nodes import ask, reading

_PROVIDERS: Final = {"openai": "openai", "anthropic": "anthropic", "gemini": "google"}
_SORTS: Final = ("textClassifier", "sentimentAnalysis")


def model_node(flow: Flow, name: str, step: Step, made: str) -> None:
    """Add an agent."""
    kind, given, draft = flow.kind(name), flow.parameters(name), flow.draft
    if kind == "openAi" and given.get("resource") not in (None, "text", "chat", "assistant"):
        ask(flow, name, step, made)
        return
    field = flow.field(name)
    system, asked = _prompts(flow, name, step)
    texts = {"system": system, "prompt": asked}
    ahead = {
        part: draft.field(part, name, wanted=f"{name}_{part}")
        for part, text in texts.items()
        if "{" in text
    }
    if ahead:
        first = draft.name(f"{made}_prompt")
        fields = {each: texts[part] for part, each in ahead.items()}
        draft.node(first, "assign", {"fields": fields}, fields)
        draft.edge(first, made)
        flow.heads[name] = first
    shown = {part: "{" + ahead[part] + "}" if part in ahead else t for part, t in texts.items()}
    config: dict[str, Any] = {
        "instructions": shown["system"],
        "prompt_template": shown["prompt"] or "Go on.",
        "output": {field: _output(flow, name, step)},
        "hide_unused_fields": True,
    }
    config = {**_help(flow, name, step), **config}
    if "model" not in config:
        own = given.get("modelId") or given.get("model") or ""
        config["model"] = model_of("openai" if own else "", _named(own), step)
    draft.node(made, "agent", config, [field])
    step.became = f"agent {made}"


def _named(given: Any) -> str:
    """Return the name of a model: a text, or what a list of the page chose."""
    if isinstance(given, Mapping):
        given = cast("Data", given).get("value")
    return str(given or "").rpartition("/")[2]


def _prompts(flow: Flow, name: str, step: Step) -> tuple[str, str]:
    given, resolve = flow.parameters(name), reading(flow, name)
    options = cast("Data", given.get("options") or {})
    system = [options.get("systemMessage") or options.get("systemPromptTemplate")]
    asked = [given.get("text") or given.get("inputText") or given.get("prompt")]
    messages: Any = given.get("messages") or {}
    values: Any = cast("Data", messages).get("messageValues") or cast("Data", messages).get(
        "values"
    )
    for each in cast("list[Data]", values or []):
        said = each.get("message") or each.get("content")
        is_system = each.get("role") == "system" or (
            "messageValues" in messages and "Human" not in str(each.get("type"))
        )
        (system if is_system else asked).append(said)
    if isinstance(asked[0], Mapping):
        asked[0] = None
    if not any(asked):
        asked = (
            ["={{ $json.chatInput }}"]
            if flow.kind(name) in ("agent", "chainLlm")
            else ["={{ $json }}"]
        )
    made = [[text_of(e, resolve, step) for e in part if e] for part in (system, asked)]
    return "\n\n".join(made[0]), "\n\n".join(made[1])


def _output(flow: Flow, name: str, step: Step) -> Any:
    given, kind = flow.parameters(name), flow.kind(name)
    if kind in _SORTS:
        return {"type": "string", "enum": classes(flow, name), "description": "The class."}
    parsers = [n for kind, n in flow.helpers.get(name, []) if kind == "ai_outputParser"]
    found = [flow.parameters(each) for each in parsers]
    attributes = cast("Data", given.get("attributes") or {}).get("attributes")
    if attributes:
        properties = {str(e["name"]): str(e.get("description") or "") for e in attributes}
        return {"type": "object", "properties": properties}
    for each in [*found, given]:
        for key in ("inputSchema", "jsonSchema", "jsonSchemaExample"):
            properties = _properties(each.get(key), is_example=key.endswith("Example"))
            if properties:
                return {"type": "object", "properties": properties}
    if found:
        step.approximate("the parser of its output is not read", "Write output with typed fields.")
    return "The answer."


def _properties(text: Any, *, is_example: bool) -> dict[str, Any]:
    try:
        read: Any = json.loads(str(text or ""))
    except ValueError:
        return {}
    if not isinstance(read, dict):
        return {}
    data = cast("dict[str, Any]", read)
    if is_example:
        return {key: f"such as {json.dumps(each)[:80]}" for key, each in data.items()}
    inner = cast("Mapping[str, Data]", data.get("properties") or {})
    return {
        key: {
            "type": each["type"]
            if each.get("type") in ("string", "number", "integer", "boolean")
            else "string",
            "description": str(each.get("description") or ""),
        }
        for key, each in inner.items()
    }


def classes(flow: Flow, name: str) -> list[str]:
    """Return the classes that a node sorts into, in the order of its outputs."""
    given = flow.parameters(name)
    if flow.kind(name) == "sentimentAnalysis":
        options = cast("Data", given.get("options") or {})
        said = str(options.get("categories") or "Positive, Neutral, Negative")
        return [each.strip() for each in said.split(",")]
    inner = cast("Data", given.get("categories") or {})
    names = [str(e.get("category")) for e in cast("list[Data]", inner.get("categories") or [])]
    return list(dict.fromkeys([*names, "other"]))


def _help(flow: Flow, name: str, step: Step) -> dict[str, Any]:
    """Return the settings that nodes which help this one give."""
    config: dict[str, Any] = {}
    tools: list[str] = []
    for kind, helper in flow.helpers.get(name, []):
        theirs, given = flow.kind(helper), flow.parameters(helper)
        own = flow.steps[helper]
        own.became = own.became or f"part of {step.became or name}"
        if kind == "ai_languageModel":
            config["model"] = _model(theirs, given, own)
            options = cast("Data", given.get("options") or {})
            if options and (known := settings_of(options, own)):
                config["model_settings"] = known
        elif kind == "ai_memory":
            config["memories"] = ["history"]
            if theirs != "memoryBufferWindow":
                own.approximate(f"{theirs} is the history of the run", "Run it with --thread.")
        elif kind == "ai_tool":
            known = tool_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", theirs))
            if known is None:
                own.leave(f"the agent lacks the tool {theirs}", "Add yours to its tools.")
                own.became = ""
            elif known[0] not in tools:
                tools.append(known[0])
        elif kind == "ai_retriever" or kind == "ai_vectorStore":
            texts = ["Put what is to be known here."]
            config["retrievers"] = [{"type": "keyword", "documents": texts}]
            own.approximate("what it knows is not in the export", "Put texts into documents.")
        elif kind != "ai_outputParser":
            own.approximate(f"{theirs} is left out", "Look whether it is needed.")
    if tools:
        config["tools"] = tools
    return config


def _model(kind: str, given: Data, step: Step) -> dict[str, Any]:
    plain = short(kind).lower()
    provider = next((p for word, p in _PROVIDERS.items() if word in plain), plain)
    named = given.get("model") or given.get("modelName") or given.get("modelId")
    return model_of(provider, _named(named), step)

"""Nodes that importers of several systems add: agents, questions to a person, searches, tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from axil_importers.draft import Draft, Step, literal
from axil_importers.models import tool_of

UNKNOWN: Final = ("Put what is to be known here.",)


def agent(
    draft: Draft,
    name: str,
    texts: Mapping[str, str],
    config: Mapping[str, Any],
    push: Iterable[str],
) -> str:
    """Add an agent whose instructions and prompt are texts with places, as ``assign`` has them;
    return the node to which edges lead.
    """
    ahead = {
        part: draft.field(part, name, wanted=f"{name}_{part}")
        for part, text in texts.items()
        if "{" in text or "}" in text
    }
    shown = {part: "{" + ahead[part] + "}" if part in ahead else t for part, t in texts.items()}
    head = name
    if ahead:
        head = draft.name(f"{name}_prompt")
        fields = {each: texts[part] for part, each in ahead.items()}
        draft.node(head, "assign", {"fields": fields}, fields)
        draft.edge(head, name)
    whole = {
        **config,
        "instructions": shown.get("system", ""),
        "prompt_template": shown.get("prompt") or "Go on.",
        "hide_unused_fields": True,
    }
    draft.node(name, "agent", whole, push)
    return head


def ask(
    draft: Draft, step: Step, name: str, what: tuple[str, str], given: Mapping[str, str]
) -> str:
    """Add a question to a person, who does by hand what nothing here does: ``what`` is its kind,
    and the field of the result; return the node to which edges lead.
    """
    kind, field = what
    question = draft.field("ask", name, wanted=f"{name}_question")
    head = draft.name(f"{name}_question")
    lines = [f"Do by hand what {literal(kind)} did, and give its result."]
    lines += [f"{literal(key)}: {text}" for key, text in given.items() if text]
    draft.node(head, "assign", {"fields": {question: "\n".join(lines)}}, [question])
    config = {"prompt": "{" + question + "}", "fields": {field: "the result"}}
    draft.node(name, "human_form", config, [field])
    draft.edge(head, name)
    step.became = f"human_form {name}, which asks a person"
    step.leave(
        f"nothing here does {kind}",
        "Put a node of your own there: call_tool with your tool, a script, an MCP server.",
    )
    return head


def retrieve(draft: Draft, step: Step, name: str, field: str, query: Any) -> None:
    """Add a search in texts that are to be put in: an export does not hold the knowledge."""
    config = {"provider": keyword(), "query": query, "field": field}
    draft.node(name, "retrieve", config, [field])
    step.became = f"retrieve {name}"
    step.approximate(
        "the export does not hold the knowledge",
        "Put texts into documents, or name paths; or another provider: chroma, store.",
    )


def keyword() -> dict[str, Any]:
    """Return a provider that finds texts by their words, with the place for them."""
    return {"type": "keyword", "documents": list(UNKNOWN)}


def call(draft: Draft, step: Step, name: str, what: tuple[str, str], given: Any) -> bool:
    """Add the call of a tool that is known here: ``what`` is its name there, and the field of the
    result; return whether it is known.
    """
    theirs, field = what
    known = tool_of(theirs)
    if known is None:
        return False
    arguments = {known[2]: given} if known[2] and given else {}
    config = {"tool": {"type": known[0]}, "arguments": arguments, "field": field}
    draft.node(name, "call_tool", config, [field])
    step.became = f"call_tool {name}, the tool {known[0]}"
    step.approximate(
        f"the tool {theirs} is {known[0]} here",
        "Look at what it gives; other settings are left out.",
    )
    return True

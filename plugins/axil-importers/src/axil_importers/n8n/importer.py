"""n8n's workflows. What a node gives is a field of the state, and edges only trigger.

Items go one at a time: a node gives one object, or a list of them. The nodes that help an agent,
such as models, memories and tools, become its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from axil_importers.draft import Draft, Step
from axil_importers.errors import ImportProblem, damaged
from axil_importers.imported import Imported
from axil_importers.n8n.agents import classes, model_node
from axil_importers.n8n.conditions import Conditions
from axil_importers.n8n.flow import MODELS, Data, Flow, is_trigger
from axil_importers.n8n.nodes import KINDS, ask, reaches, reading, trigger


class N8n:
    """``n8n``: a workflow as n8n exports it."""

    def recognises(self, document: Any) -> bool:
        """Return whether it has a list of nodes with types and positions, and connections."""
        if not isinstance(document, Mapping):
            return False
        given = cast("Data", document)
        nodes: Any = given.get("nodes")
        return (
            isinstance(nodes, list)
            and isinstance(given.get("connections"), Mapping)
            and all(map(_is_node, cast("list[Any]", nodes)))
        )

    def read(self, document: Any, name: str) -> Imported:
        """Return the workflow. Raises: ImportProblem (AX988)."""
        if not self.recognises(document):
            fault = "the file has no nodes with names and types, and connections."
            raise ImportProblem("AX988", fault, "Download the workflow again.")
        given = cast("Data", document)
        draft = Draft(str(given.get("name") or name))
        with damaged(draft):
            return _import(Flow(given, draft))


def _is_node(given: Any) -> bool:
    return isinstance(given, Mapping) and {"name", "type"} <= cast("Data", given).keys()


def _import(flow: Flow) -> Imported:
    draft = flow.draft
    names = [name for name in flow.nodes if flow.kind(name) != "stickyNote"]
    for name in flow.nodes:
        if name not in names:
            draft.notes.append(str(flow.parameters(name).get("content") or "").strip())
            continue
        flow.steps[name] = draft.step(flow.places[name], flow.kind(name))
    reached = _reached(flow, [name for name in names if not flow.is_helper(name)])
    steps = [name for name in names if name in reached]
    made = {name: draft.name(name) for name in steps}
    for name in steps:
        _node(flow, name, made[name])
    for name in set(names) - set(steps):
        if not flow.steps[name].became and not flow.steps[name].findings()[0].reason:
            is_helper = flow.is_helper(name)
            reason = "what it helps does not need it here" if is_helper else "nothing leads to it"
            flow.steps[name].leave(reason, "Connect it, or forget it.")
    for name in steps:
        _wire(flow, name, made)
    _ends(flow, made)
    return draft.imported()


def _reached(flow: Flow, names: list[str]) -> set[str]:
    """Return the nodes that a trigger leads to; without triggers, those that are connected."""
    begins = [each for each in names if is_trigger(str(flow.nodes[each].get("type")))]
    if not begins:
        begins = [each for each in names if each in flow.main and each not in flow.into]
    found, waiting = set(begins), list(begins)
    while waiting:
        for ends in flow.main.get(waiting.pop(), []):
            new = [each for each in ends if each in names and each not in found]
            found.update(new)
            waiting += new
    return found


def _node(flow: Flow, name: str, made: str) -> None:
    step, kind, node = flow.steps[name], flow.kind(name), flow.nodes[name]
    if node.get("disabled"):
        flow.draft.node(made, "passthrough", {})
        step.became = f"passthrough {made}, as it is switched off"
    elif is_trigger(str(node.get("type"))):
        trigger(flow, name, step, made)
    elif kind in MODELS and (kind != "openAi" or "langchain" in str(node.get("type"))):
        model_node(flow, name, step, made)
    else:
        KINDS.get(kind, ask)(flow, name, step, made)
    fields = flow.sources(name)
    if len(fields) > 1:
        _came(flow, name, made, fields)
    if node.get("retryOnFail"):
        tries = max(2, int(node.get("maxTries") or 3))
        mine = next(each for each in flow.draft.nodes if each["id"] == made)
        mine["wrappers"] = [{"type": "retry", "config": {"tries": tries}}]
    if node.get("onError") or node.get("continueOnFail"):
        step.approximate("it does not go on after an error", "Put the wrapper fallback around it.")
    is_left = any(each.status == "left" for each in step.findings())
    if node.get("credentials") and not is_left:
        step.approximate(
            "its credentials are not in the export", "Name the key as {env: NAME} where needed."
        )


def _came(flow: Flow, name: str, made: str, fields: list[str]) -> None:
    """Make the field of what came on the way that was taken, if the node reads it."""
    field = flow.draft.field("came", name, wanted=f"{name}_came")
    if field not in repr(flow.draft.nodes) + repr(flow.draft.edges):
        return
    first = flow.draft.name(f"{made}_came")
    flow.draft.node(first, "assign", {"fields": {field: {"first": fields}}}, [field])
    flow.draft.edge(first, flow.heads.get(name, made))
    flow.heads[name] = first


def _wire(flow: Flow, name: str, made: Mapping[str, str]) -> None:
    step = flow.steps[name]
    outputs = flow.main.get(name, [])
    asked = _conditions(flow, name, step, len(outputs))
    source = made[name]
    for at, ends in enumerate(outputs):
        when = asked[at] if at < len(asked) else ""
        begin = source
        if flow.kind(name) == "splitInBatches" and not flow.nodes[name].get("disabled"):
            is_new = float(flow.nodes[name].get("typeVersion") or 1) >= 3
            is_loop = at == (1 if is_new else 0)
            rest = flow.draft.field("rest", name)
            begin = f"{source}_item" if is_loop else source
            when = "" if is_loop else f"not (len(state.{rest}) > 0)"
        for target in ends:
            if target not in made:
                continue
            head = flow.heads.get(target, made[target])
            if flow.kind(target) == "splitInBatches" and reaches(flow, target, name):
                head = made[target]
            flow.draft.edge(begin, head, when)


def _conditions(flow: Flow, name: str, step: Step, outputs: int) -> list[str]:
    """Return the condition of each output of a node."""
    kind, given = flow.kind(name), flow.parameters(name)
    if flow.nodes[name].get("disabled"):
        return []
    conditions = Conditions(flow.draft, reading(flow, name), step)
    if kind in ("if", "filter"):
        asked = conditions.of(given)
        return [asked, f"not ({asked})"]
    if kind in ("textClassifier", "sentimentAnalysis"):
        field = flow.field(name)
        return [f"state.{field} == {json_text(each)}" for each in classes(flow, name)]
    if kind != "switch":
        return []
    rules = cast("Data", given.get("rules") or {})
    values = cast("list[Data]", rules.get("values") or rules.get("rules") or [])
    if given.get("mode") == "expression":
        step.approximate("the output is chosen by JavaScript", "Write the conditions of its edges.")
        return ["true"] * outputs
    made: list[str] = []
    for each in values:
        if "conditions" in each:
            made.append(conditions.of(each))
        else:
            operation = str(each.get("operation") or "equal")
            made.append(conditions.asked(given.get("value1"), operation, each.get("value2")))
    others = " or ".join(f"({each})" for each in made)
    return [*made, f"not ({others})" if others else "true"]


def json_text(text: str) -> str:
    """Return a text as it stands in a condition."""
    return '"' + text.replace('"', "'").replace("\\", "/") + '"'


def _ends(flow: Flow, made: Mapping[str, str]) -> None:
    """Lead what the last nodes give to the exit."""
    writes = {str(each["id"]): each.get("push", []) for each in flow.draft.nodes}
    for name, node in made.items():
        is_last = not any(flow.main.get(name, [])) or flow.kind(name) == "respondToWebhook"
        field = flow.field(name)
        if not flow.into.get(name) and not is_trigger(str(flow.nodes[name].get("type"))):
            flow.draft.edge("@entry", flow.heads.get(name, node))
        if is_last:
            is_written = field in writes.get(node, [])
            keys = {field: f"what {name} gives"} if is_written else {}
            flow.draft.edge(node, "@exit", keys=keys)

"""Flowise's chatflows, and its older agentflows: chains and agents are nodes, and the parts that
are plugged into them, such as models, prompts and tools, become their settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from axil_importers.draft import Draft, Step, literal
from axil_importers.flowise.nodes import Data, nodes_of
from axil_importers.imported import Imported
from axil_importers.models import USUAL_MODEL, model_of, tool_of
from axil_importers.parts import agent, ask, keyword

_STEPS: Final = frozenset({"Chains", "Agents", "Engine", "Multi Agents", "Sequential Agents"})
_KNOWS: Final = re.compile(
    r"Vector|Retriever|Embedding|Loader|Splitter|Record|Synthesizer|Document|Graph", re.I
)
_PLACE: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")
_INSTANCE: Final = re.compile(r"\{\{\s*([\w$]+)(?:\.data\.instance)?\s*\}\}")
_SYSTEM: Final = (
    "systemMessagePrompt", "systemMessage", "systemPrompt", "workerPrompt", "supervisorPrompt",
    "agentPrefix", "instructions", "responsePrompt",
)  # fmt: skip
_DONE: Final = "FINISH"
_ASKED: Final = frozenset(
    {"seqCondition", "seqToolNode", "seqCustomFunction", "seqExecuteFlow", "customFunction",
     "ifElseFunction"}
)  # fmt: skip
_TALKING: Final = frozenset({"seqAgent", "seqLLMNode", "seqConditionAgent", "seqToolNode"})


class Chatflow:
    """One chatflow being imported."""

    def __init__(self, given: Data, draft: Draft) -> None:
        self.draft = draft
        self.nodes: dict[str, Data] = {}
        self.steps: dict[str, Step] = {}
        for at, id, each in nodes_of(given, draft):
            self.nodes[id] = cast("Data", each["data"])
            self.steps[id] = draft.step(f'nodes[{at}] "{self.title(id)}"', self.kind(id))
        edges = cast("list[Data]", given["edges"])
        self.edges = [
            (str(e["source"]), str(e.get("sourceHandle")), str(e["target"]))
            for e in edges
            if str(e["source"]) in self.nodes and str(e["target"]) in self.nodes
        ]
        self.question = draft.field("@in", "question", wanted="question")
        self.names: dict[str, str] = {}
        self.heads: dict[str, str] = {}

    def kind(self, id: str) -> str:
        """Return the type of a node."""
        return str(self.nodes[id]["name"])

    def inputs(self, id: str) -> Data:
        """Return the settings of a node."""
        return cast("Data", self.nodes[id]["inputs"] or {})

    def title(self, id: str) -> str:
        """Return what people call a node."""
        given = self.inputs(id)
        named = (given.get(k) for k in ("agentName", "chainName", "llmNodeName", "workerName"))
        return str(next(filter(None, named), None) or self.nodes[id].get("label") or self.kind(id))

    def is_step(self, id: str) -> bool:
        """Return whether a node does something, and is no part of another."""
        if self.kind(id) in ("seqState", "agentMemory"):
            return False
        if str(self.nodes[id].get("category")) in _STEPS:
            return True
        return all(source != id for source, _, _ in self.edges) and self.kind(id) in (
            "customFunction", "ifElseFunction", "seqCustomFunction",
        )  # fmt: skip

    def field(self, id: str) -> str:
        """Return the field that holds what a node gives."""
        return self.draft.field("node", id, wanted=self.title(id))

    def parts(self, id: str, seen: frozenset[str] = frozenset()) -> list[str]:
        """Return the parts that are plugged into a node, and into those."""
        found: list[str] = []
        for source, _, target in self.edges:
            if target == id and source not in seen and not self.is_step(source):
                found += [source, *self.parts(source, seen | {source})]
        return list(dict.fromkeys(found))

    def before(self, id: str) -> list[tuple[str, str]]:
        """Return the steps that come before one, through parts too, with their handles."""
        around = {id, *self.parts(id)}
        found = [(s, h) for s, h, t in self.edges if t in around and self.is_step(s)]
        return list(dict.fromkeys(found))

    # ------------------------------------------------------------------ the graph

    def imported(self) -> Imported:
        """Return the workflow file and the findings."""
        draft = self.draft
        own = [each for each in self.nodes if self.is_step(each)]
        draft.attributes[self.question] = ""
        start = draft.name("start")
        fields = {self.question: {"path": self.question}}
        draft.node(start, "assign", {"fields": fields}, [self.question])
        draft.edge("@entry", start, keys={self.question: "What the user says."})
        for id in own:
            self.names[id] = self.heads[id] = draft.name(self.title(id))
        for id in own:
            self._step(id, self.names[id])
        for id in own:
            ways = self.before(id)
            for source, handle in ways:
                draft.edge(self.names[source], self.heads[id], self._when(source, handle, id))
            if not ways:
                draft.edge(start, self.heads[id])
        self._ends(own)
        for id, step in self.steps.items():
            if id not in own and not step.became and not step.findings()[0].reason:
                step.leave("it is part of nothing here", "Connect it, or forget it.")
        return draft.imported()

    def _ends(self, own: list[str]) -> None:
        draft = self.draft
        left = {source for id in own for source, _ in self.before(id)}
        for id in own:
            if self.kind(id) == "seqLoop":
                wanted = str(self.inputs(id).get("loopToName") or "")
                ends = [e for e in own if self.title(e) == wanted]
                if ends:
                    draft.edge(self.names[id], self.heads[ends[0]])
                    continue
            if self.kind(id) == "supervisor":
                when = f'state.{self.field(id)} == "{_DONE}"'
                result, made = (
                    draft.name(f"{self.names[id]}_result"),
                    self.draft.field("result", id),
                )
                given = "\n\n".join("{" + self.field(each) + "}" for each in self._team(id))
                draft.node(result, "assign", {"fields": {made: given or "{" + self.question + "}"}})
                draft.edge(self.names[id], result, when)
                draft.edge(result, "@exit", keys={made: "what the workers gave"})
            elif self.kind(id) == "worker":
                for source, _ in self.before(id):
                    draft.edge(self.names[id], self.heads[source])
            elif id not in left:
                nodes = {str(e["id"]): e.get("push", []) for e in draft.nodes}
                field = self.field(id)
                is_written = field in nodes[self.names[id]]
                keys = {field: f"what {self.title(id)} gives"} if is_written else {}
                draft.edge(self.names[id], "@exit", keys=keys)

    def _when(self, source: str, handle: str, target: str) -> str:
        kind, field = self.kind(source), self.field(source)
        if kind == "supervisor":
            return f'state.{field} == "{_word(self.title(target))}"'
        if kind in ("seqCondition", "seqConditionAgent"):
            return f'state.{field} == "{_word(_way(handle))}"'
        return ""

    def _step(self, id: str, name: str) -> None:
        kind = self.kind(id)
        if kind in ("seqStart", "seqEnd", "seqLoop"):
            self.draft.node(name, "passthrough", {})
            self.steps[id].became = f"passthrough {name}"
            self._take(id, {}, [])
        elif kind in _ASKED:
            self._ask(id, name)
        else:
            self._agent(id, name)

    def _ask(self, id: str, name: str) -> None:
        given = {k: literal(v) for k, v in self.inputs(id).items() if isinstance(v, str)}
        ways = [_word(_way(h)) for s, h, _ in self.edges if s == id]
        if self.kind(id) == "seqCondition":
            given = {"answer one of": ", ".join(dict.fromkeys(ways)), **given}
        what = (self.kind(id), self.field(id))
        self.heads[id] = ask(self.draft, self.steps[id], name, what, given)
        self._take(id, {}, [])

    def _agent(self, id: str, name: str) -> None:
        step, given, field = self.steps[id], self.inputs(id), self.field(id)
        config: dict[str, Any] = {}
        prompts: list[str] = []
        self._take(id, config, prompts)
        if "model" not in config:
            config["model"] = self._inherited(id)
        system = [self._filled(given.get(k), given, step) for k in _SYSTEM if given.get(k)]
        asked = [self._filled(given.get("humanMessagePrompt"), given, step)]
        for part in prompts:
            inner = self.inputs(part)
            said = inner.get("systemMessagePrompt")
            system += [self._filled(said, inner, self.steps[part])] if said else []
            said = inner.get("template") or inner.get("humanMessagePrompt")
            asked.append(self._filled(said, inner, self.steps[part]))
        texts = {
            "system": "\n\n".join(each for each in system if each),
            "prompt": "\n\n".join(
                [
                    "\n\n".join(each for each in asked if each) or "{" + self.question + "}",
                    *self._heard(id),
                ]
            ),
        }
        if self.kind(id) == "supervisor":
            step.approximate(
                "workers get the question and what others gave", "Compare with the node supervisor."
            )
            names = ", ".join(self.title(each) for each in self._team(id))
            texts["system"] = texts["system"].replace("\0", literal(names))
        config["output"] = {field: self._output(id)}
        self.heads[id] = agent(self.draft, name, texts, config, [field])
        step.became = f"agent {name}"
        if self.kind(id) in ("sqlDatabaseChain", "csvAgent", "airtableAgent", "apiChain"):
            step.approximate("it does not read the data", "Give it a tool that does.")
        if self.kind(id) == "openAIAssistant":
            step.approximate(
                "the export does not hold the assistant", "Write its instructions and its tools."
            )
        if given.get("interrupt"):
            step.approximate("its tools are not asked for", "Name them in approve of the node.")

    def _team(self, id: str) -> list[str]:
        """Return the workers of a supervisor, or of the one of a worker."""
        if self.kind(id) == "worker":
            return [e for s, _ in self.before(id) for e in self._team(s) if e != id]
        return list(dict.fromkeys(t for s, _, t in self.edges if s == id and t in self.names))

    def _heard(self, id: str) -> list[str]:
        """Return texts with what was said before a node."""
        if self.kind(id) in ("supervisor", "worker"):
            return [f"{literal(self.title(e))}: {{{self.field(e)}}}" for e in self._team(id)]
        found: list[str] = []
        seen, waiting = {id}, [id] if self.kind(id) in _TALKING else []
        while waiting:
            for source, _ in self.before(waiting.pop()):
                if source not in seen:
                    seen.add(source)
                    is_said = self.kind(source) in _TALKING - {"seqConditionAgent"}
                    (found if is_said else waiting).append(source)
        return ["{" + self.field(each) + "}" for each in found]

    def _output(self, id: str) -> Any:
        if self.kind(id) == "supervisor":
            workers = [_word(self.title(t)) for s, _, t in self.edges if s == id]
            return {
                "type": "string",
                "enum": [*dict.fromkeys(workers), _DONE],
                "description": "Who",
            }
        if self.kind(id) == "seqConditionAgent":
            self.steps[id].approximate(
                "the way is chosen by the model, not by JavaScript",
                "Look at the names of the ways.",
            )
            ways = dict.fromkeys(_word(_way(h)) for s, h, _ in self.edges if s == id)
            return {"type": "string", "enum": list(ways), "description": "The way to go."}
        return "The answer."

    def _inherited(self, id: str) -> dict[str, Any]:
        """Return the model of the start, or of the supervisor, for what has none of its own."""
        for other in self.nodes:
            if self.kind(other) in ("seqStart", "supervisor"):
                for part in self.parts(other):
                    if self._is_model(part):
                        return self._model(part, Step("", ""))
        return model_of("", "", self.steps[id])

    def _is_model(self, id: str) -> bool:
        return str(self.nodes[id].get("category")) in ("Chat Models", "LLMs")

    def _model(self, id: str, step: Step) -> dict[str, Any]:
        given, kind = self.inputs(id), self.kind(id).lower()
        named = str(given.get("modelName") or given.get("model") or "")
        words = {"openai": "openai", "anthropic": "anthropic", "google": "google"}
        found = (p for w, p in words.items() if w in kind and "azure" not in kind)
        return model_of(next(found, kind), named or USUAL_MODEL, step)

    def _take(self, id: str, config: dict[str, Any], prompts: list[str]) -> None:
        """Take the parts that are plugged into a step."""
        tools: list[str] = []
        for part in self.parts(id):
            step, category = self.steps[part], str(self.nodes[part].get("category"))
            step.became = f"part of {self.title(id)}"
            if self._is_model(part):
                config["model"] = self._model(part, step)
                heat = self.inputs(part).get("temperature")
                if isinstance(heat, int | float):
                    config["model_settings"] = {"temperature": heat}
            elif category == "Prompts":
                prompts.append(part)
            elif category == "Memory" or self.kind(part) == "agentMemory":
                config["memories"] = ["history"]
            elif _KNOWS.search(category) or self.kind(part) in ("retrieverTool", "queryEngineTool"):
                config["retrievers"] = [keyword()]
                step.approximate(
                    "the export does not hold the knowledge", "Put texts into documents."
                )
            elif category.startswith("Tools"):
                known = tool_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.kind(part)))
                if known is None:
                    step.became = ""
                    step.leave(f"the agent lacks the tool {self.kind(part)}", "Add yours.")
                else:
                    tools.append(known[0])
            elif self.kind(part) == "seqState":
                step.approximate("keys of its state are not kept", "Make them fields of the graph.")
            else:
                step.approximate(f"{self.kind(part)} is left out", "Look whether it is needed.")
        if tools:
            config["tools"] = list(dict.fromkeys(tools))

    def _filled(self, given: Any, inputs: Data, step: Step) -> str:
        """Return a prompt, whose variables have values in ``promptValues``."""
        text = str(given or "")
        try:
            read: Any = json.loads(str(inputs.get("promptValues") or "{}"))
        except ValueError:
            read = {}
        values: Data = cast("Data", read) if isinstance(read, Mapping) else {}
        parts: list[str] = []
        end = 0
        for place in _PLACE.finditer(text):
            parts.append(literal(text[end : place.start()]))
            end = place.end()
            if not place[1]:
                parts.append(literal(place[0][0]))
            elif place[1] == "team_members":
                parts.append("\0")
            elif place[1] in values:
                parts.append(self._value(str(values[place[1]])))
            else:
                parts.append("{" + self.question + "}")
                if place[1] not in ("input", "question", "text", "query"):
                    step.approximate(
                        f"the variable {place[1]} is the question", "Write what it should be."
                    )
        return "".join(parts) + literal(text[end:])

    def _value(self, text: str) -> str:
        def found(match: re.Match[str]) -> str:
            name = match[1]
            return "\0" + (self.field(name) if name in self.names else self.question) + "\1"

        marked = literal(_INSTANCE.sub(found, text))
        return marked.replace("\0", "{").replace("\1", "}")


def _way(handle: str) -> str:
    """Return the name of an output: of ``seqCondition_0-output-next-Condition`` it is ``next``."""
    return handle.partition("-output-")[2].rpartition("-")[0] or handle


def _word(text: str) -> str:
    return " ".join(re.sub(r'["\\]', " ", text).split())

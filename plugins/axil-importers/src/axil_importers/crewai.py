"""CrewAI's crews: ``agents.yaml`` and ``tasks.yaml``. Each task becomes an agent, one after
another; its context is what the tasks before it gave.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil_importers.draft import Draft, Step, prompt_literal
from axil_importers.errors import ImportProblem, damaged
from axil_importers.imported import Imported
from axil_importers.models import USUAL_MODEL, model_of, tool_of

_PLACE: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
Data = Mapping[str, Any]


class CrewAI:
    """``crewai``: the folder of a crew's configuration, or a file with ``agents`` and ``tasks``."""

    def recognises(self, document: Any) -> bool:
        """Return whether it has agents with a role, and tasks with a description."""
        if not isinstance(document, Mapping):
            return False
        given = cast("Data", document)
        return _all_have(given.get("agents"), "role") and _all_have(
            given.get("tasks"), "description"
        )

    def read(self, document: Any, name: str) -> Imported:
        """Return the workflow. Raises: ImportProblem (AX988)."""
        if not self.recognises(document):
            fault = "expected agents with a role and tasks with a description."
            hint = "Name the folder that holds agents.yaml and tasks.yaml."
            raise ImportProblem("AX988", fault, hint)
        draft = Draft(name)
        with damaged(draft):
            return _Crew(cast("Data", document), draft).imported()


def _all_have(given: Any, key: str) -> bool:
    if not isinstance(given, Mapping) or not given:
        return False
    return all(isinstance(each, Mapping) and key in each for each in cast("Data", given).values())


class _Crew:
    def __init__(self, document: Data, draft: Draft) -> None:
        self.agents = cast("Mapping[str, Data]", document["agents"])
        self.tasks = cast("Mapping[str, Data]", document["tasks"])
        self.draft = draft
        self.inputs: dict[str, str] = {}
        names = list(self.agents)
        self.owners = {
            key: str(task.get("agent") or names[min(at, len(names) - 1)])
            for at, (key, task) in enumerate(self.tasks.items())
        }

    def imported(self) -> Imported:
        """Return the workflow file and the findings."""
        draft = self.draft
        used = set(self.owners.values())
        for key, given in self.agents.items():
            step = draft.step(f"agents.{key}", "agent")
            if key in used:
                step.became = "the instructions of its tasks"
            else:
                step.leave("no task names it", "Give a task to it, if it managed the others.")
            if given.get("allow_delegation"):
                step.approximate("it does not delegate", "Use a team: supervisor, or handoff.")
        crew = draft.step("crew", "process")
        crew.became = "a line of agents, in the order of the tasks"
        crew.approximate(
            "the process of the crew is in Python, and was not read",
            "If it is hierarchical, use the node supervisor.",
        )
        if any(not self.agents.get(each, {}).get("llm") for each in used):
            crew.approximate(
                "agents name no model", f"They ask {USUAL_MODEL} now; change model in their nodes."
            )
        before: list[tuple[str, str]] = []
        for key, task in self.tasks.items():
            before.append((self._task(key, task, before), key))
        draft.edge("@entry", "start", keys={k: k for k in self.inputs.values()})
        names = [name for name, _ in before]
        for source, target in zip(["start", *names], names, strict=False):
            draft.edge(source, target)
        fields = self.inputs.values()
        config = {"fields": {each: {"path": each} for each in fields} or {"began": {"value": True}}}
        draft.node("start", "assign", config, fields)
        draft.nodes.insert(0, draft.nodes.pop())
        last = draft.field("task", before[-1][1])
        draft.edge(names[-1], "@exit", keys={last: "the result of the crew"})
        return draft.imported()

    def _task(self, key: str, task: Data, before: Sequence[tuple[str, str]]) -> str:
        draft = self.draft
        step = draft.step(f"tasks.{key}", "task")
        name, field = draft.name(key), draft.field("task", key, wanted=key)
        owner = self.owners[key]
        agent = self.agents.get(owner, {})
        if not task.get("agent") and len(self.agents) > 1:
            step.approximate(
                f"its agent is named in Python; taken is {owner}, by its order",
                "Compare the instructions.",
            )
        if not agent:
            step.approximate("its agent is not in agents.yaml", "Write its instructions.")
        who = [self._text(agent.get(part)) for part in ("role", "backstory", "goal")]
        system = [who[0] and f"You are {who[0]}.", who[1], who[2] and f"Your goal: {who[2]}"]
        named = [str(each) for each in task.get("context") or ()]
        known = [each for _, each in before]
        wanted = [each for each in named or known if each in known]
        if len(wanted) < len(named):
            step.approximate("its context names tasks that come later", "Change their order.")
        asked = [
            self._text(task.get("description")),
            f"What is expected: {self._text(task.get('expected_output'))}",
            *("{" + draft.field("task", each) + "}" for each in wanted),
        ]
        config: dict[str, Any] = {
            "model": self._model(agent, step),
            "instructions": "\n".join(each for each in system if each),
            "prompt_template": "\n\n".join(asked),
            "output": {field: self._text(task.get("expected_output")) or "The result."},
            "hide_unused_fields": True,
        }
        self._tools(config, [*(agent.get("tools") or ()), *(task.get("tools") or ())], step)
        if isinstance(agent.get("max_iter"), int):
            config["max_turns"] = max(1, int(agent["max_iter"]))
        draft.node(name, "agent", config, [field])
        step.became = f"agent {name}"
        for part, advice in (
            ("async_execution", "Draw the edges so that it has a branch of its own."),
            ("output_file", "Give the agent the tool write_file."),
            ("human_input", "Put a human node behind it."),
            ("output_json", "Write its output as typed fields."),
            ("output_pydantic", "Write its output as typed fields."),
            ("guardrail", "Put the wrapper guard around it."),
        ):
            if task.get(part):
                step.approximate(f"{part} is not done", advice)
        return name

    def _model(self, agent: Data, step: Step) -> dict[str, Any]:
        provider, _, model = str(agent.get("llm") or USUAL_MODEL).rpartition("/")
        return model_of(provider, model, step)

    def _tools(self, config: dict[str, Any], given: Sequence[Any], step: Step) -> None:
        found: list[str] = []
        for each in given:
            known = tool_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(each)))
            if known is None:
                step.approximate(f"it lacks the tool {each}", "Add yours to its tools.")
            elif known[0] not in found:
                found.append(known[0])
        if found:
            config["tools"] = found

    def _text(self, given: Any) -> str:
        text = str(given or "").strip()
        parts: list[str] = []
        end = 0
        for place in _PLACE.finditer(text):
            field = self.draft.field("input", place[1], wanted=place[1])
            self.inputs[place[1]] = field
            parts += [prompt_literal(text[end : place.start()]), "{" + field + "}"]
            end = place.end()
        return "".join(parts) + prompt_literal(text[end:])

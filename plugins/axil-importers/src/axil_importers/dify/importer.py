"""Dify's apps: workflows, chatflows, and apps that are one agent.

Each variable of a node becomes a field of the state, and edges only trigger. What iterates becomes
a ``map`` with a graph inside, what loops a cycle with a counter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil_importers.dify.agents import KINDS as AGENTS, class_names, single
from axil_importers.dify.conditions import all_of, branches, constant
from axil_importers.dify.nodes import KINDS as PLAIN, ask
from axil_importers.dify.scope import Node, Scope, Whole, title_of
from axil_importers.draft import Draft, Step
from axil_importers.errors import ImportProblem, damaged
from axil_importers.imported import Imported

_KINDS: Final = {**PLAIN, **AGENTS}
_BEGINS: Final = frozenset({"iteration-start", "loop-start"})
_MOST_ROUNDS: Final = 100


class Dify:
    """``dify``: what Dify exports as its DSL."""

    def recognises(self, document: Any) -> bool:
        """Return whether it has an app's mode, and a workflow or a model's config."""
        if not isinstance(document, Mapping):
            return False
        given = cast("Mapping[str, Any]", document)
        app = given.get("app")
        is_app = isinstance(app, Mapping) and "mode" in app
        return is_app and ("workflow" in given or "model_config" in given)

    def read(self, document: Any, name: str) -> Imported:
        """Return the workflow. Raises: ImportProblem (AX988)."""
        if not self.recognises(document):
            fault = "the file has no app with a mode and a workflow or a model_config."
            raise ImportProblem("AX988", fault, "Export the app as DSL again.")
        app = cast("Mapping[str, Any]", document)["app"]
        draft = Draft(str(app.get("name") or name))
        with damaged(draft):
            return self._read(draft, cast("Mapping[str, Any]", document), app)

    def _read(self, draft: Draft, document: Mapping[str, Any], app: Mapping[str, Any]) -> Imported:
        if app.get("description"):
            draft.notes.append(str(app["description"]))
        workflow = document.get("workflow")
        if not isinstance(workflow, Mapping):
            scope = Scope(Whole([]), draft)
            config = cast("Mapping[str, Any]", document["model_config"] or {})
            single(scope, config, draft.step("model_config", str(app["mode"])))
            return draft.imported()
        return _App(draft, cast("Mapping[str, Any]", workflow), str(app["mode"])).imported()


class _App:
    """The import of one app with a graph."""

    def __init__(self, draft: Draft, workflow: Mapping[str, Any], mode: str) -> None:
        graph = cast("Mapping[str, Any]", workflow.get("graph") or {})
        given = cast("Sequence[Node]", graph.get("nodes") or [])
        self.places = {
            str(node["id"]): f'workflow.graph.nodes[{at}] "{title_of(node)}"'
            for at, node in enumerate(given)
            if _is_node(node)
        }
        self.nodes = [node for node in given if _is_node(node)]
        self.notes = [node for node in given if not _is_node(node)]
        self.edges = cast("Sequence[Mapping[str, Any]]", graph.get("edges") or [])
        self.workflow, self.draft = workflow, draft
        self.whole = Whole(self.nodes)
        if mode == "advanced-chat":
            self.whole.kinds["sys"] = "chat"
        self.steps: dict[str, Step] = {}

    def imported(self) -> Imported:
        """Return the workflow file and the findings."""
        self._variables()
        self._scope("", self.draft)
        for field in self.whole.close():
            self.draft.attributes.setdefault(field, "")
        for note in self.notes:
            text = str(cast("Mapping[str, Any]", note.get("data") or {}).get("text") or "")
            if text and '"text":"' not in text:
                self.draft.notes.append(text)
        return self.draft.imported()

    def _variables(self) -> None:
        for kind in ("conversation", "environment"):
            given: Any = self.workflow.get(f"{kind}_variables") or []
            for at, each in enumerate(cast("list[Mapping[str, Any]]", given)):
                name = str(each.get("name"))
                owner = "env" if kind == "environment" else kind
                field = self.draft.field(owner, name, wanted=name)
                self.whole.written.add(field)
                value: Any = each.get("value")
                step = self.draft.step(f'workflow.{kind}_variables[{at}] "{name}"', kind)
                step.became = f"the field {field}"
                if each.get("value_type") == "secret":
                    value = ""
                    step.approximate(
                        "its value is a secret, and was not written",
                        "Name it where it is needed: {env: NAME}.",
                    )
                elif kind == "conversation":
                    step.approximate(
                        "it begins anew with each run", "Run it with --thread, to keep it."
                    )
                self.draft.attributes[field] = "" if value is None else value

    # ------------------------------------------------------------------ graphs

    def _scope(self, owner: str, draft: Draft) -> Scope:
        scope = Scope(self.whole, draft)
        own = [node for node in self.nodes if _owner(node) == owner]
        for node in own:
            self._node(scope, node)
        self._wire(scope, {str(node["id"]): node for node in own})
        return scope

    def _node(self, scope: Scope, node: Node) -> None:
        kind, key = str(node["data"].get("type")), str(node["id"])
        step = self.steps[key] = self.draft.step(self.places[key], kind)
        name = scope.draft.name(title_of(node))
        scope.heads[key] = scope.tails[key] = name
        if kind in ("iteration", "loop"):
            (self._iteration if kind == "iteration" else self._loop)(scope, node, step, name)
        elif kind in _BEGINS or kind in ("if-else", "loop-end"):
            scope.draft.node(name, "passthrough", {})
            step.became = f"passthrough {name}"
        elif kind in _KINDS:
            _KINDS[kind](scope, node, step, name)
        else:
            ask(scope, node, step, name)
        self._care(scope, node, step, name)

    def _care(self, scope: Scope, node: Node, step: Step, name: str) -> None:
        """Take what a node does about errors."""
        data = node["data"]
        retry = cast("Mapping[str, Any]", data.get("retry_config") or {})
        made = next(each for each in scope.draft.nodes if each["id"] == name)
        if retry.get("retry_enabled"):
            tries = int(retry.get("max_retries") or 1) + 1
            made["wrappers"] = [{"type": "retry", "config": {"tries": max(2, tries)}}]
        if data.get("error_strategy"):
            step.approximate(
                f"its strategy for errors, {data['error_strategy']}, is not followed",
                "Put the wrapper fallback around the node.",
            )

    def _wire(self, scope: Scope, own: Mapping[str, Node]) -> None:
        chosen: dict[str, dict[str, str]] = {}
        for at, edge in enumerate(self.edges):
            source, target = str(edge.get("source")), str(edge.get("target"))
            if source not in own or target not in own:
                continue
            node, handle = own[source], str(edge.get("sourceHandle") or "source")
            if handle == "fail-branch":
                self.draft.step(f"workflow.graph.edges[{at}]", "fail-branch").leave(
                    "the way that is taken after an error", "Put the wrapper fallback around it."
                )
                continue
            if source not in chosen:
                chosen[source] = self._handles(scope, node)
            when = chosen[source].get(handle, "")
            scope.draft.edge(scope.tails[source], scope.heads[target], when)

    def _handles(self, scope: Scope, node: Node) -> dict[str, str]:
        """Return the expression of each branch of a node."""
        data, step = node["data"], self.steps[str(node["id"])]
        kind = data.get("type")
        if kind == "if-else":
            return branches(scope, data, step)
        if kind == "question-classifier":
            field, _ = scope.field([node["id"], "class_name"])
            classes = cast("list[Mapping[str, Any]]", data.get("classes") or [])
            names = zip(classes, class_names(classes), strict=False)
            return {str(each["id"]): _equals(scope, field, name) for each, name in names}
        if kind == "human-input":
            field, _ = scope.field([node["id"], "__action_id"])
            actions = cast("list[Mapping[str, Any]]", data.get("user_actions") or [])
            return {str(each["id"]): _equals(scope, field, str(each["id"])) for each in actions}
        return {}

    # ------------------------------------------------------------------ inside

    def _iteration(self, scope: Scope, node: Node, step: Step, name: str) -> None:
        data, key = node["data"], str(node["id"])
        over = scope.path(data.get("iterator_selector") or (), step)
        item, output = scope.writes(node, "item", "output")
        body = Draft(f"{name}_body", scope.draft)
        inside = self._scope(key, body)
        given = inside.path(data.get("output_selector") or (), step)
        last = body.name("gives")
        leaves = _leaves(body)
        body.node(last, "assign", {"fields": {output: {"path": given}}})
        for each in leaves:
            body.edge(each, last)
        first = body.name("takes")
        for each in _roots(body, "" if not leaves else last):
            body.edge(first, each)
        body.node(first, "assign", {"fields": {item: {"path": item}}}, [item])
        body.edge("@entry", first, keys={item: "the item"})
        body.edge(last, "@exit", keys={output: "what the item gives"})
        for field in inside.reads:
            body.attributes.setdefault(field, "")
            scope.reads.add(field)
        if "." in over:
            step.approximate(
                f"the list is inside a field, {over}", "Make it a field with an assign before it."
            )
        most = int(data.get("parallel_nums") or 10) if data.get("is_parallel") else 1
        config = {
            "over": over.split(".")[0],
            "item": item,
            "max_parallel": max(1, most),
            "body": body.graph(),
        }
        scope.draft.node(name, "map", config, [output])
        step.became = f"map {name}"
        if data.get("error_handle_mode") not in (None, "terminated"):
            step.approximate("an item that fails, fails the node", "Put fallback around the node.")

    def _loop(self, scope: Scope, node: Node, step: Step, name: str) -> None:
        data, key = node["data"], str(node["id"])
        draft = scope.draft
        variables = cast("list[Mapping[str, Any]]", data.get("loop_variables") or [])
        fields: dict[str, Any] = {}
        for each in variables:
            (field,) = scope.writes(node, str(each["label"]))
            value: Any = each.get("value")
            fields[field] = {"value": value}
            if each.get("value_type") == "variable" and isinstance(value, list):
                fields[field] = {"path": scope.path(cast("list[Any]", value), step)}
        if fields:
            draft.node(name, "assign", {"fields": fields}, fields)
        else:
            draft.node(name, "passthrough", {})
        again, count, after = (draft.name(f"{name}_{word}") for word in ("again", "count", "after"))
        known = len(draft.nodes)
        inside = self._scope_in(key, scope)
        members = [str(each["id"]) for each in draft.nodes[known:]]
        first = draft.name(f"{name}_round")
        for each in (again, after, first):
            draft.node(each, "passthrough", {})
        rounds = max(1, int(data.get("loop_count") or _MOST_ROUNDS))
        draft.node(count, "loop_counter", {"max_iterations": rounds})
        roots, leaves = _ends(draft, members)
        draft.edge(name, first)
        for each in roots:
            draft.edge(first, each)
        for each in leaves:
            is_end = each in inside
            draft.edge(each, after if is_end else again)
        asked = all_of(scope, {**data, "conditions": data.get("break_conditions") or []}, step)
        draft.edge(again, first, f"not ({asked})" if asked != "true" else "")
        if asked != "true":
            draft.edge(again, after, asked)
        draft.edge(again, count)
        draft.edge(count, first)
        draft.edge(count, after)
        scope.tails[key] = after
        step.became = f"a cycle from {first} to {again}"

    def _scope_in(self, owner: str, scope: Scope) -> set[str]:
        """Convert what a loop holds into the same graph; return the names of its ends."""
        own = [node for node in self.nodes if _owner(node) == owner]
        for node in own:
            self._node(scope, node)
        self._wire(scope, {str(node["id"]): node for node in own})
        return {scope.heads[str(n["id"])] for n in own if n["data"].get("type") == "loop-end"}


def _equals(scope: Scope, field: str, value: str) -> str:
    return f"state.{field} == {constant(scope, value)}"


def _is_node(node: Mapping[str, Any]) -> bool:
    data: Any = node.get("data")
    return isinstance(data, Mapping) and bool(cast("Mapping[str, Any]", data).get("type"))


def _owner(node: Node) -> str:
    data = node["data"]
    return str(node.get("parentId") or data.get("iteration_id") or data.get("loop_id") or "")


def _leaves(draft: Draft) -> list[str]:
    return _ends(draft, [str(each["id"]) for each in draft.nodes])[1]


def _roots(draft: Draft, but: str) -> list[str]:
    return _ends(draft, [str(each["id"]) for each in draft.nodes if each["id"] != but])[0]


def _ends(draft: Draft, members: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return those of the members that no edge leads to, and those that none leads from."""
    reached = {edge["to"] for edge in draft.edges}
    left = {edge["from"] for edge in draft.edges if edge["to"] in members}
    return [m for m in members if m not in reached], [m for m in members if m not in left]

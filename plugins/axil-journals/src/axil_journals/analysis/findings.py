"""Faults that a plan is proved to have, as problems: each is true, and says where, why, and what
to do. What is only possible is said as that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Final, cast

from axil import Problem
from axil.plugin import (
    ENTRY,
    CycleBody,
    Plan,
    SubgraphBody,
    SubgraphSpec,
    did_you_mean,
    format_names,
)
from axil_journals.analysis.facts import GraphFacts, NodeFacts
from axil_journals.analysis.flow import Flow, Scope, fires
from axil_journals.analysis.logic import Path, atoms, type_conflict

_MOST_SHOWN: Final = 12
"""Nodes of a way that are shown."""
_MOST_LACKING: Final = 32
"""Edges to a node without a field that are compared with those that have it."""


def findings(plan: Plan) -> list[Problem]:
    """Return what is proved about a plan and the graphs inside it. Nothing runs.

    Cost: the size of the plan, and a bounded number of comparisons at each node.
    """
    found: dict[Problem, None] = {}
    for inner, around in graphs_of_plan(plan):
        facts = GraphFacts(inner.graph, around)
        found.update(dict.fromkeys(_Findings(facts, inner).all()))
    return list(found)


def graphs_of_plan(plan: Plan) -> Iterator[tuple[Plan, SubgraphSpec | None]]:
    """Yield the plan of each graph, and what it shares with the graph around it; None: there is
    none.
    """
    stack: list[tuple[Plan, SubgraphSpec | None]] = [(plan, None)]
    while stack:
        one, around = stack.pop()
        yield one, around
        for vertex in one.graph.vertices:
            body = vertex.own if vertex.own is not None else vertex.body
            if isinstance(body, SubgraphBody):
                stack.append((body.plan, rules_of(body)))


def rules_of(body: SubgraphBody) -> SubgraphSpec:
    """Return the rules by which a graph meets the state around it."""
    project: Any = getattr(body.pull, "__self__", None)
    return project.rules


class _Findings:
    """The findings in one graph."""

    def __init__(self, facts: GraphFacts, plan: Plan) -> None:
        self.facts, self.graph, self.plan = facts, facts.graph, plan
        self.flow = Flow(facts, plan)
        self._ways: Mapping[int, int] | None = None

    def all(self) -> Iterator[Problem]:
        """Yield all of them."""
        self._confused: set[int] = set()
        """Nodes that lack a field, or whose edges do: what else they do not read may be it."""
        yield from self.counters()
        yield from self.dead_edges()
        yield from self.unmet_joins()
        yield from self.loops()
        yield from self.types()
        yield from self.undeclared_fields()
        yield from self.carried_fields()
        yield from self.needed_fields()
        yield from self.unread_fields()
        yield from self.firings()

    # -- edges and joins

    def dead_edges(self) -> Iterator[Problem]:
        """Yield edges that can never be taken, though their source may fire (AX179)."""
        flow, facts = self.flow, self.facts
        for edge in self.graph.edges:
            id = edge.id
            if edge.source >= 0 and edge.source not in flow.live_nodes:
                continue
            if facts.formula(id) is True or id in flow.live_edges:
                continue
            if self.conflict(id) or (edge.source >= 0 and facts.is_misread(id)):
                continue  # there is a finding that says more
            name = f"{facts.name(edge.source)} -> {edge.target_name}"
            reason = self._why_dead(id)
            never = (
                f" So {edge.target_name} never fires."
                if edge.target >= 0 and edge.target not in flow.live_nodes
                else ""
            )
            yield Problem(
                "AX179",
                facts.where(id),
                f"the edge {name} can never be taken: {reason}.{never}",
                "Correct the condition, or remove the edge.",
                "warning",
            )

    def _why_dead(self, id: int) -> str:
        edge = self.graph.edges[id]
        against = self.flow.against.get(id)
        if against is not None and not self.flow.is_dead(id):
            if against < 0:
                return "its condition contradicts those on each way to it"
            name = self.edge_name(against)
            return f"its condition contradicts that of {name}, which each way to it takes"
        source = self.facts.nodes[edge.source] if edge.source >= 0 else None
        if source is not None and source.ways is not None and edge.target_name not in source.ways:
            named = format_names(sorted(source.ways)) or "nothing"
            return f"{source.spec.id} sends to {named} only"
        formula, domain = self.flow.formula(id), self.flow.follower.domain
        if source is not None and source.ways is not None and self.facts.edge(id).condition is None:
            told = any(a[0] != "?" and domain(a[1]) is not None for a in atoms(formula))
            if not told:
                return f"what {source.spec.id} asks for it is always false"
        for atom in atoms(formula):
            known = None if atom[0] == "?" else domain(atom[1])
            if known is None or known.values is None:
                continue
            path: Path = atom[1]
            vertex = self.flow.follower.giver(path)
            giver = self.facts.nodes[vertex] if vertex >= 0 else None
            if giver is not None and giver.text is not None and len(path) == 1:
                only = f'{giver.spec.id}, "{giver.text:.40}"'
                return f"its condition is false for the only text of {only}"
            if giver is not None and not known.values:
                names = format_names(sorted(giver.gives or ())) or "no fields"
                return f"{shown_path(path)} is never there: {giver.spec.id} gives {names}"
            values = ", ".join(map(repr, known.values[:8]))
            is_one = len(known.values) == 1
            return f"{shown_path(path)} is {'always' if is_one else 'one of'} {values}"
        return "its condition is always false"

    def unmet_joins(self) -> Iterator[Problem]:
        """Yield joins that are never met, though edges may come (AX180)."""
        flow, facts = self.flow, self.facts
        for vertex, unmet in flow.unmet.items():
            if vertex in flow.live_nodes:
                continue
            node = facts.nodes[vertex]
            join = getattr(self.graph.vertices[vertex].join, "name", "its join")
            way = self.way(unmet.first)
            if unmet.second >= 0:
                one, other = self._parting(unmet.first, unmet.second)
                message = (
                    f'it can never fire: its join "{join}" waits for '
                    f"{facts.name(self.graph.edges[unmet.first].source)} and "
                    f"{facts.name(self.graph.edges[unmet.second].source)}, and {one} and {other} "
                    f"exclude each other. The shortest way there is {way}."
                )
            else:
                message = (
                    f'it can never fire: its join "{join}" asks for more than the {unmet.most} of '
                    f"its {unmet.total} edges that can be taken. The shortest way there is {way}."
                )
            hint = "Let it fire with what comes (join: gate), or lead the edges from what fires."
            yield Problem("AX180", node.where, message, hint, "warning")

    def _parting(self, one: int, other: int) -> tuple[str, str]:
        """Return the two edges at which the ways of two edges part."""
        mine: dict[object, int] = {}
        for id in self.flow.chosen_before(one):
            mine |= dict.fromkeys(self.flow.topics(id), id)
        for id in self.flow.chosen_before(other):
            for topic in self.flow.topics(id):
                first = mine.get(topic, id)
                if first != id and min(first, id) >= 0 and self.flow.differ(first, id):
                    return self.edge_name(first), self.edge_name(id)
        return self.edge_name(one), self.edge_name(other)

    def edge_name(self, id: int) -> str:
        """Return an edge for people: ``a -> b``."""
        edge = self.graph.edges[id]
        return f"{self.facts.name(edge.source)} -> {edge.target_name}"

    def way(self, id: int) -> str:
        """Return a shortest way from the entry along an edge, for people."""
        edge = self.graph.edges[id]
        if self._ways is None:
            self._ways = self._shortest()
        names = [edge.target_name]
        at: int | None = edge.source
        while at is not None and at >= 0:
            names.append(self.facts.name(at))
            at = self._ways.get(at)
        names = [*names, ENTRY][::-1]
        if len(names) > _MOST_SHOWN:
            half = _MOST_SHOWN // 2
            names = [*names[:half], "…", *names[-half:]]
        return " -> ".join(names)

    def _shortest(self) -> Mapping[int, int]:
        """Return the node before each node on a shortest way from the entry."""
        onward: dict[int, list[int]] = {}
        for id in sorted(self.flow.live_edges):
            edge = self.graph.edges[id]
            if edge.trigger and edge.target >= 0:
                onward.setdefault(edge.source, []).append(edge.target)
        before: dict[int, int] = {}
        queue = deque([-1])
        while queue:
            source = queue.popleft()
            for target in onward.get(source, ()):
                if target not in before:
                    before[target] = source
                    queue.append(target)
        return before

    # -- loops

    def loops(self) -> Iterator[Problem]:
        """Yield cycles that are never left (AX186), and those whose ways out never change
        (AX187).
        """
        if not self.flow.is_exact:
            return
        by_body: dict[int, list[Scope]] = {}
        for scope in self.flow.scopes:
            if scope.body is not None:
                by_body.setdefault(id(scope.body), []).append(scope)
        for scopes in by_body.values():
            body = cast("CycleBody", scopes[0].body)
            where = self.facts.nodes[scopes[0].entry].where
            limit = self.graph.cycle_limit(self.facts.name(scopes[0].entry))
            if all(not s.leaving and s.returns >= 0 for s in scopes):
                if limit.at_limit == "exit" and limit.rounds is not None:
                    continue
                end = (
                    "each run that enters it never ends"
                    if limit.rounds is None
                    else f"each run that enters it ends with AX411 after {limit.rounds} rounds"
                )
                back = self.edge_name(scopes[0].returns)
                message = (
                    f"{body.name} can never be left: no edge out of it can be taken, and each "
                    f"round takes {back}; {end}."
                )
                hint = "Give it an edge out with a condition, a loop_counter, or at_limit: exit."
                yield Problem("AX186", where, message, hint, "warning")
            elif not all(scope.is_left for scope in scopes):
                yield from self._unchanging(body, where)

    def _unchanging(self, body: CycleBody, where: str) -> Iterator[Problem]:
        """Yield a cycle whose edges out ask only for what nothing in it writes."""
        out = [e for e in body.edges if e.source in body.inside and e.target not in body.inside]
        out = [edge for edge in out if edge.trigger and edge.id in self.flow.live_edges]
        fields: set[str] = set()
        for edge in out:
            formula = self.facts.formula(edge.id)
            if formula is True:
                return
            for atom in atoms(formula):
                path: Path = () if atom[0] == "?" else atom[1]
                path = path[1:] if path[:1] == ("len",) else path
                if len(path) < 2 or path[0] not in ("state", "before"):
                    return
                fields.add(str(path[1]))
        if not fields:
            return
        for member in body.inside:
            writes = self.facts.nodes[member].writes
            if writes is None or writes & fields:
                return
        names = ", ".join(f"state.{name}" for name in sorted(fields))
        ways = ", ".join(self.edge_name(edge.id) for edge in out)
        message = (
            f"{body.name} makes no progress towards its end: {ways} ask for {names} only, which "
            "no node of it writes, so the answer is the same in each round."
        )
        hint = "Let a node of the loop write it, or ask for something that changes."
        yield Problem("AX187", where, message, hint, "warning")

    def counters(self) -> Iterator[Problem]:
        """Yield counters that count further than the cycle around them turns (AX188)."""
        for scope in self.flow.scopes:
            body = scope.body
            if body is None or scope.parent is None or scope.parent.body is not None:
                continue
            entries = {edge.target for edge in body.entrances() if edge.trigger}
            limits = [self.graph.cycle_limit(self.facts.name(entry)).rounds for entry in entries]
            most = None if None in limits or not limits else max(r for r in limits if r is not None)
            for member in scope.plan.nodes:
                vertex = self.flow.numbers.get(member.name, -1)
                if vertex < 0 or most is None or isinstance(member.vertex.body, CycleBody):
                    continue
                node = self.facts.nodes[vertex]
                count = getattr(node.component, "sends_at", None)
                if (
                    not isinstance(count, int)
                    or count <= most
                    or self.graph.vertices[vertex].join.per_token
                ):
                    continue
                message = (
                    f"it sends at its firing {count}, and {body.name} turns at most {most} times: "
                    "it never sends."
                )
                hint = "Raise cycle_limits, or count to less."
                yield Problem("AX188", node.where, message, hint, "warning")

    # -- fields

    def types(self) -> Iterator[Problem]:
        """Yield comparisons, states and lists of the wrong type (AX184)."""
        for id in sorted(self.flow.live_edges | self._dead()):
            conflict = self.conflict(id)
            if conflict is not None:
                path, kind, constant = conflict
                message = (
                    f"{shown_path(path)} is {_TYPE_WORDS.get(kind, kind)}, and the edge "
                    f"{self.edge_name(id)} compares it with {constant!r}."
                )
                hint = "Compare it with a value of its type."
                yield Problem("AX184", self.facts.where(id), message, hint, "warning")
        for vertex, node in enumerate(self.facts.nodes):
            yield from self._types_of_writes(node)
            yield from self._type_of_items(vertex, node)

    def conflict(self, id: int) -> tuple[Path, str, object] | None:
        """Return what an edge's condition compares with a constant of another type."""
        flow, facts, source = self.flow, self.facts, self.graph.edges[id].source
        if facts.formula(id) is True:
            return None
        if source in flow.choices:
            return type_conflict(flow.formula(id), flow.follower.domain)
        # in a cycle a value may be another one for each way into it
        return type_conflict(facts.formula(id), facts.domains(source))

    def _dead(self) -> set[int]:
        return {edge.id for edge in self.graph.edges if self.flow.is_dead(edge.id)}

    def _types_of_writes(self, node: NodeFacts) -> Iterator[Problem]:
        if not node.types or not self.graph.schema.closed or node.writes is None:
            return
        for name in sorted(node.writes & node.types.keys()):
            given, taken = _kind(node.types[name]), _kind(self.facts.state_types.get(name))
            if given and taken and _clash(given, taken):
                message = (
                    f'it gives "{name}" as {_TYPE_WORDS[given]}, and the field of the state is '
                    f"{_TYPE_WORDS[taken]}."
                )
                hint = "Give the field the type that it has in the state."
                yield Problem("AX184", node.where, message, hint, "warning")

    def _type_of_items(self, vertex: int, node: NodeFacts) -> Iterator[Problem]:
        for wrapper in self.graph.vertices[vertex].wrappers:
            over = getattr(getattr(wrapper, "config", None), "over", "")
            if not isinstance(over, str) or not over:
                continue
            brought = self.facts.brought(vertex)
            if brought is None:
                continue
            schema = (
                self.facts.type_of_brought(vertex, over)
                if over in brought
                else self.facts.state_types.get(over)
            )
            kind = _kind(schema)
            if kind and kind != "array":
                message = f'it runs over "{over}", which is {_TYPE_WORDS[kind]} and no list.'
                hint = "Name a field that holds a list, or give the field that type."
                yield Problem("AX184", node.where, message, hint, "warning")

    def undeclared_fields(self) -> Iterator[Problem]:
        """Yield nodes that name fields which their typed state does not have (AX190)."""
        facts, schema = self.facts, self.graph.schema
        if not facts.is_typed or not schema.closed:
            return
        for vertex in sorted(self.flow.live_nodes):
            node = facts.nodes[vertex]
            own = node.has if getattr(node.component, "function", None) is not None else ()
            ways = {
                "pulls": node.spec.pull or (),
                "pushes": node.spec.push or (),
                "writes": own if node.spec.push is None else (),
                "reads": node.state_needs,
                "reads or assigns": node.state_named - facts.state_names,
            }
            for does, names in ways.items():
                strangers = sorted(n for n in names if n not in schema.fields and n[:1] != "@")
                if strangers:
                    has = format_names(sorted(schema.fields))
                    message = (
                        f"it {does} {format_names(strangers)}, which {schema.name} does not "
                        f"declare: it declares {has}."
                    )
                    hint = did_you_mean(strangers[0], schema.fields) or "Declare it."
                    yield Problem("AX190", node.where, message, hint, "warning")
                    break

    def carried_fields(self) -> Iterator[Problem]:
        """Yield edges that carry fields which their source never gives (AX183)."""
        if self.facts.spec.payload == "messages":
            return
        for id in sorted(self.flow.live_edges):
            edge, spec = self.graph.edges[id], self.facts.edge(id)
            if edge.source < 0 or not spec.keys or not spec.carry_data or spec.process is not None:
                continue
            given = self.facts.given(edge.source)
            if given is None:
                continue
            missing = [key for key in spec.keys if key not in given]
            if missing:
                self._confused |= {edge.source, edge.target}
                name = self.facts.name(edge.source)
                has = format_names(sorted(given)) or "no fields"
                message = (
                    f"the edge {self.edge_name(id)} carries {format_names(missing)}, which {name} "
                    f"never gives: it gives {has}. Whenever it is taken, the run fails with AX221."
                )
                hint = did_you_mean(missing[0], given) or f"Let {name} give it, or drop the key."
                yield Problem("AX183", self.facts.where(id), message, hint, "warning")

    def needed_fields(self) -> Iterator[Problem]:
        """Yield nodes that need a field which never comes (AX185), or not on some way (AX181)."""
        flow, facts = self.flow, self.facts
        for vertex in sorted(flow.live_nodes):
            node = facts.nodes[vertex]
            if node.needs and facts.spec.payload == "fields":
                yield from self._inputs_of(vertex, node)
        yield from self._unwritten()

    def _inputs_of(self, vertex: int, node: NodeFacts) -> Iterator[Problem]:
        brought = self.facts.brought(vertex)
        if brought is None or vertex in self._confused:
            return
        pulled, is_open = frozenset(node.spec.pull or ()), node.spec.pull is None
        if getattr(node.component, "pulls_named", False):
            is_open = False
        elif not hasattr(node.component, "pull_default"):
            pulled, is_open = frozenset[str](), False  # its input is what edges bring
        having: dict[str, set[int]] = {}
        for id in self.facts.incoming[vertex]:
            for name in (self.facts.carried(id) or ()) if id in self.flow.live_edges else ():
                having.setdefault(name, set()).add(id)
        for name in sorted(node.needs - pulled):
            if name in brought:
                if not is_open:
                    yield from self._on_some_way(vertex, node, name, having.get(name, set()))
            elif not is_open:
                self._confused.add(vertex)
                has = format_names(sorted(brought)) or "no fields"
                message = (
                    f'it reads "{name}", which no edge brings: they bring {has}. '
                    "Whenever it fires, it fails."
                )
                hint = did_you_mean(name, brought) or f'Carry "{name}" on an edge to it.'
                yield Problem("AX185", node.where, message, hint, "warning")

    def _on_some_way(
        self, vertex: int, node: NodeFacts, name: str, having: Collection[int]
    ) -> Iterator[Problem]:
        """Yield that a field is missing where only an edge comes that is not one of ``having``."""
        lacking = (
            id
            for id in self.facts.incoming[vertex]
            if id in self.flow.live_edges and id not in having and self.graph.edges[id].trigger
        )
        for id in islice(lacking, _MOST_LACKING):
            if not all(self.flow.exclude(id, other) for other in having):
                continue
            message = (
                f'it reads "{name}", which does not come on the way {self.way(id)}: there it fails.'
            )
            hint = f'Carry "{name}" on that edge, too, or read it only where it is.'
            self._confused.add(vertex)
            yield Problem("AX181", node.where, message, hint, "warning")
            return

    def _unwritten(self) -> Iterator[Problem]:
        """Yield nodes that read a field of the state before it is written, on some way (AX181)."""
        facts, flow = self.facts, self.flow
        readers: dict[str, list[int]] = {}
        for vertex in flow.choices:
            if not facts.nodes[vertex].state_needs:
                continue
            brought = facts.brought(vertex)
            for name in facts.nodes[vertex].state_needs - facts.first - (brought or frozenset()):
                readers.setdefault(name, []).append(vertex)
        pulled = facts.pulled
        written = {name for node in facts.nodes for name in node.writes or ()}
        for name, vertices in sorted(readers.items()):
            if name not in written or pulled is None or name in pulled:
                continue
            ways = self._ways_without(name, vertices)
            for vertex in vertices:
                if vertex in ways:
                    node, first = facts.nodes[vertex], ways[vertex]
                    message = (
                        f'it reads "{name}" of the state, and on the way {self.way(first)} nothing '
                        f"has written it: there it fails, unless the input has it."
                    )
                    hint = "Write it on that way, too, or give it a first value."
                    yield Problem("AX181", node.where, message, hint, "warning")

    def _ways_without(self, name: str, readers: Sequence[int]) -> dict[int, int]:
        """Return those of the nodes that a field may reach unwritten, each with the edge on which
        it does; only where what writes it is excluded there.
        """
        facts, flow = self.facts, self.flow
        unwritten: dict[int, int] = {}
        for vertex in self._behind_writers(name, readers):
            edges = [id for id in facts.incoming[vertex] if id in flow.live_edges]
            clean = [id for id in edges if self._is_clean(id, name, unwritten)]
            others = set(edges).difference(clean)
            join = self.graph.vertices[vertex].join
            needs_all = not join.per_token and not fires(join, 1, 1, 2)
            if needs_all and others:
                continue
            for id in clean:
                if all(flow.exclude(id, other) for other in others):
                    unwritten[vertex] = id
                    break
        return {
            vertex: unwritten[vertex]
            for vertex in readers
            if vertex in unwritten and self._has_other_way(vertex, name, unwritten)
        }

    def _behind_writers(self, name: str, readers: Sequence[int]) -> list[int]:
        """Return nodes, and those before them as far back as what writes a field, in their order;
        without those of cycles.
        """
        found, waiting = set[int](), [*readers]
        while waiting:
            vertex = waiting.pop()
            if vertex not in found and vertex in self._order:
                found.add(vertex)
                for id in self.facts.incoming[vertex]:
                    source = self.graph.edges[id].source
                    if source >= 0 and self._leaves(source, name):
                        waiting.append(source)
        return sorted(found, key=self._order.__getitem__)

    @cached_property
    def _order(self) -> Mapping[int, int]:
        """The nodes outside of cycles, and the place of each in the order of the plan."""
        outside = (n for n in self.plan.nodes if not isinstance(n.vertex.body, CycleBody))
        return {self.flow.numbers[node.name]: at for at, node in enumerate(outside)}

    def _leaves(self, vertex: int, name: str) -> bool:
        """Return whether a node certainly does not write a field."""
        writes = self.facts.nodes[vertex].writes
        return writes is not None and name not in writes

    def _has_other_way(self, vertex: int, name: str, unwritten: Mapping[int, int]) -> bool:
        """Return whether another way to a node does write the field: so it is meant to be there."""
        return any(
            not self._is_clean(id, name, unwritten)
            for id in self.facts.incoming[vertex]
            if id in self.flow.live_edges
        )

    def _is_clean(self, id: int, name: str, unwritten: Mapping[int, int]) -> bool:
        source = self.graph.edges[id].source
        if source < 0:
            return True
        return source in unwritten and self._leaves(source, name)

    def unread_fields(self) -> Iterator[Problem]:
        """Yield fields that are never read (AX182)."""
        facts = self.facts
        if facts.spec.payload == "messages":
            return
        for vertex in sorted(self.flow.live_nodes):
            if vertex in self._confused:
                continue
            node = facts.nodes[vertex]
            if node.uses is not None and facts.spec.payload == "fields":
                yield from self._unread_inputs(vertex, node)
            if node.gives and not isinstance(self.graph.vertices[vertex].own, SubgraphBody):
                yield from self._unread_outputs(vertex, node)
        yield from self._unread_attributes()

    def _unread_inputs(self, vertex: int, node: NodeFacts) -> Iterator[Problem]:
        uses = node.uses or frozenset()
        for id in self.facts.incoming[vertex]:
            keys = self.facts.edge(id).keys
            unread = [key for key in keys or () if key not in uses]
            if list(keys or ()) == ["message"] or not unread or self.facts.edge(id).process:
                continue
            message = (
                f"the edge {self.edge_name(id)} carries {format_names(unread)}, which "
                f"{node.spec.id} does not read."
            )
            hint = "Drop the key; {} or [] triggers without data."
            yield Problem("AX182", self.facts.where(id), message, hint, "warning")

    def _unread_outputs(self, vertex: int, node: NodeFacts) -> Iterator[Problem]:
        facts = self.facts
        edges = [facts.edge(id) for id in facts.outgoing[vertex]]
        if not edges or any(edge.keys is None or edge.process is not None for edge in edges):
            return
        if facts.is_typed or node.component is None or node.spec.extras.get("output"):
            return
        rules = node.spec.pull if node.spec.push is None else node.spec.push
        kept = frozenset(facts.graph.schema.fields) | facts.first | frozenset(rules or ())
        if rules is None and not facts.is_root and facts.pulled is None:
            return
        carried = frozenset(key for edge in edges for key in edge.keys or ())
        read = {name for edge in facts.outgoing[vertex] for name in self._asked(edge)}
        unread = sorted((node.gives or frozenset()) - carried - kept - read)
        if unread and None not in read:
            message = (
                f"it gives {format_names(unread)}, which no edge carries and no attribute of the "
                "graph keeps."
            )
            hint = "Carry it on an edge, or do not ask for it."
            yield Problem("AX182", node.where, message, hint, "warning")

    def _asked(self, id: int) -> Iterator[str | None]:
        """Yield the fields that an edge's condition reads; None: any."""
        for atom in atoms(self.facts.formula(id)):
            path: Path = () if atom[0] == "?" else atom[1]
            path = path[1:] if path[:1] == ("len",) else path
            if not path or str(path[0]).endswith("text"):
                yield None
            elif len(path) > 1 and path[0] == "message":
                yield str(path[1])

    def _unread_attributes(self) -> Iterator[Problem]:
        """Yield first values of attributes that no node and no edge reads, and none writes: what is
        written is a result.
        """
        facts = self.facts
        spec = facts.spec
        if not spec.attributes or facts.is_typed or spec.loop or not facts.is_root:
            return
        read: set[str] = set()
        for node, vertex in zip(facts.nodes, self.graph.vertices, strict=True):
            is_graph = isinstance(vertex.own or vertex.body, SubgraphBody)
            if node.spec.pull is not None:
                read.update(node.spec.pull)
            elif is_graph or node.state_uses is None:
                return
            else:
                read |= node.state_uses
            if is_graph or vertex.wrappers or node.writes is None:
                return
            read |= node.writes
        for edge in self.graph.edges:
            for atom in atoms(facts.formula(edge.id)):
                path: Path = () if atom[0] == "?" else atom[1]
                path = path[1:] if path[:1] == ("len",) else path
                if not path or path[0] not in ("message", "text", "came", "came text", "state"):
                    return
                if path[0] in ("state", "before"):
                    read.add(str(path[1]) if len(path) > 1 else "")
            if facts.edge(edge.id).filter is not None:
                return
        unread = sorted(set(spec.attributes) - read)
        if unread:
            message = f"no node and no edge reads its attribute {format_names(unread)}."
            hint = "Name it in the pull_keys of a node that needs it, or remove it."
            yield Problem("AX182", spec.where, message, hint, "warning")

    # -- limits

    def firings(self) -> Iterator[Problem]:
        """Yield a limit of firings that each run reaches (AX189)."""
        limit = self.facts.spec.limits.firings
        if limit is None or not self.facts.is_root:
            return
        root = next(scope for scope in self.flow.scopes if scope.parent is None)
        least = len(root.must_nodes)
        if least > limit:
            message = (
                f"limits.firings is {limit}, and each run fires at least {least} nodes: it ends "
                "with AX412."
            )
            hint = f"Raise limits.firings to at least {least}."
            yield Problem("AX189", self.facts.spec.where, message, hint, "warning")


_TYPE_WORDS: Final = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def shown_path(path: Path) -> str:
    """Return a path as an expression has it.

    >>> shown_path(("len", "message", "items"))
    'len(message.items)'
    """
    root = {"came": "message", "came text": "text", "before": "state"}
    inner = path[1:] if path[0] == "len" else path
    names = [root.get(str(inner[0]), str(inner[0]).split(" ")[0]), *map(str, inner[1:])]
    text = ".".join(names)
    return f"len({text})" if path[0] == "len" else text


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return ""
    known = cast("Mapping[str, Any]", schema)
    kind = known.get("type")
    return kind if isinstance(kind, str) and kind in _TYPE_WORDS else ""


def _clash(given: str, taken: str) -> bool:
    """Return whether no value of one type is ever taken as the other: a list or an object and
    something else.
    """
    whole = {"array", "object"}
    return given != taken and bool(whole & {given, taken})

"""Scopes that run inside a node: cycles, round after round, and graphs. Neither is special to the machine.

Theory of operation
-------------------
A *visit* is one entry of a scope by one task. It gives a machine to run, is told when that machine has nothing left to
do, and then gives the next machine or what the visit comes to. The run keeps visits on a stack of its own; nothing here
waits, and nothing recurses however deep graphs are nested.

A cycle: on entry the member with a live trigger edge from outside is the *initial* node; none of them cannot be (the
cycle would not have fired), several is an error. Each round is a fresh machine over the body compiled for that entry.
The initial node fires unconditionally, with the tokens that entered or came back, from the join of all paths that ended
in the round before. When a round has nothing left to do, in this order: a live token left on a trigger edge: over; the
limit is reached: over, and the run with it unless the limit is declared an exit; a live token came back on a cut trigger
edge: another round; else the cycle has ended naturally. Payloads of data edges that their targets could not take wait
in the state, in the field ``@edge/<edge>``, until a round begins in which the target is a node of its own: of this cycle, or of
one within it or around it, as they are entered. What the cycle hands to its parent is one change per field, whatever the number
of rounds.

A graph: its own state is made on entry from what it pulls, and what it pushes is projected from its changes on return;
its nodes' own fields go with it unless it is told to keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from axil.context import local_field
from axil.errors import CycleError, KernelBug, LimitReached, listed
from axil.fold import Cycle, waiting_field
from axil.inputs import Message, as_messages, folded, gathered
from axil.journal import Entry, decode, decode_delta, encode, encode_delta
from axil.machine import Machine
from axil.outcome import Ended, Exit, Step
from axil.plan import Graph, Mode, Node, Plan
from axil.spec import GraphSpec
from axil.state import History, Schema, State
from axil.tokens import Changes, Frame, Out, Task, Token, inner_frame
from axil.values import unshared


@dataclass(frozen=True, slots=True)
class Left:
    """What a cycle comes to: its changes, and the tokens that left it."""

    changes: Changes
    exits: tuple[Exit, ...]
    reason: str
    """``exit``, ``natural`` or ``limit``."""
    rounds: int


class Visit(Protocol):
    """One entry of a scope."""

    machine: Machine

    def next(self, ended: Ended) -> None:
        """Take in a machine that has nothing left to do. Raises: LimitReached."""
        ...

    def fact(self) -> Entry | None:
        """What a journal has to know before the visit goes on, or None."""
        ...

    def result(self) -> Machine | Left | Out | None:
        """The next machine to run, or what the visit comes to; None: nothing left it, its out-edges are dead."""
        ...

    def so_far(self, ended: Ended | None) -> Changes:
        """What the visit would hand to its parent if it were broken off: with what its present machine wrote, unless taken in."""
        ...


# ---------------------------------------------------------------------- cycles


class CycleVisit:
    """A cycle, turning."""

    def __init__(self, cycle: Cycle, task: Task, name: str, *, told: Sequence[Entry] = ()) -> None:
        """``told``: the rounds that a journal knows of. Raises: CycleError."""
        self.cycle, self.name = cycle, name
        self.frame: Frame = inner_frame(task.frame, name, task.ordinal)
        self.ordinal, self.parent = task.ordinal, task.frame
        self.initial = self._initial_of(task)
        self.plan = cycle.body(self.initial)
        self.limit = cycle.graph.cycle_limit(cycle.graph.vertices[self.initial].name)
        self.waiting = cycle.waiting(self.initial)
        self.rounds = 0
        self.state = task.state.rooted()
        self.total = History(self.state.schema, keeps=True)
        self._entered = self.state
        self._data_exits: list[Exit] = []
        self._has_data = False  # whether payloads of data edges wait for this round, or waited for an earlier one
        self._weighed = self._since = 0  # what a journal holds of the rounds: when that was last compared with a total, and more since
        self._tokens = [Token(t.edge, t.payload, None, t.ordinal) for t in task.tokens]
        self._ended: tuple[str, tuple[Exit, ...]] | None = None
        self._last: tuple[Mapping[str, Any], Sequence[Exit], Sequence[Exit], str] | None = None  # changes, exits, returns, how it ended
        for entry in told:
            self._retell(entry)
        if not self.is_over:
            self.machine = self._round()

    def _initial_of(self, task: Task) -> int:
        edges, graph = self.cycle.graph.edges, self.cycle.graph
        doors = sorted({edges[t.edge].target for t in task.tokens if edges[t.edge].trigger})
        if len(doors) == 1:
            return doors[0]
        names = [graph.vertices[d].name for d in doors]
        entering = [edges[t.edge].name for t in task.tokens if edges[t.edge].trigger]
        raise CycleError(
            f"{self.name} is entered at {len(doors)} nodes at once ({listed(names)}), by the edges {listed(entering)}; "
            "a round starts at one node.",
            hint="Let one node gather what enters, or send only one of these edges at a time.",
        )

    @property
    def is_over(self) -> bool:
        """Whether its last round has ended; from the start, if a journal has that round and not what came of it."""
        return self._ended is not None

    def enters(self, task: Task) -> bool:
        """Whether the initial node's join is satisfied by the edges that entered."""
        vertex, edges = self.cycle.graph.vertices[self.initial], self.cycle.graph.edges
        if vertex.join != "all":
            return True
        needed: dict[str, set[int]] = {}
        for edge in self.cycle.entrances():
            if edge.target == self.initial and edge.trigger:
                needed.setdefault(edge.group, set()).add(edge.id)
        live = {t.edge for t in task.tokens if edges[t.edge].target == self.initial}
        return any(ids <= live for ids in needed.values())

    def _round(self) -> Machine:
        """The next round's machine, started."""
        machine = Machine(self.plan, (*self.frame, self.rounds), self.state, keeps=True)
        edges = self.cycle.graph.edges
        waited = [Token(edge, payload, None) for edge, field in self.waiting.items() for payload in self.state.get(field) or ()]
        self._has_data = bool(waited)
        mine = [t for t in self._tokens if edges[t.edge].target == self.initial]
        if len(mine) > 1:
            mine.sort(key=lambda token: (self.plan.rank(token.edge), token.ordinal))
        tokens = [*waited, *self._tokens]  # since an earlier round: it was there first
        first = [t for t in waited if edges[t.edge].target == self.initial]
        machine.start([t for t in tokens if edges[t.edge].target != self.initial], entry=[*first, *mine])
        self.rounds += 1
        return machine

    def turn(self, step: Step, note: Callable[[Entry], None] | None = None) -> Task | None:
        """The next round's first task, where ``step`` ends a round by coming back and in no other way; None: by ``next``, then.

        ``note``: is told what a journal has to know.
        """
        machine, limit = self.machine, self.limit.rounds
        if self._has_data or (limit is not None and self.rounds >= limit) or not machine.comes_back(step):
            return None
        changes = machine.history.changes
        self.total.note(changes)
        self.state = step.state
        if note is not None:
            (last,), (arc, payload, _) = machine.taken, step.sends[0]
            note(self._fact(changes, (), (Exit(arc.id, payload, None, last.ordinal, True),), ""))
        frame = (*self.frame, self.rounds)
        self.rounds += 1
        return machine.again(frame, step)

    def next(self, ended: Ended) -> None:
        changes, state = ended.changes, ended.state
        back = [r for r in ended.returns if r.trigger]
        if ended.data or self._has_data or len(back) < len(ended.returns):
            kept = self._kept(ended)
            changes, state = {**changes, **kept}, state.apply(kept)
        limit = self.limit.rounds
        if ended.exits and any(e.trigger for e in ended.exits):
            end = "exit"
        elif back and limit is not None and self.rounds >= limit:
            end = "limit"
        else:
            end = "" if back else "natural"
        self._take(changes, state, ended.exits, () if end else ended.returns, end)
        if end == "limit" and self.limit.at_limit == "limited":
            raise LimitReached(
                f"{self.name} turned {self.rounds} times, which is its limit, and had not ended.",
                id="AX411",
                where=f'node "{self.name}"',
                hint="Raise the cycle's limit, give it a loop_counter or a loop_timer, or declare the limit an exit.",
            )
        self._last = (changes, ended.exits, () if end else ended.returns, end)

    def _kept(self, ended: Ended) -> dict[str, Any]:
        """What waits on data edges after a round, by field, where that has changed."""
        edges, left = self.cycle.graph.edges, dict[int, list[Any]]()
        for sent in (*ended.data, *(r for r in ended.returns if not r.trigger)):
            left.setdefault(sent.edge, []).append(sent.payload)
        kept: dict[str, Any] = {field: left.pop(edge, []) for edge, field in self.waiting.items() if edge in left or self.state.get(field)}
        for edge, payloads in left.items():  # into a cycle within, behind what that has left there
            field = waiting_field(edges[edge])
            kept[field] = [*(ended.state.get(field) or ()), *payloads]
        return kept

    def _take(self, changes: Mapping[str, Any], state: State, exits: Sequence[Exit], returns: Sequence[Exit], end: str) -> None:
        self.total.note(changes)
        self.state = state
        if exits:
            self._data_exits.extend(e for e in exits if not e.trigger)
        self._tokens = [Token(r.edge, r.payload, None, r.ordinal) for r in returns if r.trigger]
        if end:
            self._ended = (end, (*[e for e in exits if e.trigger], *self._data_exits))

    def result(self) -> Machine | Left | Out | None:
        if self._ended is None:
            self.machine = self._round()
            return self.machine
        end, exits = self._ended
        return Left(Changes(self.total.changes), exits if end == "exit" else tuple(self._data_exits), end, self.rounds)

    def so_far(self, ended: Ended | None) -> Changes:
        if ended is not None:
            self.total.note(ended.changes)
        return Changes(self.total.changes)

    def fact(self) -> Entry | None:
        return None if self._last is None else self._fact(*self._last)

    def _fact(self, changes: Mapping[str, Any], exits: Sequence[Exit], returns: Sequence[Exit], end: str) -> Entry:
        said: Any = self.machine.said  # by the only firing of the round, if it had one
        sent: dict[str, Any] = {name: payload for name, payload, values in said["sends"] if values is None} if said else {}
        if said and len(sent) == len(said["sends"]) and said["delta"].keys() == changes.keys():
            written = said["delta"]  # edges have written nothing of their own
        else:
            written, sent = encode_delta(changes, self.state.schema), {}
        data: dict[str, Any] = {
            "round": self.rounds - 1,
            "changes": written,
            "exits": self._told(exits, sent),
            "returns": self._told(returns, sent),
            "end": end,
        }
        self._since += 80 + _weight(written) + _weight(data["exits"]) + _weight(data["returns"])
        if self._since > max(self._weighed, _TOTAL):
            total = encode_delta(self.total.changes, self.state.schema)
            self._weighed, self._since, weight = self._weighed + self._since, 0, _weight(total)
            if weight <= self._weighed / 2:
                data["total"], data["kept"] = total, self._told(self._data_exits, {})
                self._weighed = weight
        return Entry("round", self.parent, self.name, self.ordinal, data)

    def _told(self, exits: Sequence[Exit], sent: Mapping[str, Any]) -> list[Any]:
        """``exits`` as JSON data; ``sent``: payloads that were made so before, by edge."""
        if not exits:
            return []
        edges, schema, told = self.cycle.graph.edges, self.state.schema, list[Any]()
        for exit in exits:
            name = edges[exit.edge].name
            if name in sent:
                told.append([name, sent[name], None, list(exit.ordinal)])
            else:
                values = None if exit.values is None else encode_delta(exit.values, schema)
                told.append([name, encode(exit.payload), values, list(exit.ordinal)])
        return told

    def _retell(self, entry: Entry) -> None:
        ids = {self.cycle.graph.edges[i].name: i for v in self.cycle.members for i in self.cycle.graph.touching[v]}
        schema, data = self.state.schema, entry.data

        def exits(told: Sequence[Any]) -> list[Exit]:
            return [
                Exit(ids[n], decode(p), None if v is None else decode_delta(v, schema), tuple(o), self.cycle.graph.edges[ids[n]].trigger)
                for n, p, v, o in told
            ]

        self.rounds = data["round"] + 1
        changes, left = data["changes"], exits(data["exits"])
        if "total" in data:  # of all rounds so far, this one among them
            self.total, self.state, self._data_exits = History(schema, keeps=True), self._entered, []
            changes, left = data["total"], [*exits(data["kept"]), *(exit for exit in left if exit.trigger)]
        delta = decode_delta(changes, schema)
        self._take(delta, self.state.apply(delta), left, exits(data["returns"]), data["end"])


_TOTAL = 16_384  # bytes of rounds, at least, before it is asked whether they are shorter told again as one


def _weight(data: dict[str, Any] | list[Any]) -> int:
    """About how long a JSON list or object is as a text: what it costs to write."""
    is_object = isinstance(data, dict)
    weight = 2 + 4 * len(data) + sum(map(len, data)) if is_object else 2
    for item in data.values() if is_object else data:
        kind = type(item)  # pyright: ignore[reportUnknownVariableType]  # anything may come
        if kind is str:
            weight += len(item) + 3
        elif item and (kind is dict or kind is list):
            weight += _weight(item)
        else:
            weight += 6
    return weight


# ---------------------------------------------------------------------- graphs


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """A graph inside a node: what a node class gives from ``scope()``."""

    spec: GraphSpec
    pull: Mapping[str, str] | None = None
    push: Mapping[str, str] | None = None
    hidden: frozenset[str] = frozenset()
    """Fields that are neither pulled nor pushed, whatever the rules say."""
    offered: frozenset[str] = frozenset()
    """Of the fields that are pushed those that a graph around it with declared fields need not have."""
    keep: bool = False
    """Whether its nodes' own fields outlast a visit, until the next in the same run."""


class Subgraph:
    """A graph as a node's body."""

    mode: Mode = "scope"

    def __init__(self, nested: Nested, plan: Plan, outer: str) -> None:
        """``outer``: what the surrounding graph's edges carry."""
        self.nested, self.plan, self.outer = nested, plan, outer

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        raise KernelBug("the body of a subgraph was called; scopes are entered.")


class GraphVisit:
    """A graph, running inside a node."""

    def __init__(self, body: Subgraph, task: Task, name: str) -> None:
        self.body, self.task, self.name = body, task, name
        root = start_state(body, task, name)
        self.machine = Machine(body.plan, inner_frame(task.frame, name, task.ordinal), root, keeps=True)
        self.machine.start(entry_tokens(body.plan, gathered_inputs(task, body.plan.graph), root))
        self._ended: Ended | None = None

    def next(self, ended: Ended) -> None:
        self._ended = ended

    def fact(self) -> Entry | None:
        return None

    def result(self) -> Machine | Left | Out | None:
        assert self._ended is not None
        output = output_of(self.body.plan.graph, self._ended)
        changes = Changes(self._pushed(self._ended))
        if output is None:  # nothing left it: its out-edges are dead, and what its nodes wrote is written
            return Out(None, changes, frozenset()) if changes else None
        return Out(output, changes)

    def so_far(self, ended: Ended | None) -> Changes:
        return Changes(self._pushed(ended) if ended is not None else {})

    def _pushed(self, ended: Ended) -> dict[str, Any]:
        nested, outer = self.body.nested, self.task.state
        mine = {n: v for n, v in ended.changes.items() if not n.startswith("@") and n not in nested.hidden}
        if nested.offered and outer.schema.closed:
            mine = {n: v for n, v in mine.items() if n not in nested.offered or n in outer.schema.fields}
        if nested.push is not None:
            taken = {n: mine[n] for n in nested.push if n in mine}
        elif nested.pull is not None:
            taken = {n: mine[n] for n in nested.pull if n in mine}
        elif outer.schema.closed:
            taken = {n: v for n, v in mine.items() if n in outer.schema.fields}
        else:
            taken = {n: v for n, v in mine.items() if n in outer}
        if nested.keep:
            taken[local_field(self.name)] = {n: v for n, v in ended.state.items() if n.startswith("@")}
        return taken


def start_state(body: Subgraph, task: Task, name: str) -> State:
    """The state a subgraph begins with: its own first values, and over them what it pulls."""
    graph, nested, outer = body.plan.graph, body.nested, task.state
    values = unshared(graph.start)
    names = [n for n in outer if not n.startswith("@")] if nested.pull is None else [n for n in nested.pull if n in outer]
    schema = graph.schema
    values.update((n, outer[n]) for n in names if n not in nested.hidden and (not schema.closed or n in schema.fields))
    if nested.keep:
        values.update(cast("dict[str, Any]", outer.get(local_field(name)) or {}))
    return schema.start(values)


def gathered_inputs(task: Task, graph: Graph) -> Any:
    """What a subgraph's entry edges carry: fields or messages, as the graph wants them."""
    return gathered(task.tokens) if graph.spec.payload == "messages" else folded(token.payload for token in task.tokens)


def entry_tokens(plan: Plan, inputs: Any, root: State) -> list[Token]:
    """The tokens that ``@entry`` sends: each entry edge asked what it carries of ``inputs``."""
    tokens: list[Token] = []
    for id in sorted(plan.entries):
        edge = plan.graph.edges[id]
        if edge.source >= 0:
            continue
        payload = inputs if edge.carry is None else edge.carry(inputs, root)
        if payload is not None:
            tokens.append(Token(id, payload, root))
    return tokens


def output_of(graph: Graph, ended: Ended) -> Any:
    """What a graph gives: fields folded over the exit edges, messages of the preferred end node, or nothing (None).

    A typed graph gives ``{}`` if anything ran: its output is its state.
    """
    spec = graph.spec
    if spec.payload == "state":
        return folded(e.payload for e in ended.exits) if ended.fired else None
    if not ended.exits:
        return None
    if spec.payload == "fields":
        return folded(e.payload for e in ended.exits)
    by_source: dict[str, list[Message]] = {}
    for e in ended.exits:
        edge = graph.edges[e.edge]
        source = graph.vertices[edge.source].name if edge.source >= 0 else ""
        by_source.setdefault(source, []).extend(as_messages(e.payload))
    for name in spec.end:
        if by_source.get(name):
            return by_source[name]
    return next((messages for messages in by_source.values() if messages), list[Message]())


def combined(schema: Schema, parts: Sequence[Mapping[str, Any]]) -> Changes:
    """The changes of several frames, in order, as one delta: what the items of a map wrote."""
    history = History(schema, keeps=True)
    for part in parts:
        history.note(part)
    return Changes(history.changes)


def kind_of(node: Node) -> str:
    """What observers are told a node is: ``node``, ``graph`` or ``cycle``."""
    return "cycle" if isinstance(node.body, Cycle) else "graph" if isinstance(node.body, Subgraph) else "node"

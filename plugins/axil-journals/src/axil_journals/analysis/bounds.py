"""The most that a run may use, by its limits, and its likely use, by recorded runs.

Counted are the calls that agents, switches and judges of axil make; what functions and tools ask of
models by themselves is not known. Tries over again of a service are no further calls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from axil.plugin import CycleBody, Plan, PlanNode, ResolvedNode, SubgraphBody

if TYPE_CHECKING:
    from axil_journals.journal import Entry, RunInfo

_MOST_RUNS: Final = 20
_MOST_READ: Final = 200
"""Runs that are looked at, to find those of a graph."""
_MOST_ENTRIES: Final = 4
"""Ways into a cycle that are counted."""
_MOST_LISTED: Final = 10_000
"""Runs of any graph among which they are sought."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The most of something, and why."""

    most: float | None
    """None: nothing bounds it."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class NodeBound:
    """The most that one node does in a run."""

    path: str
    firings: float | None
    model_calls: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that a run may use; a run that would use more ends with an error."""

    firings: Bound
    model_calls: Bound
    output_tokens: Bound
    tokens: Bound
    cost: Bound
    seconds: Bound
    nodes: tuple[NodeBound, ...] = ()
    """Nodes that ask models."""


@dataclass(frozen=True, slots=True)
class Likely:
    """One number of recorded runs."""

    median: float
    most: float
    """Of nine runs in ten at most this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The use of recorded runs that were done."""

    runs: int
    same: bool
    """True if they were runs of this version of the graph."""
    firings: Likely
    model_calls: Likely | None
    """None: the journal keeps too little of its runs."""
    tokens: Likely
    cost: Likely
    seconds: Likely


# -- the most

_NONE: Final = "nothing bounds it"


class _Sum:
    """A sum of which parts may be unknown."""

    def __init__(self) -> None:
        self.most: float | None = 0
        self.why = ""

    def add(self, amount: float | None, why: str) -> None:
        if amount is None:
            self.why = self.why or why
            self.most = None
        elif self.most is not None:
            self.most += amount

    def bound(self, cap: float | None = None, by: str = "") -> Bound:
        if cap is not None and (self.most is None or cap < self.most):
            return Bound(cap, by)
        return Bound(self.most, self.why)


def bounds_of(plan: Plan) -> Bounds:
    """Return the most that a run of a plan may use. Cost: the size of the plan."""
    limits = plan.graph.spec.limits
    firings, calls, output, seconds = _Sum(), _Sum(), _Sum(), _Sum()
    nodes: list[NodeBound] = []
    most_of_one = 0.0
    for path, (vertex, times, why) in _firings(plan).items():
        repeats, repeated = _repeats(vertex)
        fired, more = _fired(vertex)
        firings.add(_times(times, fired), f"{path}: {more}" if fired is None else why)
        asked = _calls(vertex)
        if asked != 0:
            each = _times(asked, repeats)
            reason = f"{path}: {repeated or 'how often it asks a model is not known'}"
            if asked is not None and times is None:
                reason = why
            total = _times(each, times)
            calls.add(total, reason)
            nodes.append(NodeBound(path, times, total))
            most_of_one = math.inf if each is None else max(most_of_one, each)
            size = getattr(vertex.component, "output_tokens", None)
            output.add(
                _times(total, size),
                reason if total is None else f"{path}: no max_tokens in its model_settings",
            )
        if getattr(vertex.own, "mode", "") not in ("inline", "scope"):
            timed, untimed = _seconds(vertex)
            seconds.add(_times(timed, times), f"{path}: {untimed}" if timed is None else why)
    cap = limits.firings
    capped = None if cap is None or most_of_one == math.inf else cap * most_of_one
    tokens = _Sum()
    tokens.add(0 if calls.most == 0 else None, "no limits.tokens")
    cost = _Sum()
    cost.add(0 if calls.most == 0 else None, "no limits.cost")
    return Bounds(
        firings=firings.bound(cap, "limits.firings"),
        model_calls=calls.bound(capped, "limits.firings"),
        output_tokens=output.bound(limits.tokens, "limits.tokens"),
        tokens=tokens.bound(limits.tokens, "limits.tokens"),
        cost=cost.bound(limits.cost, "limits.cost"),
        seconds=seconds.bound(limits.seconds, "limits.seconds"),
        nodes=tuple(nodes),
    )


def _times(one: float | None, other: float | None) -> float | None:
    if one == 0 or other == 0:
        return 0
    return None if one is None or other is None else one * other


def _seconds(vertex: ResolvedNode) -> tuple[float | None, str]:
    """Return the longest time of a firing, and why that is not known."""
    most, why = None, "no timeout"
    for wrapper in vertex.wrappers:
        own = getattr(wrapper, "seconds", None)
        if isinstance(own, (int, float)):
            most = own
        elif most is not None and getattr(wrapper, "repeats", None) != 1:
            most, why = None, f"no timeout around its {type(wrapper).__name__}"
    return most, why


def _repeats(vertex: ResolvedNode) -> tuple[float | None, str]:
    """Return how often its wrappers may run a node, and why that is not known."""
    times: float | None = 1
    for wrapper in vertex.wrappers:
        repeats = getattr(wrapper, "repeats", None)
        if repeats is None:
            return None, f"{type(wrapper).__name__} does not say how often it runs it"
        times = _times(times, repeats)
    return times, ""


def _fired(vertex: ResolvedNode) -> tuple[float | None, str]:
    """Return how many firings one of a node may be, those of its items and of the agents that its
    model calls included, and why that is not known.
    """
    repeats, why = _repeats(vertex)
    if repeats is None:
        return None, why
    if getattr(vertex.component, "fires_others", False):
        return None, "how often its model fires other nodes is not known"
    fired, times = 1, 1
    for wrapper in reversed(vertex.wrappers):
        own: int = getattr(wrapper, "repeats", 1)
        times *= own
        fired += times if own != 1 else 0  # an item of a map is a firing
    return fired, ""


def _calls(vertex: ResolvedNode) -> float | None:
    """Return how often a node may ask a model in one firing; None: unknown."""
    judge = getattr(vertex.component, "judge", None)
    if judge is not None:
        return getattr(judge, "model_calls", None)
    return getattr(vertex.component, "model_calls", 0)


@dataclass(slots=True)
class _Scope:
    """One scope, and how often it runs."""

    plan: Plan
    path: str
    times: float | None
    why: str


_Count = tuple[ResolvedNode, "float | None", str]
"""A node, how often it fires, and why that is not bounded."""


def _firings(plan: Plan) -> Mapping[str, _Count]:
    """Return all nodes that are no graphs and no cycles, by their paths; where a cycle is entered
    in several ways, as the one has it in which a node fires most often.
    """
    found: dict[str, _Count] = {}
    stack = [_Scope(plan, "", 1, "")]
    while stack:
        scope = stack.pop()
        fired: list[float | None] = []
        incoming: dict[int, list[int]] = {}
        ports: dict[int, int] = {}
        for port in scope.plan.ports:
            ports[port.node] = ports.get(port.node, 0) + 1
        for node in scope.plan.nodes:
            for arc in node.out:
                if arc.port >= 0:
                    incoming.setdefault(scope.plan.ports[arc.port].node, []).append(node.index)
        outside: dict[int, int] = {}
        for arc in scope.plan.entries.values():
            if arc.port >= 0:
                at = scope.plan.ports[arc.port].node
                outside[at] = outside.get(at, 0) + 1
        for node in scope.plan.nodes:
            once = _once(scope.plan, node, ports, incoming, outside, fired)
            fired.append(once)
            why = scope.why or f"{scope.path}{node.name} may fire any number of times"
            times = _times(once, scope.times)
            vertex = node.vertex
            if isinstance(vertex.body, CycleBody):
                stack += _turned(vertex.body, scope, times)
                continue
            path = f"{scope.path}{node.name}"
            known = found.get(path)
            if known is None or (known[1] is not None and (times is None or times > known[1])):
                found[path] = vertex, times, why
            body = vertex.own if vertex.own is not None else vertex.body
            if isinstance(body, SubgraphBody):
                repeats, repeated = _repeats(vertex)
                path = f"{scope.path}{node.name}/"
                reason = scope.why or (f"{path[:-1]}: {repeated}" if repeated else "")
                stack.append(_Scope(body.plan, path, _times(times, repeats), reason))
    return found


def _once(
    plan: Plan,
    node: PlanNode,
    ports: Mapping[int, int],
    incoming: Mapping[int, list[int]],
    outside: Mapping[int, int],
    fired: Sequence[float | None],
) -> float | None:
    """Return how often a node fires in one round of its scope."""
    flat = plan.flat_limits.get(node.index)
    if flat is not None:
        return flat.rounds
    if not node.vertex.join.per_token:
        return max(1, ports.get(node.index, 0))
    total: float = outside.get(node.index, 0) + (node.index == plan.entry)
    for source in incoming.get(node.index, ()):
        amount = fired[source] if source < len(fired) else None
        if amount is None:
            return None
        total += amount
    return max(1, total)


def _turned(body: CycleBody, around: _Scope, times: float | None) -> Iterator[_Scope]:
    """Yield a cycle that is entered so often, as each of its entries has it."""
    doors = sorted({edge.target for edge in body.entrances() if edge.trigger}) or [body.members[0]]
    is_known = len(doors) <= _MOST_ENTRIES
    for door in doors[:_MOST_ENTRIES]:
        rounds, why = _rounds(body, door)
        if not is_known:
            rounds, why = None, f"{body.name} is entered at {len(doors)} nodes"
        yield _Scope(body.body(door), around.path, _times(times, rounds), around.why or why)


def _rounds(body: CycleBody, door: int) -> tuple[float | None, str]:
    """Return how often a cycle turns at most, and why that is not bounded."""
    vertex = body.graph.vertices[door]
    rounds: float | None = body.graph.cycle_limit(vertex.name).rounds
    if rounds is None:
        own = getattr(vertex.component, "most", None)  # a controller that counts by itself
        rounds = own + 1 if isinstance(own, int) and own > 0 else None
    return rounds, "" if rounds is not None else f"{body.name} has no limit of rounds"


# -- the likely


class Recorded(Protocol):
    """The part of a journal that an estimate reads."""

    def runs(
        self, *, status: Collection[str] = (), after: str = "", limit: int = 0
    ) -> Sequence[RunInfo]: ...
    def entries(self, run_id: str, /) -> Iterable[Entry]: ...


def estimate(journal: Recorded, plan: Plan) -> Estimate | None:
    """Return what the last runs of a graph used that were done; None: there are none.

    Runs of this version of the graph count; where there are none, those of other versions. The
    last 10,000 runs of the journal are looked at, whatever their graph.
    """
    digest, name = plan.graph.digest, plan.graph.spec.id
    done = (info for info in _done(journal) if info.graph == name)
    same: list[_Used] = []
    others: list[_Used] = []
    for read, info in enumerate(done):
        if read >= _MOST_READ or len(same) >= _MOST_RUNS:
            break
        is_same, used = _used(journal.entries(info.run_id), digest)
        (same if is_same else others).append(used)
    found = same or others[:_MOST_RUNS]
    if not found:
        return None
    calls = [used.model_calls for used in found if used.model_calls is not None]
    return Estimate(
        runs=len(found),
        same=bool(same),
        firings=_likely([used.firings for used in found]),
        model_calls=_likely(calls) if calls else None,
        tokens=_likely([used.tokens for used in found]),
        cost=_likely([used.cost for used in found]),
        seconds=_likely([used.seconds for used in found]),
    )


def _done(journal: Recorded) -> Iterator[RunInfo]:
    """Iterate over the last runs that were done, a page at a time."""
    seen, after = 0, ""
    while seen < _MOST_LISTED and (
        some := journal.runs(status=["done"], after=after, limit=_MOST_READ)
    ):
        yield from some
        seen, after = seen + len(some), some[-1].run_id


@dataclass(frozen=True, slots=True)
class _Used:
    """The use of one run."""

    firings: float
    model_calls: float | None
    """None: its journal does not have all of them."""
    tokens: float
    cost: float
    seconds: float


def _used(entries: Iterable[Entry], digest: str) -> tuple[bool, _Used]:
    """Return whether a run was one of this graph, and what it used."""
    is_same, calls, seconds, seen = False, 0, 0.0, Counter[str]()
    used: dict[str, Any] = {}
    for entry in entries:
        data = entry.data
        used.update(data.get("used", {}))
        seconds = max(seconds, float(data.get("at", 0.0)))
        if entry.kind == "run":
            is_same = data.get("digest") == digest
        elif entry.kind == "step":
            usage = _usage(data.get("value"))
            calls += usage is not None
            seen.update(usage or {})
    tokens: Mapping[str, float] = used.get("tokens", {})
    # of steps that a later fact replaced, a journal may keep none
    is_whole = all(seen[kind] >= number for kind, number in tokens.items())
    cost, firings = used.get("cost", 0.0), used.get("firings", 0)
    total = sum(tokens.values())
    return is_same, _Used(firings, calls if is_whole else None, total, cost, seconds)


def _usage(value: object) -> Mapping[str, int] | None:
    """Return the tokens of a step that was a call of a model, by the form of its result."""
    if not isinstance(value, Mapping):
        return None
    step = cast("Mapping[str, Any]", value)
    usage = step.get("usage")
    is_reply = "text" in step and isinstance(usage, Mapping)
    return cast("Mapping[str, int]", usage) if is_reply else None


def _likely(numbers: Sequence[float]) -> Likely:
    ordered = sorted(numbers)
    at = min(len(ordered) - 1, math.ceil(0.9 * len(ordered)) - 1)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Likely(median, ordered[at])


# -- shown

_WORDS: Final = {
    "firings": "firings",
    "model_calls": "model calls",
    "output_tokens": "output tokens",
    "tokens": "tokens",
    "cost": "money",
    "seconds": "seconds",
}


def bound_lines(bounds: Bounds, likely: Estimate | None) -> Iterator[str]:
    """Yield the most, and the likely, as lines for people."""
    yield "  at most, and likely:" if likely is not None else "  at most:"
    for name, word in _WORDS.items():
        bound: Bound = getattr(bounds, name)
        if name == "output_tokens" and bounds.tokens.most is not None:
            continue
        most = f"not bounded ({bound.why})" if bound.most is None else _number(bound.most)
        if bound.most is not None and bound.why:
            most += f" ({bound.why})"
        guess: Likely | None = getattr(likely, name, None)
        line = f"    {word:<14} {most}"
        if guess is not None:
            line += f"; likely {_number(guess.median)}, in 9 of 10 runs up to {_number(guess.most)}"
        elif likely is not None and name == "model_calls":
            line += "; how many are likely is not known: the journal does not keep all of them"
        if likely is not None and name == "cost" and likely.tokens.most > likely.cost.most == 0:
            line += " (no model had a price)"
        yield line
    if likely is not None:
        of = "this version" if likely.same else "other versions"
        yield f"    by {likely.runs} recorded run{'s' if likely.runs != 1 else ''} of {of}"


def bound_data(bounds: Bounds | None, likely: Estimate | None = None) -> dict[str, Any]:
    """Return the same as plain data."""
    return {
        "most": None if bounds is None else asdict(bounds),
        "likely": None if likely is None else asdict(likely),
    }


def _number(value: float) -> str:
    """Return a number for people.

    >>> _number(1234567.0), _number(0.00412), _number(2.5)
    ('1,234,567', '0.0041', '2.5')
    """
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if value >= 1 else f"{value:.2g}"

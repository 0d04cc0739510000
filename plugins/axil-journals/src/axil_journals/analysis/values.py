"""Values that conditions look at, followed from node to node.

A formula speaks of a *place*: ``message.score``, ``text``, ``state.mode``. At two nodes a place may
hold two values, or one and the same. So each value has a name, for where it comes from: ``a3`` is
that of a place after node 3 fired, ``b3`` before it did, ``e7`` that of one message on edge 7. A
formula whose places have such names may be compared with one of any other node of the same round:
where they name the same value, they speak of the same thing.

A value is followed along edges that carry it unchanged, and through nodes that neither write it nor
give another output; where several edges meet, if they all bring the same one. Whatever else may
happen to a place makes another value of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from axil_journals.analysis.facts import GraphFacts
from axil_journals.analysis.logic import Domain, Formula, Path, atoms, mapped

Place = tuple[str | int, ...]
"""A root, and the first key behind it."""
Values = Mapping[Place, str]
"""The value of each place that is followed; of one that is missing it is another."""

Writers = Mapping[str, set[int]]
"""The nodes that may write each field; under ``_ANY`` those that may write any."""

NONE: Final[Values] = {}
_ANY: Final = "*"
_MOST_PLACES: Final = 32
_ROOTS: Final = {"came": "message", "came text": "text", "before": "state"}
_EDGE_KEYS: Final = frozenset(["role", "source", "preserve_role"])
"""Fields of a message that edges change."""


def place_of(path: Path) -> Place:
    """Return the place of a path.

    >>> place_of(("len", "before", "items", 0)), place_of(("message 7", "score"))
    (('state', 'items'), ('message', 'score'))
    """
    at = 1 if path[0] == "len" else 0
    root = str(path[at])
    return (_ROOTS.get(root) or root.split(" ")[0], *path[at + 1 : at + 2])


class Follower:
    """The rules by which values of one graph are followed."""

    def __init__(self, facts: GraphFacts) -> None:
        self.facts, self.graph = facts, facts.graph
        self.places = self._most_shared()

    def _most_shared(self) -> tuple[Place, ...]:
        """Return the places that are followed: those first of which several nodes speak."""
        by_place: dict[Place, set[tuple[int, object]]] = {}
        for edge in self.graph.edges:
            for atom in atoms(self.facts.formula(edge.id)):
                if atom[0] != "?":
                    root = atom[1][1] if atom[1][0] == "len" else atom[1][0]
                    by_place.setdefault(place_of(atom[1]), set()).add((edge.source, root))
        found = [place for place in by_place if place[0] in ("message", "text", "state")]
        found.sort(key=lambda place: -len(by_place[place]))
        return tuple(found[:_MOST_PLACES])

    # -- nodes and edges

    def before(self, vertex: int, came: Sequence[Values], *, is_one: bool) -> Values:
        """Return the values before a node fires.

        Args:
            came: what its edges bring.
            is_one: only one of its edges brings something in any firing.
        """
        if not came:
            return NONE
        first, *others = came
        node = self.facts.nodes[vertex]
        takes_one = node.forwards and getattr(node.component, "gives_one", False)
        is_kept = not node.spec.merge
        is_one &= all(self.graph.edges[id].trigger for id in self.facts.incoming[vertex])
        return {
            place: value
            for place, value in first.items()
            if (is_kept if place[0] == "state" else is_one)
            and (takes_one or value[0] != "e")
            and all(each.get(place) == value for each in others)
        }

    def after(self, vertex: int, before: Values) -> Values:
        """Return the values after a node has fired."""
        node = self.facts.nodes[vertex]
        found: dict[Place, str] = {}
        for place in self.places:
            if place[0] == "state":
                writes = node.writes
                is_kept = writes is not None and len(place) > 1 and place[1] not in writes
                is_kept &= not (self.facts.is_typed and place[1:] == ("messages",))
            else:
                is_kept = node.forwards
            if is_kept:
                found[place] = before.get(place, f"b{vertex}")
        return found

    def carried(self, id: int, after: Values) -> Values:
        """Return the values that an edge brings to its target."""
        edge, spec = self.graph.edges[id], self.facts.edge(id)
        if not self.places or not self.facts.fires_once(edge.source):
            return NONE
        is_same_state = spec.filter is None and edge.router < 0
        is_same = spec.process is None and spec.carry_data
        is_whole = self.facts.is_whole(id)
        return {
            place: after.get(place, f"a{edge.source}")
            if is_whole or place[0] == "state"
            else f"e{id}"  # each message that it carries
            for place in self.places
            if (is_same_state if place[0] == "state" else is_same and _carries(spec.keys, place))
            and not (place[0] == "message" and _is_changed(place, spec.marks))
        }

    def writers(self, members: Collection[int]) -> Writers:
        """Return the nodes of a cycle that may write each field of the state, themselves or on an
        edge of theirs.
        """
        found: dict[str, set[int]] = {}
        for member in members:
            node = self.facts.nodes[member]
            edges = [self.facts.edge(id) for id in self.facts.outgoing[member]]
            is_open = node.writes is None or node.spec.merge
            is_open = is_open or any(edge.filter or edge.router for edge in edges)
            for name in (_ANY,) if is_open else node.writes or ():
                found.setdefault(name, set()).add(member)
        return found

    def entered(self, writers: Writers, before: Values) -> Values:
        """Return the values at the start of each round of a cycle."""
        return {place: v for place, v in before.items() if self._is_kept(place, writers)}

    def left(self, writers: Writers, source: int, outside: Values, inside: Values) -> Values:
        """Return the values on an edge that leaves a cycle: its state is that of all its paths."""
        found: dict[Place, str] = {}
        for place in self.places:
            is_kept = self._is_kept(place, writers)
            value = outside.get(place) if is_kept else inside.get(place)
            if value is not None and (
                is_kept or place[0] != "state" or self._is_kept(place, writers, source)
            ):
                found[place] = value
        return found

    def _is_kept(self, place: Place, writers: Writers, alone: int = -1) -> bool:
        """Return whether a place of the state is written by no node of a cycle, but for one."""
        if place[0] != "state" or len(place) < 2:
            return False
        if self.facts.is_typed and place[1] == "messages":
            return False
        return all(writers.get(str(name)) in (None, {alone}) for name in (_ANY, place[1]))

    # -- formulas

    def named(self, id: int, before: Values, after: Values) -> Formula:
        """Return when an edge is taken, its values named."""
        source = self.graph.edges[id].source

        def name(path: Path) -> Path:
            at = 1 if path[0] == "len" else 0
            root = str(path[at])
            place = place_of(path)
            if place[0] not in ("message", "text", "state"):
                return path
            if root in _ROOTS:
                value = before.get(place, f"b{source}")
            elif " " in root:
                value = f"e{id}"
            else:
                value = after.get(place, f"a{source}")
            return (*path[:at], f"{place[0]} {value}", *path[at + 1 :])

        return mapped(self.facts.formula(id), name, lambda text: f"{text} at {source}")

    def domain(self, path: Path) -> Domain | None:
        """Return what is known of a named value."""
        at = 1 if path[0] == "len" else 0
        root, _, value = str(path[at]).partition(" ")
        if root not in ("message", "text", "state"):
            return self.facts.domains(-1)(path)
        vertex = self.giver(path)
        if value[:1] == "b":
            root = {"message": "came", "text": "came text", "state": "before"}[root]
        return self.facts.domains(vertex)((*path[:at], root, *path[at + 1 :]))

    def giver(self, path: Path) -> int:
        """Return the node where a named value comes from; -1: from outside."""
        root, _, value = str(path[1] if path[0] == "len" else path[0]).partition(" ")
        if root not in ("message", "text", "state"):
            return -1
        number = int(value[1:])
        return self.graph.edges[number].source if value[:1] == "e" else number


def places_in(formula: Formula) -> Counter[Path]:
    """Return the named places of a formula, and how often each is in it."""
    found = Counter[Path]()
    for atom in atoms(formula):
        if atom[0] != "?":
            path: Path = atom[1]
            found[path[1:] if path[0] == "len" else path] += 1
    return found


def _carries(keys: Mapping[str, str] | None, place: Place) -> bool:
    return keys is None or (len(place) > 1 and place[0] == "message" and place[1] in keys)


def _is_changed(place: Place, marks: Mapping[str, object]) -> bool:
    return len(place) < 2 or place[1] in _EDGE_KEYS or place[1] in marks

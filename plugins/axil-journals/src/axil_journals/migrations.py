"""Records of runs under an earlier graph, read as if the present graph had written them.

Theory of operation
-------------------
A graph's state has a version, and functions that lead from one version to the next. Entries are
never rewritten: they are migrated when they are read. A function gets what was written together,
as plain data by field (a whole state; or what one node wrote, often only some fields), and returns
the same under the next version. Fields that begin with ``@`` are the nodes' own and are not shown
to it.

The header of a run, and each ``resumed`` with another graph, has the versions under which the
entries after it were written. Graphs inside a graph have versions of their own, by the path of
their node. What belongs to nodes and edges that the graph no longer has is left out; anything else
that does not fit is an error before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from axil import MISSING, AxilError, Schema
from axil.driver import NO_RESET, Frame, Migration, ResolvedGraph as Graph
from axil.plugin import FieldChange, JournalError, Plan, ResolvedNode, SubgraphBody, format_names
from axil_journals.journal import Entry
from axil_journals.values import change_of, decode_delta, decode_value, encode_value


def versions(graph: Graph) -> dict[str, int]:
    """Return the state versions other than 1 of a graph and of those inside it, by path."""
    return {
        path: inner.spec.state_version
        for path, inner in _graphs(graph)
        if inner.spec.state_version != 1
    }


def marked(graph: Graph) -> dict[str, list[str]]:
    """Return the fields, by graph, whose deltas are marked as being of the field's type or not;
    see ``Checks.encode_delta``.
    """
    found = {
        path: sorted(name for name in inner.schema.fields if _is_marked(inner.schema, name))
        for path, inner in _graphs(graph)
    }
    return {path: names for path, names in found.items() if names}


def _graphs(graph: Graph) -> list[tuple[str, Graph]]:
    found, stack = list[tuple[str, Graph]](), [("", graph)]
    while stack:
        path, outer = stack.pop()
        found.append((path, outer))
        for vertex in outer.vertices:
            if isinstance(vertex.body, SubgraphBody):
                stack.append(
                    (f"{path}/{vertex.name}" if path else vertex.name, vertex.body.plan.graph)
                )
    return found


def _is_marked(schema: Schema, name: str) -> bool:
    declared = schema.fields.get(name)
    return declared is not None and getattr(declared.decode, "__name__", "") == "decode_delta"


def recorded_graph(entries: Iterable[Entry]) -> Mapping[str, Any]:
    """Return the recorded graph of a run: of its header, or of the last resumption with another."""
    found: dict[str, Any] = {}
    for entry in entries:
        if entry.kind == "run":
            found = dict(entry.data)
        elif entry.kind == "resumed" and "now" in entry.data:
            found.update(entry.data["now"])
    return found


def adapt_entries(
    entries: Sequence[Entry], plan: Plan, *, migrate: bool = False
) -> Sequence[Entry]:
    """Return the entries of a run as if the graph of ``plan`` had written them.

    Args:
        migrate: also where another graph wrote them; else the caller compares the digests.
    Raises: JournalError: AX525 no migration leads here; AX526 one failed, or what was written does
        not fit the graph.
    """
    graph = plan.graph
    before = recorded_graph(entries)
    has_moved = any("now" in entry.data for entry in entries if entry.kind == "resumed")
    if not before or not (migrate or has_moved):
        return entries
    is_other = before["digest"] != graph.spec.digest()
    if not (migrate if is_other else has_moved):
        return entries
    reader = _Reader(graph)
    return [read for entry in entries if (read := reader.read(entry)) is not None]


def thread_state(state: Mapping[str, Any], before: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the final state of a thread's last run, given as JSON data, as present values.

    ``before``: the recorded graph of that run. Raises: JournalError: AX525, AX526.
    """
    reader = _Reader(plan.graph)
    reader.use(before)
    where = "what the thread's last run left"
    written = reader.migrated(state, ((), plan.graph), where)
    own = {name: data for name, data in before.get("before", {}).items() if name[:1] == "@"}
    return reader.checked(written, plan.graph, where, decode_delta(own, plan.graph.schema))


def graph_of_frame(graph: Graph, frame: Frame) -> Graph:
    """Return the graph that a frame is of; of one that a body runs, as far as it is known."""
    return _Reader(graph).at(frame)[1]


class _Reader:
    """A reader of the entries of a run, in order, which knows the versions of each."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.now = versions(graph)
        self.then: Mapping[str, int] = {}
        self.marks: Mapping[str, Sequence[str]] = {}
        self._names: dict[int, tuple[Mapping[str, ResolvedNode], frozenset[str]]] = {}

    def use(self, header: Mapping[str, Any]) -> None:
        """Read the following entries as written by this graph."""
        self.then, self.marks = header.get("states", {}), header.get("marked", {})

    def read(self, entry: Entry) -> Entry | None:
        """Return an entry as of today; None: the graph no longer has its node."""
        data, where = entry.data, str(entry.activation) if entry.node else "what the run began with"
        if entry.kind == "run" or (entry.kind == "resumed" and "now" in data):
            before = {"states": self.then, "marked": self.marks}
            self.use(data if entry.kind == "run" else {**before, **data["now"]})
        if entry.kind == "run":
            at = ((), self.graph)
            changed = {
                name: self.migrated(data[name], at, where)
                for name in ("values", "before")
                if name in data
            }
            for name in changed:
                self.checked(changed[name], self.graph, where)
            return replace(entry, data={**data, **changed})
        if entry.kind not in ("done", "round"):
            return entry
        path, graph, is_known = self.at(entry.frame)
        at = (path, graph)
        if entry.kind == "round":
            return replace(entry, data={**data, **self._round(data, at, where)})
        has_node = entry.node in self._known(graph)[0] or entry.node.startswith("cycle(")
        if is_known and not has_node:
            return None
        delta = self._both(data["delta"], at, where)
        sends = [[n, p, v if v is None else self._both(v, at, where)] for n, p, v in data["sends"]]
        return replace(entry, data={**data, "delta": delta, "sends": sends})

    def _round(
        self, data: Mapping[str, Any], at: tuple[Frame, Graph], where: str
    ) -> dict[str, Any]:
        """Return the writes of a round, and the tokens that left it on edges that still exist."""
        edges = self._known(at[1])[1]
        found: dict[str, Any] = {
            name: self._both(data[name], at, where) for name in ("changes", "total") if name in data
        }
        for name in ("exits", "returns", "kept"):
            if name in data:
                found[name] = [
                    [n, p, v if v is None else self._both(v, at, where), o]
                    for n, p, v, o in data[name]
                    if n in edges
                ]
        return found

    def at(self, frame: Frame) -> tuple[Frame, Graph, bool]:
        """Return the path of the graph that a frame is of, the graph, and whether that is sure."""
        graph, path = self.graph, list[str]()
        for part in frame:
            vertex = self._known(graph)[0].get(part) if isinstance(part, str) else None
            if vertex is None:
                continue
            if not isinstance(vertex.body, SubgraphBody):
                return tuple(path), graph, False
            graph = vertex.body.plan.graph
            path.append(vertex.name)
        return tuple(path), graph, True

    def _known(self, graph: Graph) -> tuple[Mapping[str, ResolvedNode], frozenset[str]]:
        """Return the nodes of a graph by their names, and the names of its edges."""
        if id(graph) not in self._names:
            self._names[id(graph)] = (
                {v.name: v for v in graph.vertices},
                frozenset(edge.name for edge in graph.edges),
            )
        return self._names[id(graph)]

    def _both(self, data: Mapping[str, Any], at: tuple[Frame, Graph], where: str) -> dict[str, Any]:
        found = self.migrated(data, at, where)
        self.checked(found, at[1], where)
        return found

    def checked(
        self,
        data: Mapping[str, Any],
        graph: Graph,
        where: str,
        since: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return migrated data as values, which the present schema accepts.

        ``since``: see ``decode_delta``. Raises: JournalError (AX526).
        """
        try:
            found = decode_delta(data, graph.schema, since or {})
            if self.then != self.now:
                _check(found, graph.schema)
            return found
        except (AxilError, ValueError, TypeError) as error:
            why = getattr(error, "message", error)
            message = f"{where} does not fit the state of this graph: {why}"
            hint = "Raise its state_version and give a migration, or finish it on the old version."
            raise JournalError(message, id="AX526", hint=hint) from error

    def migrated(
        self, data: Mapping[str, Any], at: tuple[Frame, Graph], where: str
    ) -> dict[str, Any]:
        """Return what was written together as JSON data of the present version.

        Raises: JournalError (AX525, AX526).
        """
        path, graph = "/".join(map(str, at[0])), at[1]
        then, now = self.then.get(path, 1), self.now.get(path, 1)
        if then == now:
            return dict(data)
        migrating = _Migrating(graph, (then, now), frozenset(self.marks.get(path, ())), where)
        own = {name: value for name, value in data.items() if name.startswith("@")}
        others = {name: value for name, value in data.items() if name not in own}
        return {**own, **migrating.migrated(others)}


def _check(delta: Mapping[str, Any], schema: Schema) -> None:
    """Check that fields accept what is written. Raises: StateError; and what a reducer raises."""
    for name, value in delta.items():
        declared = schema.of(name)
        deltas, reset = (
            (value.deltas, value.reset) if type(value) is FieldChange else ((value,), NO_RESET)
        )
        if reset is not NO_RESET and reset is not MISSING:
            schema.check({name: reset}, whole=True)
        if declared.reducer.whole:
            for each in deltas:
                schema.check({name: each})
        elif deltas:
            schema.reduced(
                declared, MISSING if declared.default is None else declared.default(), deltas
            )


class _Migrating:
    """The migration of what was written together."""

    def __init__(
        self, graph: Graph, between: tuple[int, int], marks: frozenset[str], where: str
    ) -> None:
        self.graph, self.marks, self.where = graph, marks, where
        self.then, self.now = between

    def migrated(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data under the present version; several deltas of a field one by one."""
        layers: list[dict[str, Any]] = [{}]
        resets: dict[str, Any] = {}
        for name, given in data.items():
            if (change := change_of(given)) is not None:
                if "reset" in change:
                    resets[name] = change["reset"]
                for number, delta in enumerate(change["v"], 1):
                    while len(layers) <= number:
                        layers.append({})
                    layers[number][name] = delta
            else:
                layers[0][name] = given
        whole, *parts = [self._layer(layer) if layer else {} for layer in layers]
        anew = self._layer(resets) if resets else {}
        for name in dict.fromkeys([*anew, *(name for part in parts for name in part)]):
            deltas = [part[name] for part in parts if name in part]
            whole[name] = {"@": "change", "v": deltas}
            if name in anew:
                whole[name]["reset"] = anew[name]
        return whole

    def _layer(self, data: Mapping[str, Any]) -> dict[str, Any]:
        plain = {
            name
            for name in self.marks & data.keys()
            if isinstance(data[name], list) and data[name][:1] == ["plain"]
        }
        given = {
            name: decode_value(value[1] if name in self.marks else value)
            for name, value in data.items()
        }
        if self.then > self.now:
            raise self._missing(f"and migrations lead forward only, not from {self.then}")
        values = dict(given)
        for version in range(self.then, self.now):
            values = self._step(version, values)
        return {
            name: self._encoded(name, value, name in plain and value is given.get(name))
            for name, value in values.items()
        }

    def _encoded(self, name: str, value: Any, as_it_was: bool) -> Any:
        data = encode_value(value)
        return (
            ["plain" if as_it_was else "typed", data]
            if _is_marked(self.graph.schema, name)
            else data
        )

    def _step(self, version: int, values: dict[str, Any]) -> dict[str, Any]:
        migrations: Mapping[int, Migration] = self.graph.spec.migrations
        if version not in migrations:
            known = format_names([f"{each} to {each + 1}" for each in sorted(migrations)]) or "none"
            why = f"and no migration leads from {version} to {version + 1} (there are: {known})"
            raise self._missing(why)
        try:
            found = migrations[version](values)
        except Exception as error:
            message = (
                f"{self.where}: the migration from version {version} failed: "
                f"{type(error).__name__}: {error}"
            )
            hint = "It gets what was written together: often only some of the fields."
            raise JournalError(message, id="AX526", hint=hint) from error
        if not isinstance(cast("Any", found), Mapping) or not all(
            isinstance(name, str) for name in cast("Any", found)
        ):
            message = (
                f"{self.where}: the migration from version {version} gave "
                f"{type(found).__name__}; expected fields with their values."
            )
            raise JournalError(message, id="AX526", hint="Return the mapping that it got, changed.")
        return dict(found)

    def _missing(self, why: str) -> JournalError:
        found = f"the state was written under version {self.then}"
        message = f'{found}, the graph "{self.graph.spec.id}" has version {self.now}, {why}.'
        hint = "Give the missing migration, or finish the run on the version it began with."
        return JournalError(message, id="AX525", hint=hint)

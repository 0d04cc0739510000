"""The reader of workflow files: data of the right shapes becomes nodes and edges, by the rules
that ``loading`` describes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, cast

from axil import (
    ComponentRef,
    CycleLimit,
    EdgeSpec,
    GraphSpec,
    Limits,
    NodeSpec,
    PluginError,
    Problem,
    Schema,
    SpecError,
)
from axil.plugin import (
    ENTRY,
    EXIT,
    Field,
    Grants,
    Place,
    PluginContract,
    Registry,
    UnknownComponent,
    Want,
    default_registry,
    did_you_mean,
    format_names,
    format_value,
    install_advice,
    isolate,
    note_want,
    with_usual_wrappers,
)
from axil_files.documents import Document, KeyPath
from axil_files.format import Shapes, is_version_0, notes_field

KEPT: Final = ("memory", "initial_instruction", "organization", "log_level", "args")
"""Keys of a graph that are carried in ``extras``."""
FORWARDING: Final = ("passthrough",)
"""Node types that send on the messages that came, with their marks."""


@dataclass(slots=True)
class _Received:
    """The requirements of edges on one node."""

    marks: bool = False
    keeps: bool = False
    """True if marked messages come that are to be kept."""
    dynamic: dict[str, Any] | None = None
    kind: str = ""
    first: str = ""
    """The edge that said so first."""
    place: Place | None = None
    edges: list[str] = field(default_factory=list[str])
    waiting: dict[str, tuple[ComponentRef, list[str]]] = field(
        default_factory=dict[str, tuple[ComponentRef, list[str]]]
    )
    """Processors of edges that wait: wrappers, and the nodes whose messages they are for."""
    usual: list[ComponentRef] = field(default_factory=list[ComponentRef])
    """The wrappers that its graph puts around it."""


def _pass_on(
    items: Sequence[Any], edges: Sequence[EdgeSpec], received: Mapping[str, _Received]
) -> None:
    """Let the receivers of nodes that pass messages on keep those that are marked, too."""
    fields = (cast("dict[str, Any]", item) for item in items if isinstance(item, dict))
    passing = [each.get("id") for each in fields if each.get("type") in FORWARDING]
    onward: dict[str, list[str]] = {}
    for edge in edges:
        onward.setdefault(edge.source, []).append(edge.target)
    waiting = [name for name in received if received[name].keeps]
    while waiting:
        name = waiting.pop()
        for target in onward.get(name, ()) if name in passing else ():
            if target in received and not received[target].keeps:
                received[target].marks = received[target].keeps = True
                waiting.append(target)


class Reader:
    """Reads one document. Parts whose shape is wrong were reported already and are left out."""

    def __init__(
        self,
        document: Document,
        shapes: Shapes,
        *,
        allow_code: bool = False,
        grants: Grants | None = None,
        registry: Registry | None = None,
    ) -> None:
        self._document, self._shapes, self._allow_code = document, shapes, allow_code
        self._grants = grants or Grants()
        self._registry = registry or default_registry()
        self._shorthands: dict[str, Any] = {}

    def file(self) -> GraphSpec | None:
        """Return the graph of the whole document."""
        data = self._document.data
        graph = cast("dict[str, Any]", data).get("graph") if isinstance(data, dict) else None
        if not isinstance(graph, dict):
            return None
        root = cast("dict[str, Any]", data)
        extras = {} if root.get("version") is None else {"version": root["version"]}
        requires = _requirements(root.get("requires"))
        for name, version in list(requires.items()):
            # they become part of commands that messages propose
            if not _DISTRIBUTION.fullmatch(name) or not _SPECIFIER.fullmatch(version):
                found = " ".join(f"{name}{version}".encode("unicode_escape").decode().split())
                message = f"expected a distribution and its versions, found {found!r}."
                self._problem("AX103", ("requires",), message, "Write acme-clocks: '>=1.0'.")
                del requires[name]
        return self.graph(cast("dict[str, Any]", graph), ("graph",), requires, extras)

    def graph(
        self,
        data: dict[str, Any],
        keys: KeyPath,
        requires: Mapping[str, str],
        extras: Mapping[str, Any],
    ) -> GraphSpec | None:
        """Return a graph from the data under ``graph`` in a file, or under a subgraph's config."""
        if not isinstance(data.get("nodes"), list):
            return None
        data = {
            key: value for key, value in data.items() if key in _LISTS or self._fine((*keys, key))
        }
        names = self._names(data["nodes"], (*keys, "nodes"))
        if not data["nodes"] and not data.get("edges"):
            message = "a graph without nodes does nothing."
            hint = "Write at least one: {id: a, type: passthrough}."
            self._problem("AX142", (*keys, "nodes"), message, hint)
        received: dict[str, _Received] = {name: _Received() for name in names}
        usual = self._usual(data.get("node_wrappers"), (*keys, "node_wrappers"), data["nodes"])
        for item in data["nodes"]:
            name = cast("dict[str, Any]", item).get("id") if isinstance(item, dict) else None
            if isinstance(name, str) and name in received:
                received[name].usual = [
                    use
                    for kind in ("*", cast("Any", item).get("type"))
                    for use in usual.get(str(kind), ())
                ]
        edges = list(self._edges(_list(data, "edges"), (*keys, "edges"), names, received))
        _pass_on(data["nodes"], edges, received)
        nodes = [
            n
            for i, item in enumerate(data["nodes"])
            if (n := self._node(item, (*keys, "nodes", i), received))
        ]
        start = self._mentioned(data, "start", keys, names)
        end = self._mentioned(data, "end", keys, names)
        payload = data.get("payload") or "messages"
        if data.get("is_majority_voting") is True:
            nodes, edges, end = self._voting(nodes, keys)
        else:
            left_open = data.get("end") == []
            edges, end = self._connected(
                edges, start, end, names, keys, payload=payload, left_open=left_open
            )
        schema, attributes, own = self._state(data, keys)
        kept = {key: data[key] for key in KEPT if data.get(key) not in (None, "", [])}
        stores = self._stores(_list(data, "memory"), (*keys, "memory"))
        if stores:
            own["growing"] = tuple(notes_field(name) for name in stores)
        if is_version_0(extras.get("version")):
            own["lenient"] = True
        return GraphSpec(
            id=str(data.get("id") or "") or _stem(self._document.name),
            nodes=tuple(nodes),
            edges=tuple(edges),
            schema=schema,
            attributes=attributes,
            payload=payload,
            end=tuple(end),
            cycles=data.get("cycles") or "allow",
            loop=self._controller(data, keys, names),
            cycle_limits=self._cycle_limits(
                data.get("cycle_limits"), (*keys, "cycle_limits"), names
            ),
            state_version=data.get("state_version") or 1,
            migrations=self._migrations(data.get("migrations") or {}, (*keys, "migrations")),
            limits=self._limits(data.get("limits"), (*keys, "limits")),
            requires=requires,
            description=str(data.get("description") or ""),
            extras={**extras, **kept, **own},
            place=self._document.place(*keys),
        )

    def _migrations(self, given: Mapping[Any, Any], keys: KeyPath) -> dict[int, str]:
        """Import paths by version; whether they may be followed is asked when the plan is made."""
        found: dict[int, str] = {}
        for version, path in given.items():
            if not str(version).isdecimal() or not isinstance(path, str) or ":" not in path:
                message = f"expected a version and an import path, found {version!r}: {path!r:.80}."
                self._problem("AX527", (*keys, version), message, "Write 1: my_module:from_1_to_2.")
            else:
                found[int(version)] = path
        return found

    def _problem(
        self, id: str, keys: KeyPath, message: str, hint: str = "", *, warning: bool = False
    ) -> None:
        severity = "warning" if warning else "error"
        self._shapes.report(Problem(id, str(self._document.place(*keys)), message, hint, severity))

    def _fine(self, keys: KeyPath) -> bool:
        return keys not in self._shapes.spoiled

    # -- nodes

    def _names(self, items: list[Any], keys: KeyPath) -> dict[str, int]:
        names: dict[str, int] = {}
        for i, item in enumerate(items):
            name = cast("dict[str, Any]", item).get("id") if isinstance(item, dict) else None
            if not isinstance(name, str) or not name:
                continue
            if name in names:
                line = self._document.place(*keys, names[name]).line
                on = f" (line {line})" if line else ""
                message = f'the node "{name}" exists already{on}.'
                self._problem("AX101", (*keys, i, "id"), message, "Give one of them another id.")
            elif name.startswith("@"):
                message = f'"{name}" begins with @, as only names of axil do.'
                self._problem("AX102", (*keys, i, "id"), message, "Choose another id.")
            names.setdefault(name, i)
        return names

    def _node(self, data: Any, keys: KeyPath, received: Mapping[str, _Received]) -> NodeSpec | None:
        if not self._fine(keys):
            return None
        if data.get("dynamic") is not None:
            hint = "Put it on the edges that lead here."
            self._problem(
                "AX118", (*keys, "dynamic"), "dynamic has no effect on a node.", hint, warning=True
            )
        place = self._document.place(*keys)
        use = self._use(data, keys, "type", place)
        self._inner_graphs(use, keys)
        extras = {key: data[key] for key in ("input", "output", "resources") if data.get(key)}
        if data.get("log_output") is False:
            extras["log_output"] = False
        return NodeSpec(
            id=data["id"],
            use=use,
            join=self._join(data, keys),
            lane=data.get("lane"),
            effects=data.get("effects"),
            wrappers=self._wrappers(data, keys, received[data["id"]]),
            pull=self._either(data, "pull", "pull_keys", keys),
            push=self._either(data, "push", "push_keys", keys),
            attributes=data.get("attributes"),
            description=data.get("description") or "",
            extras=extras,
            place=place,
        )

    def _wrappers(
        self, data: dict[str, Any], keys: KeyPath, received: _Received
    ) -> tuple[ComponentRef, ...]:
        own = [
            self._use(item, (*keys, "wrappers", i), "type")
            for i, item in enumerate(_list(data, "wrappers"))
        ]
        there = {use.type for use in own}
        added: list[ComponentRef] = []
        window = data.get("context_window") or 0
        if window or received.marks:
            where = (*keys, "context_window") if window else keys
            keeper = self._meant("context_window", {"context_window": window}, where)
            if keeper is not None and keeper.type not in there:
                added.append(keeper)
        if received.dynamic is not None and received.kind not in there:
            config = dict(received.dynamic)
            if "over" not in config:
                config["edges"] = list(dict.fromkeys(received.edges))
            added.append(ComponentRef(type=received.kind, config=config, place=received.place))
        waiting = [
            replace(use, config={**use.config, "edges": list(dict.fromkeys(sources))})
            for use, sources in received.waiting.values()
        ]
        return (*waiting, *added, *with_usual_wrappers(own, received.usual))

    def _usual(
        self, value: Any, keys: KeyPath, nodes: Sequence[Any]
    ) -> dict[str, list[ComponentRef]]:
        """Return the wrappers that a graph puts around its nodes, by their type."""
        if not isinstance(value, dict) or not self._fine(keys):
            return {}
        lists = cast("dict[str, list[Any]]", value)
        there = {str(cast("Any", item).get("type")) for item in nodes if isinstance(item, dict)}
        for kind in lists:
            if kind not in there | {"*"}:
                message = f"node_wrappers names {kind}, which fits none of its nodes."
                hint = did_you_mean(kind, there) or f"Available: {format_names(sorted(there))}."
                self._problem("AX170", (*keys, kind), message, hint)
        return {
            kind: [self._use(item, (*keys, kind, i), "type") for i, item in enumerate(items)]
            for kind, items in lists.items()
        }

    def _either(
        self, data: dict[str, Any], name: str, old: str, keys: KeyPath
    ) -> Mapping[str, str] | None:
        if data.get(name) is not None and data.get(old) is not None:
            message = f"{name} and {old} say the same."
            self._problem("AX141", (*keys, old), message, f"Remove {old}.")
        value = data.get(name) if data.get(name) is not None else data.get(old)
        return None if value is None else _mapping(value)

    def _use(
        self, value: Any, keys: KeyPath, key: str = "", place: Place | None = None
    ) -> ComponentRef:
        """Return a component and its config. An import path is code, and needs leave."""
        named: dict[str, Any] = {"type": value} if isinstance(value, str) else value
        if not isinstance(cast("Any", named), dict) or not isinstance(named.get("type"), str):
            return ComponentRef(type="")  # its shape was reported already
        if ":" in named["type"]:
            where = keys if isinstance(value, str) or not key else (*keys, key)
            self._imports(named["type"], where)
        config = cast("dict[str, Any]", named.get("config") or {})
        place = place or self._document.place(*keys)
        return ComponentRef(type=named["type"], config=config, place=place)

    def _imports(self, path: str, keys: KeyPath) -> None:
        """Report an import path that was not granted."""
        module, where = path.partition(":")[0], str(self._document.place(*keys))
        if self._allow_code or self._grants.allows(f"import:{module}"):
            note_want(Want(word=f"import:{module}", where=where))
            return
        message = f"import paths are not allowed in files, found {format_value(path)}."
        hint = f"Name an installed component, or allow it: --allow import:{module}"
        problem = Problem("AX148", where, message, hint)
        want = Want(word=f"import:{module}", where=where, status="missing", problem=problem)
        if not note_want(want):
            self._shapes.report(problem)

    def _join(self, data: Mapping[str, Any], keys: KeyPath) -> str | ComponentRef | None:
        """Return the join of a node: one of the kernel's by its name, or a component."""
        given = data.get("join")
        if given is None or given in ("gate", "all", "each"):
            return given
        return self._use(given, (*keys, "join"), "type")

    def _meant(self, key: str, said: Mapping[str, Any], keys: KeyPath) -> ComponentRef | None:
        """Return the component that a key of a file stands for, as the shorthand of that name says;
        None: a problem is reported.
        """
        if key not in self._shorthands:
            self._shorthands[key] = None
            where = str(self._document.place(*keys))
            try:
                self._shorthands[key] = self._registry.resolve("shorthands", key, where)
            except PluginError as error:
                self._shapes.report(error.problem)
        if self._shorthands[key] is None:
            return None
        found: Any = self._shorthands[key](said)
        if not isinstance(found, ComponentRef):
            kind = type(found).__name__
            message = f'the shorthand "{key}" gave {kind} instead of a ComponentRef.'
            raise PluginContract(message, where=str(self._document.place(*keys)))
        return replace(found, place=self._document.place(*keys))

    def _inner_graphs(self, use: ComponentRef, keys: KeyPath) -> None:
        """Check the graphs in a node's config; where they are says its manifest."""
        graphs = {
            key: cast("dict[str, Any]", value)
            for key, value in use.config.items()
            if isinstance(value, dict) and "nodes" in value
        }
        if not graphs or ":" in use.type:
            return
        try:
            found = self._registry.find("nodes", use.type, str(self._document.place(*keys)))
        except PluginError:
            return  # reported when the component is resolved
        manifest = self._registry.manifest(found.distribution)
        described = manifest.find("nodes", found.name) if manifest is not None else None
        refs = (described or {}).get("refs", ())
        paths = {ref["path"] for ref in refs if ref["kind"] == "graph"}
        for key, data in graphs.items():
            if f"/{key}" in paths:
                from axil_files.models import Graph

                inside = (*keys, "config", key)
                if self._shapes.fits(data, Graph, inside):
                    self.graph(data, inside, {}, {})

    # -- edges

    def _edges(
        self,
        items: list[Any],
        keys: KeyPath,
        names: Mapping[str, int],
        received: Mapping[str, _Received],
    ) -> Iterator[EdgeSpec]:
        seen: dict[object, int] = {}
        for i, data in enumerate(items):
            here = (*keys, i)
            given: dict[str, Any] = data if isinstance(cast("object", data), dict) else {}
            ends = [
                self._known(given[key], outside, (*here, key), names)
                for key, outside in (("from", ENTRY), ("to", EXIT))
                if isinstance(given.get(key), str)
            ]
            if not self._fine(here):
                continue
            source, target, sound = data["from"], data["to"], all(ends)
            edge = self._edge(data, here)
            if edge.marks and target in received:
                received[target].marks = True
                received[target].keeps |= bool(edge.marks.get("keep"))
            if data.get("dynamic") is not None and target in received:
                self._dynamic(data, here, received[target])
            if edge.process is not None and self._waits(edge.process.type):
                if edge.carry_data and target in received:
                    waiting = received[target].waiting
                    waiting.setdefault(edge.process.type, (edge.process, []))[1].append(source)
                edge = replace(edge, process=None)
            parts = (edge.condition, edge.keys, edge.process, edge.marks, edge.extras)
            plain = (source, target, edge.trigger, edge.group, edge.carry_data, edge.keys is None)
            same = (*plain, repr(parts)) if any(parts) else plain  # a repr leaves places out
            if same in seen:
                message = f"the same edge exists already: edges[{seen[same]}]."
                self._problem("AX106", here, message, "Remove one.", warning=True)
            elif sound:
                seen[same] = i
                yield edge

    def _waits(self, name: str) -> bool:
        """Return whether what an edge names as its processor is a wrapper of its target."""
        known = self._registry
        return name not in known.names("processors") and name in known.names("wrappers")

    def _edge(self, data: dict[str, Any], keys: KeyPath) -> EdgeSpec:
        marks: dict[str, Any] = {"keep": True} if data.get("keep_message") else {}
        others, kept = bool(data.get("clear_context")), bool(data.get("clear_kept_context"))
        if others or kept:
            marks["clear"] = "all" if others and kept else "kept" if kept else "context"
        return EdgeSpec(
            source=data["from"],
            target=data["to"],
            trigger=data.get("trigger") is not False,
            group=data.get("group") or "",
            condition=self._condition(data.get("condition"), (*keys, "condition")),
            keys=None if data.get("keys") is None else _mapping(data["keys"]),
            process=self._processor(data.get("process"), (*keys, "process")),
            carry_data=data.get("carry_data") is not False,
            marks=marks,
            extras={"description": data["description"]} if data.get("description") else {},
            place=self._document.place(*keys),
        )

    def _known(self, name: str, outside: str, keys: KeyPath, names: Mapping[str, int]) -> bool:
        if name in names or name == outside:
            return True
        if name in (ENTRY, EXIT):
            message = "no edge leads to @entry." if name == ENTRY else "no edge starts at @exit."
            self._problem("AX104", keys, message, "Turn the edge round.")
        else:
            meant = outside if name in (outside[1:], "start", "end", "START", "END") else ""
            hint = f'Write "{meant}".' if meant else _nearest(name, names)
            self._problem("AX104", keys, f'no node "{name}".', hint)
        return False

    def _condition(self, value: Any, keys: KeyPath) -> ComponentRef | None:
        value = self._function(value, keys)
        if value is None or value is True or value == "true":
            return None
        if value is False:
            value = "false"
        if isinstance(value, str) and _STATEMENT.search(value):
            message = f"expected the name of a condition, found {format_value(value)}."
            self._problem("AX103", keys, message, self._stated(value, keys))
            return None
        return self._use(value, keys, "type")

    def _stated(self, statement: str, keys: KeyPath) -> str:
        """Return how a condition that is a statement is written, if a plugin has such ones."""
        if "condition" not in self._registry.names("shorthands"):
            return "Name a condition that is installed."
        use = self._meant("condition", {"condition": statement}, keys)
        if use is None:
            return ""
        settings = ", ".join(
            f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in use.config.items()
        )
        return f"Write {{type: {use.type}, config: {{{settings}}}}}."

    def _processor(self, value: Any, keys: KeyPath) -> ComponentRef | None:
        value = self._function(value, keys)
        return None if value is None else self._use(value, keys, "type")

    def _function(self, value: Any, keys: KeyPath) -> Any:
        """Return the name in DevAll's ``{type: function, config: {name: …}}``; else the value."""
        if not isinstance(value, dict):
            return value
        data: dict[str, Any] = cast("Any", value)
        config: Any = data.get("config")
        is_named = isinstance(config, dict) and list(cast("Any", config)) == ["name"]
        if data.get("type") != "function" or not is_named:
            return cast("Any", value)
        name: Any = cast("Any", config)["name"]
        if isinstance(name, str) and name:
            return name
        message = f"expected text, found {format_value(name)}."
        self._problem("AX103", (*keys, "config", "name"), message, "Write the name of a function.")
        return None

    def _dynamic(self, data: dict[str, Any], keys: KeyPath, received: _Received) -> None:
        """Add an edge that runs its target once for each part; those of a node have to agree."""
        dynamic, here = data["dynamic"], (*keys, "dynamic")
        kind: str = dynamic["type"]
        config: dict[str, Any] = dynamic.get("config") or {}
        asked: dict[str, Any] = {key: item for key, item in config.items() if item is not None}
        if split := dynamic.get("split"):
            named: dict[str, Any] = {"type": split} if isinstance(split, str) else split
            asked["split"] = {"type": named["type"], "config": named.get("config") or {}}
            if asked["split"] == {"type": "message", "config": {}}:  # as if it were left out
                del asked["split"]
        asked |= {key: dynamic[key] for key in ("over", "item") if dynamic.get(key)}
        edge = f"edges[{keys[-1]}]"
        if received.dynamic is None:
            received.dynamic, received.kind, received.first = asked, kind, edge
            received.place = self._document.place(*here)
        elif (kind, asked) != (received.kind, received.dynamic):
            theirs, kinds = received.dynamic, ""
            differing = [key for key in {**theirs, **asked} if theirs.get(key) != asked.get(key)]
            if kind != received.kind:
                differing, kinds = ["type"], f": {received.kind} there, {kind} here"
            what = " and ".join(differing)
            message = f'{received.first} wants another {what} for the node "{data["to"]}"{kinds}.'
            self._problem("AX116", here, message, "Make them agree.")
        received.edges.append(data["from"])

    # -- start and end

    def _mentioned(
        self, data: dict[str, Any], key: str, keys: KeyPath, names: Mapping[str, int]
    ) -> list[tuple[str, KeyPath]]:
        """Return the nodes under ``start`` or ``end``, each once."""
        value = data.get(key)
        if not value or not self._fine((*keys, key)):
            return []
        items = (
            [(value, (*keys, key))]
            if isinstance(value, str)
            else [(v, (*keys, key, i)) for i, v in enumerate(value)]
        )
        found: dict[str, KeyPath] = {}
        for name, where in items:
            if name in names:
                found.setdefault(name, where)
            else:
                self._problem("AX104", where, f'no node "{name}".', _nearest(name, names))
        return list(found.items())

    def _connected(
        self,
        edges: list[EdgeSpec],
        start: list[tuple[str, KeyPath]],
        end: list[tuple[str, KeyPath]],
        names: Mapping[str, int],
        keys: KeyPath,
        *,
        payload: str,
        left_open: bool,
    ) -> tuple[list[EdgeSpec], list[str]]:
        """Return the edges with those from ``@entry`` and to ``@exit``, and the ends."""
        given = {edge.target for edge in edges if edge.source == ENTRY}
        exits = {edge.source for edge in edges if edge.target == EXIT}
        fine = all(self._fine((*keys, key)) for key in ("edges", "start", "end"))
        if not start and not given and payload == "messages" and fine and names:
            targets = {edge.target for edge in edges if edge.trigger}
            sources = [name for name in names if name not in targets]
            message = "no start: it is not given which nodes receive the input."
            hint = f"Write start: [{format_names(sources or list(names), 3)}]."
            self._problem("AX114", keys, message, hint)
        entries = [
            EdgeSpec(source=ENTRY, target=name, place=self._document.place(*where))
            for name, where in start
            if name not in given
        ]
        ends = [name for name, _ in end]
        if not exits:
            leaving = {edge.source for edge in edges}
            sinks = [name for name in names if name not in leaving]
            if not ends and names and fine:
                ends = self._natural_end(sinks, names, keys, left_open=left_open)
            elif sinks and sinks[0] not in ends:
                ends.append(sinks[0])
        where = dict(end)
        leave = [
            EdgeSpec(
                source=name,
                target=EXIT,
                trigger=False,
                place=self._document.place(*where.get(name, (*keys, "nodes", names[name]))),
            )
            for name in ends
            if name not in exits
        ]
        return [*entries, *edges, *leave], ends

    def _natural_end(
        self, sinks: Sequence[str], names: Mapping[str, int], keys: KeyPath, *, left_open: bool
    ) -> list[str]:
        """Return the first node without out-edges, which is to be the only one.

        ``end: []`` leaves the end open, as DevAll's editor writes it: that node, or no result.
        """
        if len(sinks) != 1:
            found, hint = "every node has an out-edge", f"Write end: [{[*sinks, *names][0]}]"
            if sinks:
                found = f"{len(sinks)} nodes have no out-edge ({format_names([*sinks], 4)})"
                hint += ", or several in order of preference."
            else:  # it is a cycle, which would turn until its limit
                hint += ' and cycle_limits: {"*": {rounds: 3, at_limit: exit}}; or lead an edge '
                hint += "with a condition out of the cycle."
            message = f"graph lacks a unique natural end; specify end: {found}."
            self._problem("AX115", keys, message, hint, warning=left_open)
        return [*sinks[:1]]

    def _voting(
        self, nodes: list[NodeSpec], keys: KeyPath
    ) -> tuple[list[NodeSpec], list[EdgeSpec], list[Any]]:
        taken = {node.id for node in nodes}
        voter = self._meant("is_majority_voting", {}, (*keys, "is_majority_voting"))
        if voter is None:
            return nodes, [], []
        numbered = (f"{voter.type}_{i}" for i in range(2, len(taken) + 3))
        name = next(name for name in (voter.type, *numbered) if name not in taken)
        place = self._document.place(*keys, "is_majority_voting")
        edges = [EdgeSpec(source=ENTRY, target=node.id, place=place) for node in nodes]
        edges += [EdgeSpec(source=node.id, target=name, place=place) for node in nodes]
        counts = NodeSpec(id=name, use=voter, place=place)
        return (
            [*nodes, counts],
            [*edges, EdgeSpec(source=name, target=EXIT, trigger=False, place=place)],
            [name],
        )

    # -- the rest

    def _controller(self, data: dict[str, Any], keys: KeyPath, names: Mapping[str, int]) -> str:
        name = data.get("loop") if self._fine((*keys, "loop")) else None
        if name and name not in names:
            self._problem("AX104", (*keys, "loop"), f'no node "{name}".', _nearest(name, names))
        return name or ""

    def _cycle_limits(
        self, value: Any, keys: KeyPath, names: Mapping[str, int]
    ) -> dict[str, CycleLimit]:
        limits: dict[str, CycleLimit] = {}
        if not isinstance(value, dict) or not self._fine(keys):
            return limits
        for name, data in cast("dict[str, Any]", value).items():
            rounds = data.get("rounds") or 100
            if name != "*" and name not in names:
                hint = did_you_mean(name, names)
                self._problem("AX105", (*keys, name), f'no node "{name}".', hint)
            limit = CycleLimit(
                rounds=None if isinstance(rounds, str) else rounds,
                at_limit=data.get("at_limit") or "limited",
            )
            limits["" if name == "*" else name] = limit
        return limits

    def _limits(self, value: Any, keys: KeyPath) -> Limits:
        if not isinstance(value, dict) or not self._fine(keys):
            return Limits()
        known = {each.name for each in fields(Limits)}  # others are problems of the file already
        data: dict[str, Any] = {
            key: item
            for key, item in cast("dict[str, Any]", value).items()
            if item is not None and key in known
        }
        if "estimate" in data or "pricing" in data:
            try:  # of axil-models, which other files do without
                from axil_models import Estimator, Pricing
            except ImportError as error:
                raise UnknownComponent(
                    "prices and estimates need axil-models, which is not installed.",
                    hint=install_advice("axil-files[prices]"),
                    where=str(self._document.place(*keys)),
                ) from error
            if "estimate" in data:
                given = {key: item for key, item in data["estimate"].items() if item is not None}
                data["estimate"] = Estimator(**given)
            if "pricing" in data:
                data["pricing"] = Pricing.read(data["pricing"])
        return Limits(**data)

    def _stores(self, stores: Sequence[Any], keys: KeyPath) -> dict[str, None]:
        """Return the names of memories, each once; a name that comes twice is a problem."""
        seen: dict[str, None] = {}
        for i, store in enumerate(stores):
            name = cast("dict[str, Any]", store).get("name") if isinstance(store, dict) else None
            if isinstance(name, str) and name in seen:
                message = f'the memory "{name}" exists already.'
                hint = "Give one of them another name."
                self._problem("AX143", (*keys, i, "name"), message, hint)
            elif isinstance(name, str):
                seen[name] = None
        return seen

    def _state(
        self, data: dict[str, Any], keys: KeyPath
    ) -> tuple[Schema | None, dict[str, Any], dict[str, Any]]:
        """Return the schema (None: open), first values, and what ``extras`` keep of the fields."""
        attributes, state = (
            cast("dict[str, Any]", dict(data[key]) if isinstance(data.get(key), dict) else {})
            for key in ("attributes", "state")
        )
        typed = [
            n
            for n, v in state.items()
            if isinstance(v, dict) and {"type", "strategy"} & cast("dict[str, Any]", v).keys()
        ]
        here = (*keys, "state")
        if not typed and data.get("payload") == "state":
            if state or attributes:
                given = "state" if state else "attributes"
                name, value = next(iter((state or attributes).items()))
                kind = "none" if value is None else type(value).__name__
                message = "edges carry nothing where payload is state, and no field is declared."
                field = f"{name}: {{type: {kind}, default: {format_value(value)}}}"
                hint = f"Declare each under state: {field}."
                self._problem("AX103", (*keys, given), message, hint)
            return self._typed({}, here), {}, {}
        if not typed:
            return None, {**state, **attributes}, {}
        from axil_files.models import StateField

        fits = [
            self._shapes.fits(value, StateField, (*here, name)) for name, value in state.items()
        ]
        if not all(fits):
            return None, attributes, {}
        return self._typed(state, here), attributes, {"state": state}

    def _typed(self, state: dict[str, Any], keys: KeyPath) -> Schema | None:
        from axil import generate_state_schema  # it needs pydantic; only typed state does

        try:
            fields = [
                (name, data["type"], data.get("strategy") or "overwrite")
                for name, data in state.items()
            ]
            schema = generate_state_schema(
                fields, "state", resolve=lambda name: self._registry.resolve("reducers", name)
            )
        except SpecError as error:
            for problem in error.problems:
                named = re.search(r'field "(.*?)"$|field (\d+)$', problem.where)
                at = (named[1] or list(state)[int(named[2])],) if named else ()
                self._problem(problem.id, (*keys, *at), problem.message, problem.hint)
            return None
        declared = dict(schema.fields)
        for name, data in state.items():
            if "default" in data:
                here = (*keys, name, "default")
                declared[name] = self._defaulted(declared[name], data["default"], here)
        return replace(schema, fields=declared)

    def _defaulted(self, declared: Field, value: Any, keys: KeyPath) -> Field:
        """Return the field with a first value; checked now, and made again for each state."""
        check = declared.validate
        try:
            first = value if check is None else check(value)
        except Exception as error:  # noqa: BLE001  # a strategy of a plugin may raise anything
            lines = [line.strip() for line in str(error).splitlines()]
            why = (lines[1:2] or lines)[0].partition(" [type=")[0]
            self._problem("AX103", keys, f"{format_value(value)} does not fit the field: {why}.")
            return declared
        return replace(declared, default=lambda: isolate(first))


_STATEMENT: Final = re.compile(r"[\s'\"=<>()]")
"""The characters by which an expression differs from the name of a condition."""
_LISTS: Final = frozenset({"nodes", "edges", "memory"})
"""Keys of a graph whose items are looked at one by one."""


def _list(data: dict[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, str]:
    return dict.fromkeys(cast("list[str]", value), "") if isinstance(value, list) else dict(value)


def _requirements(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {name: str(version or "") for name, version in cast("dict[str, Any]", value).items()}
    items = cast("list[Any]", value) if isinstance(value, list) else []
    found = [
        re.match(r"\s*([A-Za-z0-9][\w.-]*)\s*(.*?)\s*$", item, re.DOTALL)
        for item in items
        if isinstance(item, str)
    ]
    return {match[1]: match[2] for match in found if match}


_DISTRIBUTION: Final = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?(?:\[[\w., -]*\])?", re.ASCII)
_SPECIFIER: Final = re.compile(r"[\w.*+!<>=~, -]*", re.ASCII)


def _stem(name: str) -> str:
    return re.sub(r"\.[^./\\]*$", "", re.split(r"[/\\]", name)[-1]) or "graph"


def _nearest(name: str, nodes: Mapping[str, int]) -> str:
    """Return what to do about a name that no node has."""
    return did_you_mean(name, nodes) or (f"Nodes: {format_names(list(nodes))}." if nodes else "")

"""The needs of a graph: every component that it names, in itself, in the graphs inside it, and in
settings.

Nothing is imported. Names in settings are known through manifests; settings of a component without
one are not looked into, and the answer says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from axil.dependencies.references import Reference, references_of, settings_at
from axil.errors import PluginError, Problem, SpecError
from axil.registry.registry import Component, Registry, default_registry
from axil.spec.graph import ComponentRef, GraphSpec, Place
from axil.spec.kinds import COMPONENT_KINDS, KERNEL, canonical_name

ReadInner = Callable[[Mapping[str, Any], Place, GraphSpec], GraphSpec | None]
"""From a setting's value, its place, and the graph around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One component that a workflow names, and where."""

    kind: str
    name: str
    """As it was written: perhaps ``distribution/name``."""
    where: str
    component: Component | None = None
    """The component; None: none may be used, and ``error`` says why."""
    provider: str = ""
    """The distribution that has it, installed or not; empty: unknown."""
    error: PluginError | None = None
    is_default: bool = False
    """True if the file does not write it."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Its settings; may hold values of the environment."""


@dataclass(slots=True)
class Dependencies:
    """The needs of one or several workflows."""

    found: list[Dependency] = field(default_factory=list[Dependency])
    """In the order of the files; each use once."""
    files: dict[str, None] = field(default_factory=dict[str, None])
    """Every file that was read, workflows included: real paths."""
    requires: dict[str, str] = field(default_factory=dict[str, str])
    """The requirements in the files: distribution → version specifier."""
    models: dict[str, None] = field(default_factory=dict[str, None])
    """Models by the names that their settings give them: ``openai:gpt-x``."""
    blind: dict[str, None] = field(default_factory=dict[str, None])
    """``kind:name`` of components without a manifest, whose settings were not looked into."""
    problems: list[Problem] = field(default_factory=list[Problem])
    """Graphs inside that cannot be read."""

    def distributions(self) -> dict[str, list[Dependency]]:
        """Return each distribution that is needed but the kernel, with what needs it; ``""``: what
        no known distribution provides.
        """
        sorted_out: dict[str, list[Dependency]] = {}
        for need in self.found:
            is_own = need.component is not None and need.component.status == "registered"
            if need.provider != KERNEL and not (is_own and not need.provider):
                sorted_out.setdefault(need.provider, []).append(need)
        return sorted_out

    def extras(self) -> dict[str, frozenset[str]]:
        """Return the extras of distributions that components need."""
        found: dict[str, frozenset[str]] = {}
        for need in self.found:
            if need.component is not None and (extras := need.component.extras):
                found[need.provider] = found.get(need.provider, frozenset()) | extras
        return found


def of_graph(spec: GraphSpec, *, registry: Registry | None = None) -> Dependencies:
    """Return what one graph needs, and the graphs in its settings."""
    walk = DependencyWalk(registry or default_registry())
    walk.graph(spec, {})
    return walk.needs


class DependencyWalk:
    """The walk from graph to graph, into settings."""

    def __init__(self, registry: Registry, read: ReadInner | None = None) -> None:
        self.registry, self.read = registry, read
        self.needs = Dependencies()
        self._seen: set[tuple[str, str, str]] = set()

    def code(self, distribution: str, where: str) -> None:
        """Note a distribution that code needs."""
        self.needs.found.append(
            Dependency(kind="import", name=distribution, where=where, provider=distribution)
        )

    def graph(self, spec: GraphSpec, requires: Mapping[str, str]) -> None:
        """Note everything that a graph names."""
        self.needs.files.update(dict.fromkeys(spec.extras.get("trail", ())))
        self.needs.requires.update(
            {canonical_name(name): version for name, version in spec.requires.items()}
        )
        _GraphWalk(self, spec, {**requires, **spec.requires}).note()

    def note(
        self, kind: str, name: str, where: str, requires: Mapping[str, str], **more: Any
    ) -> Component | None:
        """Note a component, once for each place, and return it; None: none may be used."""
        component, error = None, None
        try:
            component = self.registry.find(kind, name, where, requires=requires)
        except PluginError as caught:
            error = caught
        if (kind, name, where) in self._seen:
            return component
        self._seen.add((kind, name, where))
        provider = component.distribution if component is not None else self._elsewhere(kind, name)
        self.needs.found.append(
            Dependency(
                kind=kind,
                name=name,
                where=where,
                component=component,
                provider=provider,
                error=error,
                **more,
            )
        )
        return component

    def _elsewhere(self, kind: str, name: str) -> str:
        distribution, _, bare = name.rpartition("/")
        return (
            canonical_name(distribution) if distribution else self.registry.provider(kind, bare)[0]
        )


class _GraphWalk:
    """The part of a walk that is in one graph: ``spec``, under what it ``requires``."""

    def __init__(self, walk: DependencyWalk, spec: GraphSpec, requires: Mapping[str, str]) -> None:
        self.walk, self.spec, self.requires = walk, spec, requires
        self.needs = walk.needs

    def note(self) -> None:
        """Note everything that the graph names."""
        spec = self.spec
        for name, declared in spec.schema.fields.items() if spec.schema is not None else ():
            self._need("reducers", declared.reducer.name, f"{spec.place or spec.id} state.{name}")
        uses = [("nodes", node.use, node.place, node.id) for node in spec.nodes]
        uses += [
            ("wrappers", use, node.place, node.id) for node in spec.nodes for use in node.wrappers
        ]
        uses += [
            ("conditions", edge.condition, edge.place, f"{edge.source}->{edge.target}")
            for edge in spec.edges
        ]
        uses += [
            ("processors", edge.process, edge.place, f"{edge.source}->{edge.target}")
            for edge in spec.edges
        ]
        for kind, use, place, name in uses:
            if isinstance(use, ComponentRef) and ":" not in use.type:
                self._use(kind, use, place or Place(path=name))

    def _use(self, kind: str, use: ComponentRef, place: Place) -> None:
        component = self._need(kind, use.type, str(place), config=use.config)
        if kind == "models" and (name := use.config.get("name") or use.config.get("model")):
            self.needs.models[f"{use.type.rpartition('/')[2]}:{name}"] = None
        if component is None:
            return
        manifest = self.walk.registry.manifest(component.distribution)
        described = manifest.find(kind, component.name) if manifest is not None else None
        if described is None:
            if component.distribution != KERNEL and component.status != "registered":
                self.needs.blind[f"{kind}:{component.name}"] = None
            return
        for reference in references_of(described):
            self._reference(reference, use, place)

    def _reference(self, reference: Reference, use: ComponentRef, place: Place) -> None:
        settings = settings_at(use.config, reference.path)
        found = [(keys, value) for keys, value in settings if value is not None]
        if not found and (not reference.beside or use.config.get(reference.beside) is not None):
            for name in reference.default:
                self._need(
                    reference.kind, name, f"{place} {reference.path} (default)", is_default=True
                )
            if (
                reference.kind == "models"
                and reference.default
                and use.config.get(reference.beside)
            ):
                self.needs.models[f"{reference.default[0]}:{use.config[reference.beside]}"] = None
        for keys, value in found:
            inside = place.at("config", *keys)
            if reference.kind == "graph":
                self._inner(value, inside)
            elif reference.kind == "file":
                self._named_file(str(value))
            elif reference.kind in COMPONENT_KINDS:
                several = (
                    [*enumerate(cast("list[Any]", value))] if isinstance(value, list) else None
                )
                for i, each in several or ():
                    self._named(reference.kind, each, (*keys, i), use, inside.at(i))
                if several is None:
                    self._named(reference.kind, value, keys, use, inside)

    def _named(
        self, kind: str, value: Any, keys: tuple[str | int, ...], use: ComponentRef, place: Place
    ) -> None:
        """Note a component that a setting names: by name, or as ``{type: …}`` with settings."""
        if isinstance(value, str):
            config: Any = {}
            if keys[-1] == "type":  # its settings stand beside it
                around: Any = use.config
                for key in keys[:-1]:
                    around = around[key]
                config = around.get("config") or {}
            elif kind == "models" and keys == ("provider",):
                config = {"name": use.config.get("name")}
            self._use(kind, ComponentRef(type=value, config=config), place)
        elif isinstance(value, Mapping) and isinstance(
            cast("Mapping[str, Any]", value).get("type"), str
        ):
            given = dict(cast("Mapping[str, Any]", value))
            name = str(given.pop("type"))
            self._use(
                kind, ComponentRef(type=name, config=_settings(given.get("config", given))), place
            )

    def _inner(self, value: object, place: Place) -> None:
        if not isinstance(value, Mapping):
            return
        given = cast("Mapping[str, Any]", value)
        try:
            read: ReadInner | None = self.walk.read or self.spec.extras.get("read")
            if "nodes" in given or "path" in given:
                if read is not None and (inner := read(given, place, self.spec)) is not None:
                    self.walk.graph(inner, self.requires)
            elif isinstance(given.get("type"), str):
                self._use(
                    "nodes",
                    ComponentRef(type=given["type"], config=_settings(given.get("config"))),
                    place,
                )
        except SpecError as error:
            self.needs.problems.extend(error.problems)

    def _named_file(self, name: str) -> None:
        folder = str(self.spec.extras.get("folder") or ".")
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.isfile(path):
            self.needs.files[path] = None

    def _need(self, kind: str, name: str, where: str, **more: Any) -> Component | None:
        return self.walk.note(kind, name, where, self.requires, **more)


def _settings(given: object) -> Mapping[str, object]:
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}

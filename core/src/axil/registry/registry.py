"""The registry: names → components, through entry points; the only way from a name to code.

One scan per process reads metadata and imports nothing; ``resolve`` imports the one component that
was named. What the policy blocks is never imported: it is enforced here, for every way in.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from axil.errors import (
    ComponentBlocked,
    ComponentConflict,
    PluginContract,
    PluginLoadError,
    Problem,
    UnknownComponent,
    did_you_mean,
    format_names,
    nearest,
)
from axil.registry.installed import EntryPoint, identity_of, installed
from axil.settings.policy import Policy
from axil.spec.kinds import (
    COMPONENT_KINDS,
    KERNEL,
    MANIFEST,
    canonical_name,
    incompatibility,
    kind_of_group,
)

if TYPE_CHECKING:
    from axil.registry.manifest import Manifest

_TARGET: Final = re.compile(
    r"(?P<module>[\w.]+)\s*(?::\s*(?P<attributes>[\w.]+))?\s*(?:\[(?P<extras>.*)\])?\s*$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One thing that a distribution provides under a name. Nothing of it is imported."""

    kind: str
    name: str
    distribution: str
    version: str = ""
    value: str = ""
    """``module:attribute``, perhaps with ``[extra]``; empty: registered in this process."""
    status: Literal["available", "blocked", "unfit", "registered"] = "available"
    """``unfit``: written for another version of its kind's contract."""
    reason: str = ""
    """The reason why it is blocked or unfit."""

    @property
    def is_usable(self) -> bool:
        """True if the component may be requested."""
        return self.status in ("available", "registered")

    @property
    def extras(self) -> frozenset[str]:
        """The extras of its distribution that its entry point needs.

        >>> made = Component(kind="guards", name="x", distribution="d", value="m:X [one, two]")
        >>> sorted(made.extras)
        ['one', 'two']
        """
        found = _TARGET.match(self.value)
        names = (found["extras"] or "").split(",") if found else ()
        return frozenset(name.strip() for name in names if name.strip())

    def __str__(self) -> str:
        return " ".join(
            part for part in (self.distribution or "this process", self.version) if part
        )


_OWN_FUNCTIONS = (
    "A function of your own: axil … --functions DIR --allow code, or load(…, functions=DIR)."
)


class Registry:
    """The installed components under a policy: by default, the environment's
    (``axil.plugin.Policy.in_force()``).

    >>> registry = Registry(entry_points=[])
    >>> registry.register("conditions", "never", lambda seen: False)
    >>> registry.names("conditions")
    ('never',)
    """

    def __init__(
        self, policy: Policy | None = None, entry_points: Iterable[EntryPoint] | None = None
    ) -> None:
        self.policy = policy or Policy.in_force()
        self._given = None if entry_points is None else tuple(entry_points)
        self._found: dict[str, dict[str, list[Component]]] | None = None
        self._dists: dict[str, object] = {}
        self._packages: dict[str, str] = {}
        self._manifests: dict[str, Manifest | None] = {}
        self._plain: dict[tuple[str, str], Component] = {}
        self._objects: dict[tuple[str, str, str], object] = {}
        self._reported: set[Problem] = set()
        self.warn: Callable[[Problem], None] = _log
        """Gets a warning for each place that uses an old name (AX326) or a deprecated component
        (AX327), once; without another, it is logged.
        """
        self.unreadable: list[str] = []
        """Distributions whose metadata or manifest is broken, with the reason; known after the
        first question that meets it.
        """
        self.unread: dict[str, dict[str, None]] = {}
        """Groups of axil's form and of no kind, by distribution; known as ``unreadable`` is."""

    # -- what there is

    def candidates(self, kind: str | None = None) -> list[Component]:
        """Return every component, blocked ones included, by kind and name."""
        known = self._scan()
        kinds = COMPONENT_KINDS if kind is None else (_known_kind(kind),)
        return [
            each
            for kind in kinds
            for name in sorted(known.get(kind, {}))
            for each in known[kind][name]
        ]

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names of a kind that may be used, sorted."""
        return tuple(dict.fromkeys(each.name for each in self.candidates(kind) if each.is_usable))

    def plugins(self) -> dict[str, str]:
        """Return the distributions with components or a manifest, and their versions."""
        providers = {each.distribution for each in self.candidates()} | self._packages.keys()
        return {
            name: identity_of(self._dists[name])[1]
            for name in sorted(providers)
            if name in self._dists
        }

    def distribution(self, name: str) -> object:
        """Return the metadata of one of ``plugins``; None: there is no such plugin."""
        self._scan()
        return self._dists.get(canonical_name(name))

    def package(self, distribution: str) -> str:
        """Return the package of a distribution's manifest; empty: unknown."""
        self._scan()
        return self._packages.get(canonical_name(distribution), "")

    def manifest(self, distribution: str) -> Manifest | None:
        """Return a distribution's manifest, read without an import; None: none can be read."""
        if distribution in self._manifests:
            return self._manifests[distribution]
        self._scan()
        name = canonical_name(distribution)
        if name not in self._packages:
            return None
        if name not in self._manifests:
            from axil.registry.manifest import read_manifest

            self._manifests[name] = None
            try:
                self._manifests[name] = read_manifest(self._packages[name])
            except (ValueError, RecursionError) as error:
                self.unreadable.append(f"{name}: its manifest cannot be read: {error}")
        return self._manifests[name]

    def _described(self, component: Component) -> Mapping[str, Any]:
        stated = self.manifest(component.distribution)
        return (stated and stated.find(component.kind, component.name)) or {}

    def register(
        self, kind: str, name: str, obj: object, distribution: str = "", *, instead: bool = False
    ) -> None:
        """Provide ``obj`` under a name in this registry: for tests and notebooks.

        ``instead``: replace what has the name. Raises: ComponentConflict: it is taken.
        """
        known = self._scan().setdefault(_known_kind(kind), {})
        if (taken := known.get(name)) and not instead:
            raise ComponentConflict(
                f'the {COMPONENT_KINDS[kind]} "{name}" is provided by {_listed(taken)} already.',
                hint="Choose another name.",
            )
        component = Component(
            kind=kind, name=name, distribution=canonical_name(distribution), status="registered"
        )
        known[name], self._plain = [component], {}
        self._objects[kind, name, component.distribution] = obj

    def child(self) -> Registry:
        """Return a registry of the same components and policy; what is registered there is not
        registered here.
        """
        made = copy(self)
        made._found = {
            kind: {name: list(known) for name, known in names.items()}
            for kind, names in self._scan().items()
        }
        made._objects, made._plain = dict(self._objects), {}
        return made

    # -- from a name to an object

    def resolve(
        self, kind: str, name: str, where: str = "", *, requires: Mapping[str, str] | None = None
    ) -> Any:
        """Return the component called ``name``, imported at its first use.

        ``distribution/name`` asks one distribution. An old name, one of the ``aliases`` in a
        manifest, means the component's present name.

        Args:
            where: what messages begin with.
            requires: distributions that the workflow needs, with version specifiers, for messages.

        Raises: UnknownComponent, ComponentBlocked, ComponentConflict, PluginLoadError;
        PluginContract: AX305 its entry point is None, AX310 it is written for another version of
        its kind's contract.
        """
        component = self.find(kind, name, where, requires=requires)
        key = (kind, component.name, component.distribution)
        if key not in self._objects:
            self._objects[key] = self._load(component, where)
        return self._objects[key]

    def find(
        self, kind: str, name: str, where: str = "", *, requires: Mapping[str, str] | None = None
    ) -> Component:
        """Return the component that ``name`` means; nothing is imported.

        Raises: as ``resolve``, but PluginLoadError.
        """
        if (kind, name) in self._plain:  # found before, with nothing to say of its place
            return self._plain[kind, name]
        word = COMPONENT_KINDS[_known_kind(kind)]
        distribution, _, bare = name.rpartition("/")
        wanted = (
            canonical_name(distribution)
            if distribution
            else self.policy.pins.get(f"{kind}:{bare}", "")
        )
        found = self._scan().get(kind, {}).get(bare, [])
        candidates = [each for each in found if not wanted or each.distribution == wanted]
        is_old = not candidates and bool(candidates := self._formerly(kind, name, wanted))
        usable = [each for each in candidates if each.is_usable]
        if len(usable) == 1:
            if misfit := self._misfit(usable[0]):
                raise _unfitting(usable[0], misfit, where)
            if is_old:
                self._warn_of_old_name(usable[0], name, where)
            if instead := self.deprecation(usable[0]):
                message = f'the {word} "{name}" of {usable[0]} is deprecated.'
                self._warn_once(Problem("AX327", where, message, instead, "warning"))
            elif not is_old:
                self._plain[kind, name] = usable[0]
            return usable[0]
        if not candidates:
            raise UnknownComponent(
                f'unknown {word} "{name}".',
                hint=self._advice(kind, bare, wanted, found, requires or {}),
                where=where,
            )
        if not usable and (
            refused := next((each for each in candidates if each.status == "blocked"), None)
        ):
            message = f'the {word} "{name}" of {_listed(candidates)} may not be used: '
            hint = "Change the policy, or the workflow."
            raise ComponentBlocked(f"{message}{refused.reason}.", hint=hint, where=where)
        if not usable:
            raise _unfitting(candidates[0], candidates[0].reason, where)
        ways = " or ".join(f'"{each.distribution}/{each.name}"' for each in usable)
        if is_old:
            claims = " and of ".join(f'"{each.name}" ({each})' for each in usable)
            raise ComponentConflict(
                f'the {word} "{name}" is an old name of {claims}.',
                hint=f"Write {ways}.",
                where=where,
            )
        raise ComponentConflict(
            f'the {word} "{bare}" is provided by {" and ".join(map(str, usable))}.',
            hint=f"Write {ways}, pin {kind}:{bare} to one of them (AXIL_PINS), or block one "
            "(AXIL_BLOCK).",
            where=where,
        )

    def _formerly(self, kind: str, name: str, wanted: str) -> list[Component]:
        """Return the components that were called ``name`` before, by their manifests."""
        distribution, _, bare = name.rpartition("/")
        whole = f"{canonical_name(distribution)}/{bare}"
        found: list[Component] = []
        for each in self.candidates(kind):
            aliases = self._described(each).get("aliases", ())
            if (bare in aliases and wanted in ("", each.distribution)) or (
                distribution and whole in aliases
            ):
                # who blocked the old name is obeyed where it is still written
                rule = f"{kind}:{bare}"
                is_refused = each.is_usable and rule in self.policy.block
                found.append(
                    replace(each, status="blocked", reason=f"the policy blocks {rule}")
                    if is_refused
                    else each
                )
        return found

    def _warn_of_old_name(self, component: Component, name: str, where: str) -> None:
        word = COMPONENT_KINDS[component.kind]
        message = f'"{name}" is an old name of the {word} "{component.name}" of {component}.'
        now = f"{component.distribution}/{component.name}" if "/" in name else component.name
        hint = f'Write "{now}"; the old name will be removed.'
        self._warn_once(Problem("AX326", where, message, hint, "warning"))

    def _warn_once(self, problem: Problem) -> None:
        if problem not in self._reported:
            self._reported.add(problem)
            self.warn(problem)

    def deprecation(self, component: Component) -> str:
        """Return what to use instead of a deprecated component; empty: it is not deprecated."""
        described = self._described(component)
        if described.get("stability") != "deprecated":
            return ""
        instead = described.get("replacement", "")
        return f"Use {instead} instead." if instead else "It will be removed; nothing replaces it."

    def _misfit(self, component: Component) -> str:
        if component.status == "registered" or component.distribution == KERNEL:
            return ""
        stated = self.manifest(component.distribution)
        written = None if stated is None else stated.spec.get(component.kind)
        return "" if written is None else incompatibility(component.kind, written)

    def _advice(
        self,
        kind: str,
        name: str,
        wanted: str,
        found: Sequence[Component],
        requires: Mapping[str, str],
    ) -> str:
        from axil._installing import install_advice
        from axil.kernel.joins import JOINS

        if found:
            return f"{wanted} does not provide it; {_listed(found)} does."
        provider, fault = self.provider(kind, name)
        if provider and not (wanted and provider != wanted) and not self._is_installed(provider):
            return f"It is provided by {provider} (not installed): {install_advice(provider)}"
        stated = {canonical_name(each): version for each, version in requires.items()}
        missing = {each: v for each, v in stated.items() if not self._is_installed(each)}
        if missing:
            wishes = install_advice(*(f"{each}{version}" for each, version in missing.items()))
            return (
                f"The workflow requires {format_names(list(missing))} (not installed). "
                f"If you know the publisher: {wishes}"
            )
        names = (*JOINS, *self.names(kind)) if kind == "joins" else self.names(kind)
        there = f"Installed: {format_names(names)}." if names else "None is installed."
        own = _OWN_FUNCTIONS if kind in ("tools", "conditions", "processors") else ""
        return " ".join(part for part in (self._similar(kind, name) or there, own, fault) if part)

    def provider(self, kind: str, name: str) -> tuple[str, str]:
        """Return the distribution that is known to provide a component, installed or not; and what
        is wrong with the site's index.
        """
        component = f"{kind}:{name}"
        if provider := component_index().get(component, ""):
            return provider, ""
        if not self.policy.index:
            return "", ""
        try:
            with open(self.policy.index, encoding="utf-8") as file:
                found: object = json.load(file)
            return canonical_name(str(cast("Mapping[str, str]", found).get(component, ""))), ""
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            return "", f"(The site's index {self.policy.index} cannot be read: {error}.)"

    def _is_installed(self, distribution: str) -> bool:
        if distribution in self._dists:
            return True
        if self._given is not None:
            return False
        from importlib import metadata

        try:
            metadata.version(distribution)
        except (metadata.PackageNotFoundError, ValueError):
            return False
        return True

    def _similar(self, kind: str, name: str) -> str:
        """Return the question whether a like name is meant; empty: there is none."""
        if near := nearest(name, self.names(kind)):
            return f'Did you mean "{near}" ({_listed(self._scan()[kind][near])}, installed)?'
        # what those that are installed lack, no installation would bring
        there = {each.distribution for each in self.candidates()}
        elsewhere = {
            word.removeprefix(f"{kind}:"): provider
            for word, provider in component_index().items()
            if word.startswith(f"{kind}:") and provider not in there
        }
        near = nearest(name, elsewhere)
        return f'Did you mean "{near}" ({elsewhere[near]}, not installed)?' if near else ""

    def _load(self, component: Component, where: str) -> object:
        target = _TARGET.match(component.value)
        named = f'the {COMPONENT_KINDS[component.kind]} "{component.name}"'
        try:
            if target is None:
                raise ImportError(f'"{component.value}" is not module:attribute')
            found: object = importlib.import_module(target["module"])
            for name in (target["attributes"] or "").split("."):
                found = getattr(found, name) if name else found
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # whatever a plugin does while it is imported, SystemExit included, costs only itself
            cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            message = f"{named} is provided by {component}, which failed to import "
            message += f"{component.value} ({cause})."
            more = f"More: axil plugins doctor {component.distribution} --import"
            hint = self._extra(component, error) or f"Other plugins are not affected. {more}"
            raise PluginLoadError(message, hint=hint, where=where) from error
        if found is None:
            message = f"{named} of {component} is no component: {component.value} is None."
            raise PluginContract(message, hint="Report it to the plugin's owner.", where=where)
        return found

    def _extra(self, component: Component, error: BaseException) -> str:
        missing = (
            canonical_name((error.name or "").partition(".")[0])
            if isinstance(error, ModuleNotFoundError)
            else ""
        )
        for requirement in getattr(self._dists.get(component.distribution), "requires", None) or ():
            parts = re.match(r"\s*([\w.-]+).*;.*extra\s*==\s*['\"]([\w.-]+)['\"]", requirement)
            if missing and parts and canonical_name(parts[1]) == missing:
                from axil._installing import install_advice

                wanted = install_advice(f"{component.distribution}[{parts[2]}]")
                return f"It needs an extra: {wanted}"
        return ""

    # -- the scan

    def _scan(self) -> dict[str, dict[str, list[Component]]]:
        if self._found is None:
            found: dict[str, dict[str, list[Component]]] = {}
            # metadata is parsed anew whenever it is asked: once for each distribution is enough
            known: dict[int, tuple[str, str]] = {}
            groups: dict[str, tuple[str, int]] = {}
            for entry in installed(self.unreadable) if self._given is None else self._given:
                kind, major = groups.get(entry.group) or groups.setdefault(
                    entry.group, kind_of_group(entry.group)
                )
                dist = entry.dist
                identity = known.get(id(dist)) or known.setdefault(id(dist), identity_of(dist))
                if kind not in COMPONENT_KINDS and kind != MANIFEST:
                    self.unread.setdefault(identity[0], {})[entry.group] = None
                    continue
                self._dists.setdefault(identity[0], dist)
                if kind == MANIFEST:
                    self._packages.setdefault(identity[0], entry.value)
                else:
                    _add(
                        found.setdefault(kind, {}).setdefault(entry.name, []),
                        self._component(kind, major, entry, identity),
                    )
            self._found = found
        return self._found

    def _component(
        self, kind: str, major: int, entry: EntryPoint, identity: tuple[str, str]
    ) -> Component:
        distribution, version = identity
        refused = self.policy.refuses(kind, entry.name, distribution)
        misfit = "" if major == 1 else incompatibility(kind, f"{major}.0")
        return Component(
            kind=kind,
            name=entry.name,
            distribution=distribution,
            version=version,
            value=entry.value,
            status="blocked" if refused else "unfit" if misfit else "available",
            reason=refused or misfit,
        )


def _listed(components: Iterable[Component]) -> str:
    return format_names([str(each) for each in components])


def _add(same: list[Component], component: Component) -> None:
    """Keep the first of one distribution, unless only the later one fits this kernel."""
    for i, each in enumerate(same):
        if each.distribution == component.distribution:
            if each.status == "unfit":
                same[i] = component
            return
    same.append(component)


def _unfitting(component: Component, misfit: str, where: str) -> PluginContract:
    message = (
        f'the {COMPONENT_KINDS[component.kind]} "{component.name}" of {component} cannot be '
        f"used: {misfit}."
    )
    from axil._installing import install_advice

    newer = install_advice(KERNEL, component.distribution, how="upgrade")
    hint = f"Upgrade the older side: {newer}"
    return PluginContract(message, hint=hint, where=where, id="AX310")


def _known_kind(kind: str) -> str:
    if kind not in COMPONENT_KINDS:
        raise ValueError(
            (
                f'no kind of component is called "{kind}"; there are '
                f"{format_names(sorted(COMPONENT_KINDS), 20)}. "
                f"{did_you_mean(kind, COMPONENT_KINDS)}"
            ).strip()
        )
    return kind


def _log(problem: Problem) -> None:
    import logging

    logging.getLogger("axil.registry").warning("%s", problem)


@cache
def component_index() -> Mapping[str, str]:
    """Return ``kind:name`` → distribution of components that may be installed, as shipped with the
    kernel.
    """
    return json.loads(pkgutil.get_data("axil", "index.json") or b"{}")


_current: Registry | None = None


def default_registry() -> Registry:
    """Return the registry of this process."""
    global _current
    if _current is None:
        _current = Registry()
    return _current


@contextmanager
def use_registry(registry: Registry) -> Generator[Registry]:
    """Make ``registry`` the default within a ``with``, in all threads: for tests."""
    global _current
    before, _current = _current, registry
    try:
        yield registry
    finally:
        _current = before

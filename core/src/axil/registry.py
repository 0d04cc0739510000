"""The registry: names → components, through entry points; the only way from a name to code.

One scan per process reads the metadata of what is installed and imports nothing. ``resolve`` imports the one component
that was named. Policy says which distributions and components may be used; what is blocked is never imported, so it is
enforced here, for every way in.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, cast

from axil.errors import (
    ComponentBlocked,
    ComponentConflict,
    ConfigError,
    PluginLoadError,
    Problem,
    UnknownComponent,
    did_you_mean,
    listed,
)

KINDS: Final[Mapping[str, str]] = {
    "nodes": "node type",
    "conditions": "condition",
    "processors": "processor",
    "reducers": "update strategy",
    "models": "model adapter",
    "formatters": "formatter",
    "context": "context provider",
    "tools": "tool",
    "embedders": "embedder",
    "wrappers": "wrapper",
    "channels": "channel",
    "journals": "journal",
    "executors": "executor",
    "loaders": "file format",
    "dialects": "dialect",
    "hooks": "hook plugin",
    "commands": "command",
    "options": "option",
}
"""Kinds of components, each with the words for one of them. The entry-point group of a kind is ``axil.<kind>``."""

KERNEL: Final = "axil"
_GROUP: Final = "axil."
_TARGET: Final = re.compile(r"(?P<module>[\w.]+)\s*(?::\s*(?P<attributes>[\w.]+))?\s*(?:\[.*\])?\s*$")


class EntryPoint(Protocol):
    """What the registry needs of an entry point; ``importlib_metadata``'s are such."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def dist(self) -> Any: ...


def canonical(distribution: str) -> str:
    """A distribution's name in the one spelling that is compared: ``Axil_YAML`` is ``axil-yaml``."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which components may be used. Distributions are named in any spelling, components as ``kind:name``."""

    mode: Literal["auto", "listed"] = "auto"
    """``auto``: what is installed is allowed; ``listed``: only the kernel and what ``allow`` names."""
    allow: frozenset[str] = frozenset()
    """Distributions and components; read in mode ``listed``."""
    block: frozenset[str] = frozenset()
    """Distributions and components; stronger than everything else."""
    pins: Mapping[str, str] = field(default_factory=dict[str, str])
    """``kind:name`` → the distribution to take it from, where several have it."""
    only: frozenset[str] | None = None
    """Besides the kernel only these distributions; empty: only the kernel; None: no such restriction."""

    def __post_init__(self) -> None:
        for name in ("allow", "block", "only"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, frozenset(map(_rule, given)))
        pins = {_rule(component): canonical(distribution) for component, distribution in self.pins.items()}
        object.__setattr__(self, "pins", pins)
        wrong = [rule for rule in self.pins if ":" not in rule]
        if self.mode not in ("auto", "listed"):
            raise ConfigError(Problem("AX135", "plugins.mode", f'expected auto or listed, found "{self.mode}".'))
        if wrong:
            raise ConfigError(Problem("AX135", "plugins.pins", f'expected kind:name, found "{wrong[0]}".', "Write nodes:switch."))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Policy:
        """The policy that environment variables describe; lists are separated by commas.

        ``AXIL_PLUGINS_MODE`` is the mode, ``AXIL_PLUGINS`` what is allowed (and implies mode ``listed``), ``AXIL_BLOCK``
        what is blocked, ``AXIL_ONLY`` what alone may be used (set and empty: only the kernel), ``AXIL_PINS`` the pins
        (``nodes:switch=axil-control``). Settings of a project file will come below these.
        Raises: ConfigError (AX135): a value has no meaning.
        """
        given = os.environ if environment is None else environment
        allow = _words(given.get("AXIL_PLUGINS", ""))
        mode = given.get("AXIL_PLUGINS_MODE", "").strip().lower() or ("listed" if "AXIL_PLUGINS" in given else "auto")
        if mode not in ("auto", "listed"):
            raise ConfigError(Problem("AX135", "AXIL_PLUGINS_MODE", f'expected auto or listed, found "{mode}".'))
        pins: dict[str, str] = {}
        for pin in _words(given.get("AXIL_PINS", "")):
            component, equals, distribution = pin.partition("=")
            if not equals or ":" not in component or not distribution:
                example = "Write nodes:switch=axil-control."
                raise ConfigError(Problem("AX135", "AXIL_PINS", f'expected kind:name=distribution, found "{pin}".', example))
            pins[component.strip()] = distribution.strip()
        only = frozenset(_words(given["AXIL_ONLY"])) if "AXIL_ONLY" in given else None
        return cls(mode=mode, allow=frozenset(allow), block=frozenset(_words(given.get("AXIL_BLOCK", ""))), pins=pins, only=only)

    def refuses(self, kind: str, name: str, distribution: str) -> str:
        """Why the component may not be used; empty: it may."""
        component = f"{kind}:{name}"
        for rule in (component, distribution):
            if rule in self.block:
                return f"the policy blocks {rule}"
        if distribution == KERNEL:
            return ""
        if self.only is not None and distribution not in self.only:
            return f"the policy admits only {listed(sorted(self.only)) or 'the kernel'}"
        if self.mode == "listed" and not {component, distribution} & self.allow:
            return f"the policy admits only listed plugins, and neither {distribution or 'its plugin'} nor {component} is listed"
        return ""


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _rule(text: str) -> str:
    """A rule in canonical form; ``node:x`` is understood as ``nodes:x``."""
    kind, colon, name = text.partition(":")
    if not colon:
        return canonical(text)
    kind = kind if kind in KINDS else f"{kind}s"
    return f"{kind}:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One thing that a distribution provides under a name. Nothing of it is imported."""

    kind: str
    name: str
    distribution: str
    version: str = ""
    value: str = ""
    """``module:attribute``; empty: it was registered in this process."""
    status: Literal["available", "blocked", "registered"] = "available"
    reason: str = ""
    """Why it is blocked."""

    def __str__(self) -> str:
        return " ".join(part for part in (self.distribution or "this process", self.version) if part)


class Registry:
    """What is installed, under a policy.

    >>> registry = Registry(entry_points=[])
    >>> registry.register("conditions", "never", lambda seen: False)
    >>> registry.names("conditions")
    ('never',)
    """

    def __init__(self, policy: Policy | None = None, entry_points: Iterable[EntryPoint] | None = None) -> None:
        self.policy = policy or Policy.from_environment()
        self._given = None if entry_points is None else tuple(entry_points)
        self._found: dict[str, dict[str, list[Component]]] | None = None
        self._dists: dict[str, Any] = {}
        self._objects: dict[tuple[str, str, str], Any] = {}
        self.unreadable: list[str] = []
        """Distributions whose metadata is broken, with the reason; known after the first question."""

    # -- what there is

    def candidates(self, kind: str | None = None) -> list[Component]:
        """Every component, blocked ones included, by kind and name; of one kind or of all."""
        known = self._scan()
        kinds = KINDS if kind is None else (_known_kind(kind),)
        return [each for kind in kinds for name in sorted(known.get(kind, {})) for each in known[kind][name]]

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of a kind that may be used, sorted."""
        return tuple(dict.fromkeys(each.name for each in self.candidates(kind) if each.status != "blocked"))

    def register(self, kind: str, name: str, obj: object, distribution: str = "") -> None:
        """Provide ``obj`` under a name in this registry: for tests and notebooks. Raises: ComponentConflict: the name is taken."""
        known = self._scan().setdefault(_known_kind(kind), {})
        if taken := known.get(name):
            who = listed([str(each) for each in taken])
            raise ComponentConflict(f'the {KINDS[kind]} "{name}" is provided by {who} already.', hint="Choose another name.")
        component = Component(kind=kind, name=name, distribution=canonical(distribution), status="registered")
        known[name] = [component]
        self._objects[kind, name, component.distribution] = obj

    def child(self) -> Registry:
        """The same components under the same policy; what is registered with the child is not registered here."""
        made = Registry(self.policy, self._given)
        made._found = {kind: {name: list(known) for name, known in names.items()} for kind, names in self._scan().items()}
        made._dists, made._objects, made.unreadable = self._dists, dict(self._objects), self.unreadable
        return made

    # -- from a name to an object

    def resolve(self, kind: str, name: str, where: str = "", *, requires: Iterable[str] = ()) -> Any:
        """The component called ``name``, imported now if it was not before. Two names never share an import by accident:
        ``distribution/name`` asks one distribution.

        Args:
            where: what messages begin with.
            requires: distributions that the workflow says it needs, for the advice in messages.
        Raises: UnknownComponent, ComponentBlocked, ComponentConflict, PluginLoadError.
        """
        component = self.find(kind, name, where, requires=requires)
        key = (kind, component.name, component.distribution)
        if key not in self._objects:
            self._objects[key] = self._load(component, where)
        return self._objects[key]

    def find(self, kind: str, name: str, where: str = "", *, requires: Iterable[str] = ()) -> Component:
        """Which component ``name`` means; nothing is imported. Raises: as ``resolve``, but PluginLoadError."""
        word = KINDS[_known_kind(kind)]
        distribution, _, bare = name.rpartition("/")
        wanted = canonical(distribution) if distribution else self.policy.pins.get(f"{kind}:{bare}", "")
        found = self._scan().get(kind, {}).get(bare, [])
        candidates = [each for each in found if not wanted or each.distribution == wanted]
        usable = [each for each in candidates if each.status != "blocked"]
        if len(usable) == 1:
            return usable[0]
        if not candidates:
            raise UnknownComponent(f'unknown {word} "{name}".', hint=self._advice(kind, bare, wanted, found, requires), where=where)
        if not usable:
            told = f'the {word} "{name}" of {listed([str(each) for each in candidates])} may not be used: {candidates[0].reason}.'
            raise ComponentBlocked(told, hint="Change the policy, or the workflow.", where=where)
        ways = " or ".join(f'"{each.distribution}/{bare}"' for each in usable)
        raise ComponentConflict(
            f'the {word} "{bare}" is provided by {" and ".join(map(str, usable))}.',
            hint=f"Write {ways}, pin {kind}:{bare} to one of them (AXIL_PINS), or block one (AXIL_BLOCK).",
            where=where,
        )

    def _advice(self, kind: str, name: str, wanted: str, found: Sequence[Component], requires: Iterable[str]) -> str:
        if found:
            return f"{wanted} does not provide it; {listed([str(each) for each in found])} does."
        installed = {each.distribution for each in self.candidates()}
        missing = [canonical(each) for each in requires if canonical(each) not in installed]
        provider = index().get(f"{kind}:{name}", "")
        if provider and not (wanted and provider != wanted) and provider not in installed:
            return f"It is provided by {provider} (not installed): pip install {provider}"
        if hint := self._similar(kind, name):
            return hint
        if missing:
            return f"The workflow requires {listed(missing)} (not installed): pip install {' '.join(missing)}"
        names = self.names(kind)
        return f"Installed: {listed(names)}." if names else "None is installed."

    def _similar(self, kind: str, name: str) -> str:
        hint = did_you_mean(name, self.names(kind))
        if not hint:
            installed = {each.distribution for each in self.candidates()}  # what they lack, no installation would bring
            known = [word for word, provider in index().items() if provider not in installed]
            elsewhere = [word.split(":")[1] for word in known if word.startswith(f"{kind}:")]
            hint = did_you_mean(name, elsewhere)
            near = re.search(r'"(.+)"', hint)
            return f"{hint[:-1]} ({index()[f'{kind}:{near[1]}']}, not installed)?" if near else ""
        near = re.search(r'"(.+)"', hint)
        providers = self._scan()[kind][near[1]] if near else []
        return f"{hint[:-1]} ({listed([str(each) for each in providers])}, installed)?"

    def _load(self, component: Component, where: str) -> Any:
        target = _TARGET.match(component.value)
        try:
            if target is None:
                raise ImportError(f'"{component.value}" is not module:attribute')
            found: Any = importlib.import_module(target["module"])
            for name in (target["attributes"] or "").split("."):
                found = getattr(found, name) if name else found
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # whatever a plugin does while it is imported, SystemExit included, costs only itself
            cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise PluginLoadError(
                f'the {KINDS[component.kind]} "{component.name}" is provided by {component}, which failed to import '
                f"{component.value} ({cause}).",
                hint=self._extra(component, error) or "Other plugins are not affected.",
                where=where,
            ) from error
        return found

    def _extra(self, component: Component, error: BaseException) -> str:
        """The extra that would bring a module which is missing."""
        missing = canonical((error.name or "").partition(".")[0]) if isinstance(error, ModuleNotFoundError) else ""
        for requirement in getattr(self._dists.get(component.distribution), "requires", None) or ():
            parts = re.match(r"\s*([\w.-]+).*;.*extra\s*==\s*['\"]([\w.-]+)['\"]", requirement)
            if missing and parts and canonical(parts[1]) == missing:
                return f'It needs an extra: pip install "{component.distribution}[{parts[2]}]"'
        return ""

    # -- the scan

    def _scan(self) -> dict[str, dict[str, list[Component]]]:
        if self._found is None:
            found: dict[str, dict[str, list[Component]]] = {}
            for entry in self._entry_points():
                kind = entry.group.removeprefix(_GROUP)
                if not entry.group.startswith(_GROUP) or kind not in KINDS:
                    continue
                component = self._component(kind, entry)
                same = found.setdefault(kind, {}).setdefault(entry.name, [])
                if component.distribution not in {each.distribution for each in same}:
                    same.append(component)
            self._found = found
        return self._found

    def _entry_points(self) -> Iterable[EntryPoint]:
        """Of each installed distribution once: the first on ``sys.path`` wins, as it does when modules are imported."""
        if self._given is not None:
            return self._given
        import importlib_metadata

        installed: Any = cast("Any", importlib_metadata)  # its signatures are not typed
        try:
            return installed.entry_points()
        except Exception:  # noqa: BLE001  # metadata is anybody's text; one distribution with a broken one hides all others there
            return self._one_by_one(installed.distributions())

    def _one_by_one(self, distributions: Iterable[Any]) -> Iterator[EntryPoint]:
        """The same, without the distributions that cannot be read: they are listed in ``unreadable``. Slower: reads every name."""
        seen: set[str] = set()
        for distribution in distributions:
            try:
                name, entries = canonical(distribution.name), list(distribution.entry_points)
            except Exception as error:  # noqa: BLE001  # as above
                self.unreadable.append(f"{getattr(distribution, '_path', distribution)}: {type(error).__name__}: {error}")
                continue
            if name not in seen:
                seen.add(name)
                yield from entries

    def _component(self, kind: str, entry: EntryPoint) -> Component:
        distribution, version = _identity(entry.dist)
        self._dists.setdefault(distribution, entry.dist)
        reason = self.policy.refuses(kind, entry.name, distribution)
        return Component(
            kind=kind,
            name=entry.name,
            distribution=distribution,
            version=version,
            value=entry.value,
            status="blocked" if reason else "available",
            reason=reason,
        )


def _identity(distribution: Any) -> tuple[str, str]:
    """Name and version; empty where the metadata does not say."""
    try:
        return canonical(distribution.name), str(distribution.version)
    except Exception:  # noqa: BLE001  # incomplete metadata raises whatever it was parsed with; the component may be sound
        return "", ""


def _known_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(
            f'no kind of component is called "{kind}"; there are {listed(sorted(KINDS), 20)}. {did_you_mean(kind, KINDS)}'.strip()
        )
    return kind


_index: dict[str, str] | None = None


def index() -> Mapping[str, str]:
    """Where components come from that are not installed: ``kind:name`` → distribution, shipped with the kernel."""
    global _index
    if _index is None:
        _index = json.loads(pkgutil.get_data("axil", "index.json") or b"{}")
    return _index or {}


_current: Registry | None = None


def default() -> Registry:
    """The registry of this process, made when it is first asked for."""
    global _current
    if _current is None:
        _current = Registry()
    return _current


@contextmanager
def use(registry: Registry) -> Generator[Registry]:
    """Makes ``registry`` the default within a ``with``, in all threads: for tests."""
    global _current
    before, _current = _current, registry
    try:
        yield registry
    finally:
        _current = before

"""``axil plugins doctor``: what is wrong with the installed plugins, why it matters and how to mend
it.

Metadata and manifests are read; nothing is imported unless asked for, and then each module in a
process of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from axil.plugin import (
    COMPONENT_KINDS,
    KERNEL,
    Component,
    Registry,
    canonical_name,
    component_index,
    did_you_mean,
    install_advice,
    is_component_name,
    kind_of_group,
)
from axil_plugins.advisories import Advisory
from axil_plugins.closure import source_of
from axil_plugins.survey import is_ours, meant_group, rows

IMPORT_SECONDS: Final = 60.0
"""The seconds that the import of a module may take."""
SLOW_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, or could be."""

    check: str
    severity: str
    """``error``, ``warning`` or ``note``."""
    distribution: str
    message: str
    why: str
    fix: str


Check = Callable[[Registry], Iterator[Finding]]


def examine(
    registry: Registry,
    distribution: str = "",
    *,
    importing: bool = False,
    known: Iterable[Advisory] = (),
) -> list[Finding]:
    """Return everything that was found, of one distribution or of all; errors first.

    ``known``: advisories that installed distributions are compared with.
    """
    found = [finding for check in CHECKS for finding in check(registry)]
    found += weak(known)
    if importing:
        for each in _modules(registry, distribution):
            found += imported(*each)
    wanted = canonical_name(distribution)
    kept = [each for each in found if not wanted or each.distribution in ("", wanted)]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(kept, key=lambda each: (order[each.severity], each.distribution, each.check))


_WHY: Final[Mapping[str, str]] = {
    "unreadable": "What a distribution says of itself is all that is known of it before it is "
    "imported.",
    "no-manifest": "Its settings are not known without importing it: why, lock and build cannot "
    "look into them.",
    "stale-manifest": "Tools that do not import read the manifest.",
    "conflict": "A workflow, or a command line, that asks for the bare name is refused: no "
    "provider is preferred silently.",
    "alias": "A file that has the old name gets another component than it had, or none.",
    "blocked-alias": "Who blocked a component wants it blocked under every name.",
    "rule": "A misspelt rule has no effect.",
    "deprecated": "A later version of the distribution does not have it; axil check names the "
    "places that use it (AX327).",
    "spec": "A component of another contract would fail in ways that are hard to understand.",
    "group": "What is registered there is not there for axil.",
    "name": "Names are lower case letters, digits and _, with the vendor before a dot; those of "
    "options and protocols have - in place of _, and options their command before the dot.",
    "bare-name": "Two distributions that choose one bare name cannot be used together by it.",
    "requirement": "Nothing can be installed by it.",
    "missing": "It will fail when that is needed.",
    "version": "It was not written for this version.",
    "pin": "A pin breaks every other plugin that needs another version.",
    "cap": "The contract's version fences, not a cap.",
    "twice": "The first on the path is used; the others are easily taken for it.",
    "orphan": "It cannot be imported.",
    "stale": "Entry points are written when it is installed; what is added to pyproject.toml later "
    "is not seen.",
    "advisory": "Whatever runs here can meet it.",
    "index": "What to install is not known.",
    "import": "A workflow that uses it fails.",
    "output": "Output of the command is read by programs.",
    "slow": "Each of its users waits for it.",
}
"""The reasons why findings matter, by check."""


def _finding(
    check: str, name: str, message: str, fix: str, *, severity: str = "error", why: str = ""
) -> Finding:
    """Return a finding about a distribution; ``why``: the key of another reason."""
    reason = _WHY[why or check]
    return Finding(
        check=check, severity=severity, distribution=name, message=message, why=reason, fix=fix
    )


# --------------------------------------------------------------------------------------------------


def unreadable(registry: Registry) -> Iterator[Finding]:
    """Yield metadata that cannot be read."""
    for name in registry.plugins():
        registry.manifest(name)
    for report in registry.unreadable:
        name = canonical_name(report.partition(":")[0])
        fix = "Install it again; if that does not help, report it to its owner."
        yield _finding("unreadable", name if name in registry.plugins() else "", report, fix)


def undescribed(registry: Registry) -> Iterator[Finding]:
    """Yield plugins without a manifest."""
    for name in registry.plugins():
        is_unreadable = any(report.startswith(f"{name}:") for report in registry.unreadable)
        if registry.manifest(name) is None and not is_unreadable:
            fix = f"Its owner writes one with: axil plugins manifest {name} --write"
            yield _finding("no-manifest", name, "it has no axil-plugin.json.", fix, severity="note")


def stale(registry: Registry) -> Iterator[Finding]:
    """Yield manifests that differ from the entry points."""
    for name in registry.plugins():
        manifest = registry.manifest(name)
        if manifest is None:
            continue
        registered = {
            f"{each.kind}:{each.name}"
            for each in registry.candidates()
            if each.distribution == name
        }
        described = {
            f"{each['kind']}:{each['name']}"
            for each in manifest.components
            if each["kind"] in COMPONENT_KINDS
        }
        lines = [
            *(f"{each} is registered and not described" for each in sorted(registered - described)),
            *(f"{each} is described and not registered" for each in sorted(described - registered)),
        ]
        if lines:
            message = f"its manifest and its entry points differ: {'; '.join(lines)}."
            fix = f"axil plugins manifest {name} --write"
            yield _finding("stale-manifest", name, message, fix, severity="warning")


def conflicts(registry: Registry) -> Iterator[Finding]:
    """Yield names that several distributions provide."""
    clashing: dict[tuple[str, str], list[str]] = {}
    for row in rows(registry):
        if row["status"] == "conflict":
            clashing.setdefault((row["kind"], row["name"]), []).append(row["distribution"])
    for (kind, name), providers in clashing.items():
        message = f'the {COMPONENT_KINDS[kind]} "{name}" is provided by {" and ".join(providers)}.'
        for each in providers:
            pin = f'[plugins.pins] "{kind}:{name}" = "{each}"'
            fix = (
                f"If this one is meant, in axil.toml: {pin}; or write {each}/{name}; or block one."
            )
            yield _finding("conflict", each, message, fix)


def old_names(registry: Registry) -> Iterator[Finding]:
    """Yield old names that mean two components, none of theirs, or that a rule still has."""
    for row in rows(registry):
        old, name = f"{row['kind']}:{row['name']}", row["summary"].rpartition(" ")[2]
        if row["status"] in ("alias conflict", "hidden"):
            message = f"{old}, {row['summary']}: {row['reason']}."
            fix = f"Write {row['distribution']}/{name} in files that mean this one."
            severity = "warning" if row["status"] == "alias conflict" else "note"
            yield _finding("alias", row["distribution"], message, fix, severity=severity)
        elif row["status"] == "alias" and old in registry.policy.block:
            message = f"the policy blocks {old}, {row['summary']}; the new name is not blocked."
            yield _finding(
                "alias",
                row["distribution"],
                message,
                f"Block {row['kind']}:{name}, too.",
                severity="warning",
                why="blocked-alias",
            )


def rules(registry: Registry) -> Iterator[Finding]:
    """Yield rules of the policy that fit nothing that is installed."""
    policy, installed = registry.policy, [KERNEL, *registry.plugins()]
    components = {f"{row['kind']}:{row['name']}" for row in rows(registry)}
    known = {*map(canonical_name, installed), *components}
    for name, severity in (("block", "warning"), ("allow", "note")):
        given: frozenset[str] = getattr(policy, name)
        for rule in sorted(given - known):
            message = f'{name} of the policy has "{rule}", and nothing installed has that name.'
            fix = did_you_mean(rule, known) or "Correct it, or leave it for a later installation."
            yield _finding("rule", "", message, fix, severity=severity)


def deprecated(registry: Registry) -> Iterator[Finding]:
    """Yield components that their manifests call deprecated."""
    for row in rows(registry):
        if row["status"] == "deprecated":
            message = f"{row['kind']}:{row['name']} is deprecated."
            yield _finding(
                "deprecated", row["distribution"], message, row["reason"], severity="note"
            )


def unfitting(registry: Registry) -> Iterator[Finding]:
    """Yield components for another version of their kind's contract."""
    for row in rows(registry):
        if row["status"] == "spec":
            name = row["distribution"]
            message = f"{row['kind']}:{row['name']} cannot be used: {row['reason']}."
            yield _finding("spec", name, message, install_advice(KERNEL, name, how="upgrade"))


def groups(registry: Registry) -> Iterator[Finding]:
    """Yield groups of entry points that nothing reads."""
    for name, strays in registry.unread.items():
        for group in strays:
            message = f"its entry points are in the group {group}, which nothing reads."
            yield _finding("group", name, message, meant_group(group))


def names(registry: Registry) -> Iterator[Finding]:
    """Yield names that cannot be written in files, and bare names of third parties."""
    for each in registry.candidates():
        name, kind = each.distribution, each.kind
        if each.status == "registered":
            continue
        if not is_component_name(kind, each.name):
            owner = "command" if kind == "options" else "vendor"
            proposed = f"{owner}.{re.sub('[^a-z0-9]', '_', each.name.lower())}"
            if not is_component_name(kind, proposed):
                proposed = proposed.replace("_", "-")
            message = f'{kind}: "{each.name}" is no name.'
            yield _finding("name", name, message, f"Call it {proposed}.")
        elif (
            "." not in each.name
            and not is_ours(name)
            and component_index().get(f"{kind}:{each.name}") != name
            # typed by people, or given by a file's suffix
            and kind not in ("commands", "hooks", "loaders", "options")
        ):
            message = f'{kind}: "{each.name}" has no vendor.'
            fix = f"Its owner calls it {name.partition('-')[0]}.{each.name}."
            yield _finding("bare-name", name, message, fix, severity="warning")


# --------------------------------------------------------------------------------------------------


def requirements(registry: Registry) -> Iterator[Finding]:
    """Yield requirements of plugins that are not met, and those that restrict others."""
    from importlib import metadata

    from packaging.requirements import InvalidRequirement, Requirement

    kernel = {canonical_name(Requirement(each).name) for each in metadata.requires(KERNEL) or ()}
    version_of = cache(metadata.version)  # it reads the whole page of a distribution
    for name in registry.plugins():
        for text in getattr(registry.distribution(name), "requires", None) or ():
            try:
                wanted = Requirement(text)
            except InvalidRequirement:
                yield _finding("requirement", name, f'"{text}" is no requirement.', "Report it.")
                continue
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            target = canonical_name(wanted.name)
            try:
                there = version_of(wanted.name)
            except metadata.PackageNotFoundError:
                message = f"it requires {wanted}, which is not installed."
                yield _finding("missing", name, message, install_advice(text))
                continue
            if wanted.specifier and not wanted.specifier.contains(there, prereleases=True):
                message = f"it requires {wanted}, and {there} is installed."
                yield _finding("version", name, message, install_advice(text))
            operators = [
                each.operator for each in wanted.specifier if not each.version.endswith(".*")
            ]
            is_pinned = not {"==", "==="}.isdisjoint(operators)
            caps = {each.operator for each in wanted.specifier} & {"<", "<=", "~="}
            if is_pinned or (caps and target == KERNEL):
                yield _finding(
                    "pin",
                    name,
                    f"it requires {wanted}.",
                    f"Its owner writes {wanted.name}>=… instead.",
                    severity="error" if target in kernel | {KERNEL} else "warning",
                    why="pin" if is_pinned else "cap",
                )


def duplicates(registry: Registry) -> Iterator[Finding]:
    """Yield plugins that are on the path twice."""
    from importlib import metadata

    plugins = registry.plugins()
    seen: dict[str, dict[str, None]] = {}
    for each in cast("Any", metadata).distributions():
        folder = getattr(each, "_path", None)
        name = canonical_name(str(getattr(folder, "name", "")).partition("-")[0])
        if name in plugins:
            seen.setdefault(name, {})[str(folder)] = None
    for name, places in seen.items():
        if len(places) > 1:
            message = f"it is installed {len(places)} times: {', '.join(places)}."
            fix = f"pip uninstall {name}, until it is gone, and install it once."
            yield _finding("twice", name, message, fix, severity="warning")


def editable(registry: Registry) -> Iterator[Finding]:
    """Yield editable installations whose metadata is older than their source."""
    for name in registry.plugins():
        source = source_of(registry.distribution(name))
        if source is None:
            continue
        if not source.is_dir():
            message = f"it is installed from {source}, which is gone."
            yield _finding("orphan", name, message, f"pip uninstall {name}, or install it again.")
            continue
        try:
            project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
        except (OSError, ValueError, KeyError):
            continue
        groups = cast("dict[str, dict[str, str]]", project.get("entry-points", {}))
        written = {
            (kind, entry)
            for group, table in groups.items()
            for entry in table
            if (kind := kind_of_group(group)[0]) in COMPONENT_KINDS
        }
        installed = {
            (each.kind, each.name) for each in registry.candidates() if each.distribution == name
        }
        if written and written != installed:
            differing = sorted(f"{kind}:{entry}" for kind, entry in written ^ installed)
            message = f"its source and its installed metadata differ: {', '.join(differing)}."
            yield _finding("stale", name, message, install_advice("--editable", str(source)))


def weak(known: Iterable[Advisory]) -> Iterator[Finding]:
    """Yield the advisories that hold for installed distributions, plugins or not."""
    from importlib import metadata

    for each in known:
        try:
            version = metadata.version(each.distribution)
        except metadata.PackageNotFoundError:
            continue
        if each.affects(version):
            fix = "No version is free of it yet: block it, or remove it."
            if better := each.fixed_after(version):
                fix = install_advice(f"{each.distribution}>={better}", how="upgrade")
            message = f"{version} has a known weakness, {each.id}: {each.summary}"
            yield _finding("advisory", each.distribution, message, fix)


def site_index(registry: Registry) -> Iterator[Finding]:
    """Yield a site's index that cannot be read."""
    if registry.policy.index:
        fault = registry.provider("nodes", "no component has this name")[1]
        if fault:
            yield _finding("index", "", fault.strip("()"), "Correct AXIL_INDEX.")


CHECKS: Final[Sequence[Check]] = (
    unreadable,
    undescribed,
    stale,
    conflicts,
    old_names,
    rules,
    deprecated,
    unfitting,
    groups,
    names,
    requirements,
    duplicates,
    editable,
    site_index,
)


# --------------------------------------------------------------------------------------------------

_IMPORT: Final = """
import importlib, io, json, sys, time
from contextlib import redirect_stdout, redirect_stderr
before, out = len(sys.modules), io.StringIO()
begun = time.perf_counter()
with redirect_stdout(out), redirect_stderr(out):
    found = importlib.import_module(sys.argv[1])
    for name in filter(None, sys.argv[2].split(".")):
        found = getattr(found, name)
    if found is None:
        raise TypeError("it is None")
print(json.dumps({
    "seconds": time.perf_counter() - begun,
    "modules": len(sys.modules) - before,
    "printed": out.getvalue()[:200],
}))
"""


def _modules(registry: Registry, distribution: str) -> Iterator[tuple[Component, str, str]]:
    for each in registry.candidates():
        if each.status == "available" and (
            not distribution or each.distribution == canonical_name(distribution)
        ):
            module, _, attributes = each.value.partition(":")
            yield each, module.strip(), attributes.partition("[")[0].strip()


def imported(component: Component, module: str, attributes: str) -> Iterator[Finding]:
    """Yield the effects of importing one component, observed in a separate process."""
    name, word = component.distribution, f"{component.kind}:{component.name}"
    later = "Its owner imports what is heavy when it is used."
    try:
        done, facts = _observed(module, attributes)
    except subprocess.TimeoutExpired:
        message = f"{word}: importing {component.value} takes more than {IMPORT_SECONDS:g} seconds."
        yield _finding("import", name, message, later, why="slow")
        return
    if facts is None:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        message = f"{word}: {component.value} cannot be imported: {last}"
        fix = f"{install_advice(name, how='reinstall')}, or report it."
        yield _finding("import", name, message, fix)
        return
    if printed := facts["printed"].strip():
        message = f"{word}: importing it prints {printed[:60]!r}."
        yield _finding("output", name, message, "Its owner removes it.", severity="warning")
    seconds = facts["seconds"]
    if seconds > SLOW_SECONDS:  # the first time may be that of a cold disk, or of others at work
        with suppress(subprocess.TimeoutExpired):
            again = _observed(module, attributes)[1]
            seconds = min(seconds, again["seconds"] if again else seconds)
    if seconds > SLOW_SECONDS:
        many = facts["modules"]
        message = f"{word}: importing it takes {seconds:.1f} seconds and {many} modules."
        yield _finding("slow", name, message, later, severity="warning")


def _observed(
    module: str, attributes: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any] | None]:
    """Return an import in a separate process, and its facts; None: it failed.

    Raises: subprocess.TimeoutExpired.
    """
    command = [sys.executable, "-P", "-c", _IMPORT, module, attributes]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False
    )
    try:
        facts: Any = json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        facts = None
    is_whole = done.returncode == 0 and isinstance(facts, dict)
    return done, cast("dict[str, Any]", facts) if is_whole else None

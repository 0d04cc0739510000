"""``axil plugins doctor``: what is wrong with the installed plugins, each with why it matters and
how to mend it.

Metadata and manifests are read; nothing is imported unless asked for, and then each module in a
process of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlparse

from axil.plugin import (
    COMPONENT_KINDS,
    KERNEL,
    Component,
    Registry,
    canonical_name,
    component_index,
    did_you_mean,
    install_advice,
    kind_of_group,
)
from axil_plugins.advisories import Advisory
from axil_plugins.survey import is_ours, rows

IMPORT_SECONDS: Final = 60.0
"""The seconds that the import of a module may take."""
SLOW_SECONDS: Final = 2.0
_ON_COMMAND_LINES: Final = ("options", "protocols")
"""Kinds whose names are written on command lines, never in files."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?")


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
    """Everything that was found, of one distribution or of all; errors first.

    ``known``: advisories that installed distributions are compared with.
    """
    found = [finding for check in CHECKS for finding in check(registry)]
    found += weak(known)
    if importing:
        found += [
            finding for each in _modules(registry, distribution) for finding in imported(*each)
        ]
    wanted = canonical_name(distribution)
    kept = [each for each in found if not wanted or each.distribution in ("", wanted)]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(kept, key=lambda each: (order[each.severity], each.distribution, each.check))


# --------------------------------------------------------------------------------------------------


def unreadable(registry: Registry) -> Iterator[Finding]:
    """Yield metadata that cannot be read."""
    for name in registry.plugins():
        registry.manifest(name)
    for report in registry.unreadable:
        name = report.partition(":")[0]
        yield Finding(
            check="unreadable",
            severity="error",
            distribution=canonical_name(name) if canonical_name(name) in registry.plugins() else "",
            message=report,
            why="What a distribution says of itself is all "
            "that is known of it before it is imported.",
            fix="Install it again; if that does not help, report it to its owner.",
        )


def undescribed(registry: Registry) -> Iterator[Finding]:
    """Yield plugins without a manifest."""
    for name in registry.plugins():
        if registry.manifest(name) is None and not any(
            report.startswith(f"{name}:") for report in registry.unreadable
        ):
            yield Finding(
                check="no-manifest",
                severity="note",
                distribution=name,
                message="it has no axil-plugin.json.",
                why="Its settings are not known without importing it: "
                "why, lock and build cannot look into them.",
                fix=f"Its owner writes one with: axil plugins manifest {name} --write",
            )


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
            f"{each} is registered and not described" for each in sorted(registered - described)
        ]
        lines += [
            f"{each} is described and not registered" for each in sorted(described - registered)
        ]
        if lines:
            yield Finding(
                check="stale-manifest",
                severity="warning",
                distribution=name,
                message=f"its manifest and its entry points differ: {'; '.join(lines)}.",
                why="Tools that do not import read the manifest.",
                fix=f"axil plugins manifest {name} --write",
            )


def conflicts(registry: Registry) -> Iterator[Finding]:
    """Yield names that several distributions provide."""
    clashing: dict[tuple[str, str], list[str]] = {}
    for row in rows(registry):
        if row["status"] == "conflict":
            clashing.setdefault((row["kind"], row["name"]), []).append(row["distribution"])
    for (kind, name), providers in clashing.items():
        for provider in providers:
            yield Finding(
                check="conflict",
                severity="error",
                distribution=provider,
                message=f'the {COMPONENT_KINDS[kind]} "{name}" is provided by '
                f"{' and '.join(providers)}.",
                why="A workflow that asks for the bare name cannot be run: "
                "no provider is preferred silently.",
                fix=f'In axil.toml: [plugins.pins] "{kind}:{name}" = "{providers[0]}"; or write '
                f"{providers[0]}/{name}; or block one.",
            )


def old_names(registry: Registry) -> Iterator[Finding]:
    """Old names that mean two components, none of theirs, or that a rule still speaks of."""
    every = rows(registry)
    for row in every:
        if row["status"] in ("alias conflict", "hidden"):
            yield Finding(
                check="alias",
                severity="warning" if row["status"] == "alias conflict" else "note",
                distribution=row["distribution"],
                message=f"{row['kind']}:{row['name']}, {row['summary']}: {row['reason']}.",
                why="A file that has the old name gets another component than it had, or none.",
                fix=f"Write {row['distribution']}/{row['summary'].rpartition(' ')[2]} "
                "in files that mean this one.",
            )
        elif row["status"] == "alias" and f"{row['kind']}:{row['name']}" in registry.policy.block:
            yield Finding(
                check="alias",
                severity="warning",
                distribution=row["distribution"],
                message=f"the policy blocks {row['kind']}:{row['name']}, {row['summary']}; "
                "the new name is not blocked.",
                why="Who blocked a component wants it blocked under every name.",
                fix=f"Block {row['kind']}:{row['summary'].rpartition(' ')[2]}, too.",
            )


def rules(registry: Registry) -> Iterator[Finding]:
    """Yield rules of the policy that fit nothing that is installed."""
    policy, installed = registry.policy, [KERNEL, *registry.plugins()]
    components = {f"{row['kind']}:{row['name']}" for row in rows(registry)}
    known = {*map(canonical_name, installed), *components}
    for name in ("block", "allow"):
        given: frozenset[str] = getattr(policy, name)
        for rule in sorted(given - known):
            yield Finding(
                check="rule",
                severity="warning" if name == "block" else "note",
                distribution="",
                message=f'{name} of the policy has "{rule}", and nothing installed has that name.',
                why="A misspelt rule has no effect.",
                fix=did_you_mean(rule, known)
                or "Correct it, or leave it for a later installation.",
            )


def deprecated(registry: Registry) -> Iterator[Finding]:
    """Yield components that their manifests call deprecated."""
    for row in rows(registry):
        if row["status"] == "deprecated":
            yield Finding(
                check="deprecated",
                severity="note",
                distribution=row["distribution"],
                message=f"{row['kind']}:{row['name']} is deprecated.",
                why="A later version of the distribution does not have it; "
                "axil check names the places that use it (AX327).",
                fix=row["reason"],
            )


def unfitting(registry: Registry) -> Iterator[Finding]:
    """Yield components for another version of their kind's contract."""
    for row in rows(registry):
        if row["status"] == "spec":
            yield Finding(
                check="spec",
                severity="error",
                distribution=row["distribution"],
                message=f"{row['kind']}:{row['name']} cannot be used: {row['reason']}.",
                why="A component of another contract "
                "would fail in ways that are hard to understand.",
                fix=install_advice(KERNEL, row["distribution"], how="upgrade"),
            )


def names(registry: Registry) -> Iterator[Finding]:
    """Yield names that cannot be written in files, and bare names of third parties."""
    for each in registry.candidates():
        if each.status == "registered":
            continue
        if not _NAME.fullmatch(each.name) and each.kind not in _ON_COMMAND_LINES:
            yield Finding(
                check="name",
                severity="error",
                distribution=each.distribution,
                message=f'{each.kind}: "{each.name}" is no name.',
                why="Names are lower case letters, digits and _, with the vendor before a dot.",
                fix=f"Call it vendor.{re.sub(r'[^a-z0-9_]', '_', each.name.lower())}.",
            )
        elif (
            "." not in each.name
            and not is_ours(each.distribution)
            and component_index().get(f"{each.kind}:{each.name}") != each.distribution
        ):
            # typed by people, or given by a file's suffix
            if each.kind in ("commands", "hooks", "loaders", "options"):
                continue
            vendor = each.distribution.partition("-")[0]
            yield Finding(
                check="bare-name",
                severity="warning",
                distribution=each.distribution,
                message=f'{each.kind}: "{each.name}" has no vendor.',
                why="Two distributions that choose one bare name cannot be used together by it.",
                fix=f"Its owner calls it {vendor}.{each.name}.",
            )


# --------------------------------------------------------------------------------------------------


def requirements(registry: Registry) -> Iterator[Finding]:
    """Yield requirements of plugins that are not met, and those that restrict others."""
    from importlib import metadata as importlib_metadata

    from packaging.requirements import InvalidRequirement, Requirement

    kernel = {
        canonical_name(Requirement(each).name) for each in importlib_metadata.requires(KERNEL) or ()
    } | {KERNEL}
    for name in registry.plugins():
        for text in getattr(registry.distribution(name), "requires", None) or ():
            try:
                wanted = Requirement(text)
            except InvalidRequirement:
                yield _finding(
                    name,
                    "requirement",
                    "error",
                    f'"{text}" is no requirement.',
                    "Nothing can be installed by it.",
                    "Report it.",
                )
                continue
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            target = canonical_name(wanted.name)
            try:
                there = importlib_metadata.version(wanted.name)
            except importlib_metadata.PackageNotFoundError:
                missing = f"it requires {wanted}, which is not installed."
                yield _finding(
                    name,
                    "missing",
                    "error",
                    missing,
                    "It will fail when that is needed.",
                    install_advice(text),
                )
                continue
            if wanted.specifier and not wanted.specifier.contains(there, prereleases=True):
                message = f"it requires {wanted}, and {there} is installed."
                yield _finding(
                    name,
                    "version",
                    "error",
                    message,
                    "It was not written for this version.",
                    install_advice(text),
                )
            pinned = [
                each
                for each in wanted.specifier
                if each.operator in ("==", "===") and not each.version.endswith(".*")
            ]
            capped = [
                each
                for each in wanted.specifier
                if each.operator in ("<", "<=", "~=") and target == KERNEL
            ]
            if pinned or capped:
                message = f"it requires {wanted}."
                why = (
                    "A pin breaks every other plugin that needs another version."
                    if pinned
                    else "The contract's version fences, not a cap."
                )
                severity = "error" if target in kernel else "warning"
                yield _finding(
                    name,
                    "pin",
                    severity,
                    message,
                    why,
                    f"Its owner writes {wanted.name}>=… instead.",
                )


def _finding(name: str, check: str, severity: str, *text: str) -> Finding:
    """Return a finding about a distribution; ``texts``: what, why it matters, what to do."""
    message, why, fix = text
    return Finding(
        check=check, severity=severity, distribution=name, message=message, why=why, fix=fix
    )


def duplicates(registry: Registry) -> Iterator[Finding]:
    """Yield plugins that are on the path twice."""
    from importlib import metadata as importlib_metadata

    plugins = registry.plugins()
    seen: dict[str, list[str]] = {}
    for each in cast("Any", importlib_metadata).distributions():
        folder = getattr(each, "_path", None)
        stem = str(getattr(folder, "name", "")).partition("-")[0]
        if canonical_name(stem) in plugins:
            places = seen.setdefault(canonical_name(stem), [])
            if str(folder) not in places:
                places.append(str(folder))
    for name, places in seen.items():
        if len(places) > 1:
            yield Finding(
                check="twice",
                severity="warning",
                distribution=name,
                message=f"it is installed {len(places)} times: {', '.join(places)}.",
                why="The first on the path is used; the others are easily taken for it.",
                fix=f"pip uninstall {name}, until it is gone, and install it once.",
            )


def editable(registry: Registry) -> Iterator[Finding]:
    """Editable installations whose metadata is older than their source."""
    for name in registry.plugins():
        source = _source_of(registry.distribution(name))
        if source is None:
            continue
        file = source / "pyproject.toml"
        if not source.is_dir():
            message = f"it is installed from {source}, which is gone."
            yield _finding(
                name,
                "orphan",
                "error",
                message,
                "It cannot be imported.",
                f"pip uninstall {name}, or install it again.",
            )
            continue
        try:
            project = tomllib.loads(file.read_text("utf-8")).get("project", {})
        except (OSError, ValueError):
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
            why = (
                "Entry points are written when it is installed; "
                "what is added to pyproject.toml later is not seen."
            )
            yield _finding(
                name, "stale", "error", message, why, install_advice("--editable", str(source))
            )


def _source_of(distribution: Any) -> Path | None:
    try:
        text = distribution.read_text("direct_url.json")
        data: dict[str, Any] = json.loads(text) if text else {}
    except (OSError, ValueError, AttributeError):
        return None
    if not data.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlparse(str(data.get("url", ""))).path))


def weak(known: Iterable[Advisory]) -> Iterator[Finding]:
    """Yield the advisories that hold for installed distributions, plugins or not."""
    from importlib import metadata as importlib_metadata

    for each in known:
        try:
            version = importlib_metadata.version(each.distribution)
        except importlib_metadata.PackageNotFoundError:
            continue
        if each.affects(version):
            better = each.fixed_after(version)
            yield _finding(
                each.distribution,
                "advisory",
                "error",
                f"{version} has a known weakness, {each.id}: {each.summary}",
                "Whatever runs here can meet it.",
                install_advice(f"{each.distribution}>={better}", how="upgrade")
                if better
                else "No version is free of it yet: block it, or remove it.",
            )


def site_index(registry: Registry) -> Iterator[Finding]:
    """Yield a site's index that cannot be read."""
    if registry.policy.index:
        fault = registry.provider("nodes", "no component has this name")[1]
        if fault:
            yield _finding(
                "",
                "index",
                "error",
                fault.strip("()"),
                "What to install is not known.",
                "Correct AXIL_INDEX.",
            )


CHECKS: Final[Sequence[Check]] = (
    unreadable,
    undescribed,
    stale,
    conflicts,
    old_names,
    rules,
    deprecated,
    unfitting,
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
    try:
        command = [sys.executable, "-P", "-c", _IMPORT, module, attributes]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        message = f"{word}: importing {component.value} takes more than {IMPORT_SECONDS:g} seconds."
        yield _finding(
            name,
            "import",
            "error",
            message,
            "Each of its users waits for it.",
            "Its owner imports what is heavy when it is used.",
        )
        return
    try:
        stated = json.loads(
            done.stdout.strip().rpartition("\n")[2] if done.returncode == 0 else "null"
        )
    except ValueError:
        stated = None
    if not isinstance(stated, dict):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        message = f"{word}: {component.value} cannot be imported: {last}"
        yield _finding(
            name,
            "import",
            "error",
            message,
            "A workflow that uses it fails.",
            f"{install_advice(name, how='reinstall')}, or report it.",
        )
        return
    facts = cast("dict[str, Any]", stated)
    if printed := facts["printed"].strip():
        message = f"{word}: importing it prints {printed[:60]!r}."
        yield _finding(
            name,
            "output",
            "warning",
            message,
            "Output of the command is read by programs.",
            "Its owner removes it.",
        )
    seconds = facts["seconds"]
    if seconds > SLOW_SECONDS:  # the first time may be that of a cold disk, or of others at work
        with suppress(subprocess.TimeoutExpired, ValueError):
            again = subprocess.run(
                command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False
            )
            seconds = min(seconds, json.loads(again.stdout.strip().rpartition("\n")[2])["seconds"])
    if seconds > SLOW_SECONDS:
        message = (
            f"{word}: importing it takes {seconds:.1f} seconds and {facts['modules']} modules."
        )
        yield _finding(
            name,
            "slow",
            "warning",
            message,
            "Each of its users waits for it.",
            "Its owner imports what is heavy when it is used.",
        )

"""``axil plugins list`` and ``show``: what there is, from metadata and manifests.

Nothing is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from axil.plugin import (
    COMPONENT_KINDS,
    CONTRACT_VERSIONS,
    KERNEL,
    Component,
    Registry,
    UnknownComponent,
    canonical_name,
    did_you_mean,
    format_names,
    incompatibility,
)


def standing(component: Component, registry: Registry) -> str:
    """``ok``, ``blocked``, ``spec``, ``conflict`` or ``pinned away``: whether a component can be
    had by its bare name.
    """
    if component.status in ("blocked", "unfit"):
        return {"blocked": "blocked", "unfit": "spec"}[component.status]
    if _spec_fault(component, registry):
        return "spec"
    pin = registry.policy.pins.get(f"{component.kind}:{component.name}", "")
    if pin and pin != component.distribution:
        return "pinned away"
    return "ok"


def _spec_fault(component: Component, registry: Registry) -> str:
    stated = registry.manifest(component.distribution)
    return (
        incompatibility(component.kind, stated.spec[component.kind])
        if stated is not None and component.kind in stated.spec
        else ""
    )


def rows(registry: Registry, kind: str | None = None) -> list[dict[str, str]]:
    """List every component with its standing, by kind and name, and old names (``alias``).

    One that can be had, and that its manifest calls deprecated, is ``deprecated``.
    """
    found = [(each, standing(each, registry)) for each in registry.candidates(kind)]
    usable: dict[tuple[str, str], int] = {}
    for each, status in found:
        if status == "ok":
            usable[each.kind, each.name] = usable.get((each.kind, each.name), 0) + 1
    listing: list[dict[str, str]] = []
    for each, status in found:
        stated = registry.manifest(each.distribution)
        described = stated.find(each.kind, each.name) if stated is not None else None
        if status == "ok" and usable[each.kind, each.name] > 1:
            status = "conflict"
        instead = registry.deprecation(each) if status == "ok" else ""
        listing.append(
            {
                "kind": each.kind,
                "name": each.name,
                "distribution": each.distribution,
                "version": each.version,
                "spec": (stated.spec.get(each.kind, "1.0") if stated is not None else "1.0")
                + ("" if described is not None else "?"),
                "status": "deprecated" if instead else status,
                "reason": instead
                or each.reason
                or (_spec_fault(each, registry) if status == "spec" else ""),
                "summary": described.get("summary", "") if described is not None else "",
            }
        )
        for old in described.get("aliases", ()) if described is not None else ():
            listing.append(
                {
                    **listing[-1],
                    "name": old,
                    "status": "alias",
                    "reason": "",
                    "summary": f"old name of {each.name}",
                }
            )
    return _separated(listing)


def _separated(listing: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the same by kind and name, old names that two components claim marked ``alias
    conflict``, and those that are a name, ``hidden``.
    """
    aliases = [row for row in listing if row["status"] == "alias"]
    if not aliases:
        return listing
    claims = Counter((row["kind"], row["name"]) for row in aliases)
    names = {
        (row["kind"], name)
        for row in listing
        if row["status"] != "alias"
        for name in (row["name"], f"{row['distribution']}/{row['name']}")
    }
    for row in aliases:
        key = row["kind"], row["name"]
        if key in names:
            row["status"], row["reason"] = (
                "hidden",
                f"{row['name']} is the name of another component, which is meant",
            )
        elif claims[key] > 1:
            row["status"], row["reason"] = (
                "alias conflict",
                f"{row['name']} is an old name of several components",
            )
    order = {kind: i for i, kind in enumerate(COMPONENT_KINDS)}
    return sorted(listing, key=lambda row: (order[row["kind"]], row["name"]))


def requirements(registry: Registry) -> list[str]:
    """Return the installed plugins as pip would install them again."""
    return [f"{name}=={version}" for name, version in registry.plugins().items() if version]


def meant_group(group: str) -> str:
    """Return a hint about the group that one that nothing reads should be."""
    known = [f"axil.{kind}" for kind in COMPONENT_KINDS]
    return did_you_mean(group, known) or f"Groups: {', '.join(known)}."


def installed_name(name: str, registry: Registry) -> str:
    """Return the canonical name of an installed plugin. Raises: UnknownComponent: it is not
    installed, or registers nothing; the hint names what is meant.
    """
    wanted, installed = canonical_name(name), registry.plugins()
    if wanted in installed:
        return wanted
    if strays := registry.unread.get(wanted):
        group = next(iter(strays))
        message = f'"{name}" registers no component: nothing reads its group {group}.'
        raise UnknownComponent(message, hint=meant_group(group))
    components = [(row["kind"], row["name"]) for row in rows(registry)]
    known = {*installed, *(each for _, each in components)}
    meant = next(iter(get_close_matches(name, sorted(known), n=1)), "")
    same = dict.fromkeys(f"{kind}:{each}" for kind, each in components if each == meant)
    hint = (
        f"Show the component: axil plugins show {' or '.join(same)}."
        if same
        else did_you_mean(wanted, installed) or f"Installed: {format_names(list(installed))}."
    )
    raise UnknownComponent(f'no plugin is called "{name}".', hint=hint)


def distribution(name: str, registry: Registry) -> dict[str, Any]:
    """Return all that is known of an installed plugin. Raises: UnknownComponent: it is not
    installed.
    """
    wanted = installed_name(name, registry)
    installed = registry.plugins()
    manifest = registry.manifest(wanted)
    metadata = getattr(registry.distribution(wanted), "metadata", None)
    requires: list[Any] = getattr(registry.distribution(wanted), "requires", None) or []
    own = [row for row in rows(registry) if row["distribution"] == wanted]
    return {
        "distribution": wanted,
        "version": installed[wanted],
        "summary": manifest.summary
        if manifest is not None
        else str(metadata["Summary"] or "")
        if metadata is not None
        else "",
        "manifest": manifest is not None,
        "requires": [str(each) for each in requires],
        "components": own,
    }


def component(word: str, registry: Registry) -> dict[str, Any]:
    """Return all that is known of one component, ``kind:name``; an old name will do.

    Raises: PluginError: there is none, or several.
    """
    kind, _, name = word.partition(":")
    kind = kind if kind in COMPONENT_KINDS else f"{kind}s"
    if kind not in COMPONENT_KINDS:
        raise UnknownComponent(
            f'no kind of component is called "{kind.removesuffix("s")}".',
            hint=f"Available: {format_names(sorted(COMPONENT_KINDS), 20)}.",
        )
    found = registry.find(kind, name)
    manifest = registry.manifest(found.distribution)
    described = manifest.find(kind, found.name) if manifest is not None else None
    return {
        "kind": kind,
        "name": found.name,
        "distribution": found.distribution,
        "version": found.version,
        "object": found.value,
        "spec": manifest.spec.get(kind, "1.0") if manifest is not None else "1.0",
        "understood": CONTRACT_VERSIONS[kind],
        **(
            {**_UNSAID, **{key: value for key, value in described.items() if key in _UNSAID}}
            if described
            else {}
        ),
    }


_UNSAID: Final[Mapping[str, Any]] = {
    "summary": "",
    "config_schema": None,
    "examples": [],
    "refs": [],
    "secrets": [],
    "capabilities": [],
    "aliases": [],
    "stability": "stable",
    "replacement": "",
}
"""Defaults for what a manifest leaves out."""


def example(word: str, registry: Registry) -> dict[str, Any]:
    """Return a component as a workflow file uses it: the first example of its manifest."""
    stated = component(word, registry)
    config: Mapping[str, Any] = next(iter(stated.get("examples") or ()), dict[str, Any]())
    return {"type": stated["name"], **({"config": config} if config else {})}


def is_ours(distribution: str) -> bool:
    """Return whether the distribution is the kernel or one of the project's own."""
    return distribution == KERNEL or distribution.startswith("axil-")

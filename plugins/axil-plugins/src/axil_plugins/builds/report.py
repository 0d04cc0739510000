"""The content of a build: sizes, licences, and a bill of materials in CycloneDX."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from axil_cli import as_json
from axil_plugins.builds.plan import Plan
from axil_plugins.builds.wheels import Wheel
from axil_plugins.closure import closure, metadata_of, required

_SPACE: Final = uuid.UUID("6b1f3c0e-2d5a-5b0e-9d8f-4f6a3c1d2e7b")
"""Serial numbers are made of what is in a build, so that the same build has the same one."""


def sizes(plan: Plan, wheels: Sequence[Wheel]) -> dict[str, Any]:
    """Return bytes, unpacked: of each distribution, of all, and what each root alone brings."""
    by_name = {each.name: each.size for each in wheels}
    total = sum(by_name.values())
    alone: dict[str, int] = {}
    for root in plan.roots:
        rest = closure([each for each in plan.roots if each != root], plan.extras)
        alone[root] = sum(size for name, size in by_name.items() if name not in rest)
    return {
        "total": total,
        "distributions": dict(sorted(by_name.items(), key=lambda item: -item[1])),
        "only_because_of": alone,
    }


def licence_of(name: str) -> str:
    """Return the licence that a distribution names, in its own words; empty: it names none."""
    metadata = metadata_of(name)
    if metadata is None:
        return ""
    stated: Any = metadata.metadata
    if stated.get("License-Expression"):
        return str(stated["License-Expression"])
    classified = [
        str(each).rpartition(" :: ")[2]
        for each in stated.get_all("Classifier") or ()
        if str(each).startswith("License ::")
    ]
    text = str(stated.get("License") or "").strip()
    return ", ".join(classified) or (text.splitlines()[0][:80] if text else "")


def licences(wheels: Sequence[Wheel]) -> str:
    """Return a list of all licences, a line for each distribution."""
    lines = [
        f"{each.name} {each.version}: {licence_of(each.name) or 'not said'}"
        for each in sorted(wheels, key=lambda each: each.name)
    ]
    return "\n".join(lines) + "\n"


def bill(plan: Plan, wheels: Sequence[Wheel]) -> str:
    """Return a CycloneDX 1.6 bill of materials: what is in it, from which wheel, and who requires
    whom.
    """
    ordered = sorted(wheels, key=lambda each: each.name)
    names = {each.name for each in ordered}
    refs = {each.name: f"pkg:pypi/{each.name}@{each.version}" for each in ordered}
    root = f"pkg:pypi/{plan.name}@{plan.version}"
    marks = ",".join(f"{each.name}={each.sha256}" for each in ordered)
    data = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, f'{root} {marks}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": plan.name,
                "version": plan.version,
                "purl": root,
            }
        },
        "components": [_component(each, refs[each.name]) for each in ordered],
        "dependencies": [
            {"ref": root, "dependsOn": [refs[name] for name in plan.roots if name in refs]},
            *(
                {
                    "ref": refs[each.name],
                    "dependsOn": sorted(refs[name] for name in _required(each.name) & names),
                }
                for each in ordered
            ),
        ],
    }
    return as_json(data) + "\n"


def _component(wheel: Wheel, ref: str) -> dict[str, Any]:
    stated = licence_of(wheel.name)
    licence = {"expression": stated}
    if not _is_expression(wheel.name):
        licence = {"license": {"name": stated}}
    return {
        "type": "library",
        "bom-ref": ref,
        "name": wheel.name,
        "version": wheel.version,
        "purl": ref,
        "hashes": [{"alg": "SHA-256", "content": wheel.sha256}],
        **({"licenses": [licence]} if stated else {}),
    }


def _is_expression(name: str) -> bool:
    metadata = metadata_of(name)
    return metadata is not None and bool(metadata.metadata.get("License-Expression"))


def _required(name: str) -> set[str]:
    metadata = metadata_of(name)
    return {inner for inner, _ in required(metadata)} if metadata is not None else set()

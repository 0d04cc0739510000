"""Advisories: which versions of distributions have known weaknesses, in the format of OSV.

A file holds one entry or a list of them; a folder holds such files. Of an entry ``id``,
``summary``, ``withdrawn`` and ``affected`` are read: packages of the ecosystem of Python with
``versions`` and ``ranges``. https://ossf.github.io/osv-schema/ is the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from packaging.version import InvalidVersion, Version

from axil import ConfigError, Problem
from axil.plugin import canonical_name

_ECOSYSTEM: Final = "PyPI"
_FIRST: Final = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """One weakness of one distribution."""

    id: str
    summary: str
    distribution: str
    versions: frozenset[str]
    ranges: Sequence[Sequence[tuple[str, str]]]
    """Each a list of events: ``introduced``, ``fixed`` or ``last_affected``, and a version."""

    def affects(self, version: str) -> bool:
        """Return whether a version has the weakness; one that cannot be compared has it only if it
        is listed.
        """
        if version in self.versions:
            return True
        try:
            return any(_within(Version(version), events) for events in self.ranges)
        except InvalidVersion:
            return False

    def fixed_after(self, version: str) -> str:
        """Return the lowest version above ``version`` that does not have the weakness; empty: there
        is none yet.
        """
        known = [given for events in self.ranges for what, given in events if what == "fixed"]
        try:
            later = [each for each in map(Version, known) if each > Version(version)]
        except InvalidVersion:
            return ""
        return str(min(later)) if later else ""


def _within(version: Version, events: Sequence[tuple[str, str]]) -> bool:
    is_affected = False
    # what is introduced in the version in which another one is fixed is there
    order = {"fixed": 0, "introduced": 1, "last_affected": 2}
    for what, given in sorted(events, key=lambda event: (Version(event[1]), order[event[0]])):
        if what == "introduced" and version >= Version(given):
            is_affected = True
        elif (what == "fixed" and version >= Version(given)) or (
            what == "last_affected" and version > Version(given)
        ):
            is_affected = False
    return is_affected


def shipped() -> list[Advisory]:
    """Return the advisories that were known when this version was released."""
    text = (files("axil_plugins") / "advisories.json").read_text("utf-8")
    return list(_advisories(json.loads(text)))


def read(place: Path) -> list[Advisory]:
    """Return the advisories of a file, or of the ``.json`` files of a folder.

    Raises: ConfigError (AX738): it cannot be read, or holds something else.
    """
    found: list[Advisory] = []
    for file in sorted(place.rglob("*.json")) if place.is_dir() else [place]:
        try:
            found += _advisories(json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            message = f"{file} holds no advisories: {type(error).__name__}: {reason}."
            hint = "Give a file or folder of entries in the format of OSV."
            raise ConfigError(Problem("AX738", "--advisories", message, hint)) from error
    return found


def _advisories(data: Any) -> Iterator[Advisory]:
    entries = cast("list[Any]", data if isinstance(data, list) else [data])
    for entry in entries:
        if entry.get("withdrawn"):
            continue
        for affected in cast("list[Mapping[str, Any]]", entry.get("affected", [])):
            package = affected["package"]
            if package["ecosystem"] != _ECOSYSTEM:
                continue
            yield Advisory(
                id=str(entry["id"]),
                summary=" ".join(str(entry.get("summary") or entry.get("details", "")).split()),
                distribution=canonical_name(package["name"]),
                versions=frozenset(map(str, affected.get("versions", ()))),
                ranges=[
                    [_event(event) for event in each["events"] if "limit" not in event]
                    for each in affected.get("ranges", ())
                    if each["type"] == "ECOSYSTEM"
                ],
            )


def _event(event: Mapping[str, str]) -> tuple[str, str]:
    ((what, version),) = event.items()
    if what not in ("introduced", "fixed", "last_affected"):
        raise ValueError(f'"{what}" is no event')
    return what, str(Version("0.dev0" if version == _FIRST else version))

"""The findings of ``axil check`` as SARIF 2.1.0, for editors and forges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import quote

from axil import Problem
from axil.plugin import without_secrets
from axil_files import python_target
from axil_journals import CheckResult

where_pattern: Final = re.compile(r"^(?P<file>.*?):(?P<line>\d+)(?: (?P<path>.*))?$")
"""A place in a file: its name, the line, and the path of what stands there."""
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ABOUT: Final[Mapping[str, str]] = {
    "AX113": "A node that never fires",
    "AX158": "A field that a condition reads and nothing declares",
    "AX179": "An edge that can never be taken",
    "AX180": "A join that can never be met",
    "AX181": "A field that is read before it is written",
    "AX182": "A value that is never read",
    "AX183": "An edge that carries a field which its source never gives",
    "AX184": "Types that do not fit along an edge",
    "AX185": "A field that a node reads and no edge brings",
    "AX186": "A cycle that can never be left",
    "AX187": "A cycle without progress",
    "AX188": "A counter that counts further than its cycle turns",
    "AX189": "A limit of firings that each run reaches",
    "AX190": "A field that the typed state does not declare",
    "AX402": "A cycle that two nodes enter in every run",
    "AX983": "A key of an edge that the type of inputs or outputs lacks",
}


def sarif_log(findings: Iterable[tuple[str, CheckResult]]) -> dict[str, object]:
    """Return a log with one run; paths are relative to the working folder where they are in it."""
    found = [(file, problem) for file, result in findings for problem in result.problems]
    ids = sorted({problem.id for _, problem in found})
    rules: list[dict[str, object]] = [
        {"id": id, "shortDescription": {"text": _ABOUT[id]}} if id in _ABOUT else {"id": id}
        for id in ids
    ]
    is_fine = not any(problem.severity == "error" for _, problem in found)
    driver = {"name": "axil", "version": version("axil-cli"), "rules": rules}
    run: dict[str, object] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "exitCode": 0 if is_fine else 2}],
        "results": [
            {
                "ruleId": problem.id,
                "ruleIndex": ids.index(problem.id),
                "level": problem.severity,
                "message": {"text": without_secrets(f"{problem.message} {problem.hint}".strip())},
                "locations": [_location(file, problem)],
            }
            for file, problem in found
        ],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _location(target: str, problem: Problem) -> dict[str, object]:
    """Return the place of a finding: its file and line, and the node or edge."""
    where = where_pattern.match(problem.where)
    python = python_target(target)
    file = where["file"] if where is not None else target if python is None else python.file
    location: dict[str, object] = {}
    if file:
        physical: dict[str, object] = {"artifactLocation": {"uri": _uri(file)}}
        if where is not None:
            physical["region"] = {"startLine": max(1, int(where["line"]))}
        location["physicalLocation"] = physical
    name = (where["path"] if where is not None else problem.where) or target
    location["logicalLocations"] = [{"fullyQualifiedName": name}]
    return location


def _uri(file: str) -> str:
    path = Path(file)
    if path.is_absolute():
        try:
            path = path.relative_to(Path.cwd())
        except ValueError:
            return path.as_uri()
    return quote(path.as_posix())

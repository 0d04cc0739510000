"""``axil plugins why`` and ``freeze``: what a workflow needs, and the same written into it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from axil import ConfigError, PluginError, Problem
from axil.plugin import Dependency, Registry, canonical_name
from axil_files import dependencies_of, parse_workflow


def reasons(files: Sequence[str], needs: Mapping[str, Any]) -> dict[str, Any]:
    """Return why each distribution is needed, as data.

    Args:
        needs: options of ``axil_files.dependencies_of``.
    Raises: SpecError, PluginError: a file cannot be read.
    """
    found = dependencies_of(files, **needs)
    installed = needs["registry"].plugins()
    distributions = [
        {
            "distribution": name,
            "version": installed.get(name, ""),
            "installed": name in installed,
            "required": found.requires.get(name, ""),
            "uses": [_use(each) for each in uses],
        }
        for name, uses in sorted(found.distributions().items())
    ]
    return {
        "files": list(found.files),
        "distributions": distributions,
        "models": list(found.models),
        "not_looked_into": list(found.blind),
        "problems": [str(problem) for problem in found.problems],
        "fine": not found.problems and all(need.error is None for need in found.found),
    }


def _use(need: Dependency) -> dict[str, Any]:
    error = str(need.error) if need.error is not None else ""
    distribution, _, bare = need.name.rpartition("/")
    found = need.component
    is_old = found is not None and (
        bare != found.name
        or canonical_name(distribution or found.distribution) != found.distribution
    )
    renamed = f"{found.distribution}/{found.name}" if found is not None and is_old else ""
    return {
        "kind": need.kind,
        "name": need.name,
        "now": renamed,
        "where": need.where,
        "default": need.is_default,
        "error": error,
    }


def requirements(file: str, needs: Mapping[str, Any]) -> dict[str, str]:
    """Return the ``requires`` block of a file: each distribution that it needs, with the version
    that the file requires, else at least the installed one.

    Args:
        needs: options of ``axil_files.dependencies_of``.
    Raises: PluginError: no known distribution provides something.
    """
    found = dependencies_of([file], **needs)
    installed = needs["registry"].plugins()
    wanted: dict[str, str] = {}
    for name, uses in sorted(found.distributions().items()):
        if not name:
            raise cast("PluginError", uses[0].error)
        version = installed.get(name, "")
        wanted[name] = found.requires.get(name) or (f">={version}" if version else "")
    return wanted


def freeze(file: str, wanted: Mapping[str, str], registry: Registry) -> str:
    """Return the text of a workflow file with this ``requires`` block; comments, layout and line
    ends stay.

    Raises: ConfigError (AX731): the file's format is one that cannot be written in place, or the
    result would say something else.
    """
    path = Path(file)
    written = path.read_bytes()
    text = written.decode("utf-8-sig").replace("\r\n", "\n")
    kind = path.suffix.lower().lstrip(".")
    writers = {"yaml": _yaml, "yml": _yaml, "json": _json, "toml": _toml}
    if kind not in writers:
        message = f"a .{kind} file cannot be written in place."
        raise ConfigError(Problem("AX731", file, message, f"Add requires yourself: {wanted}"))
    document = parse_workflow(file, str(path), registry)
    frozen = writers[kind](text, wanted, document)
    _same(frozen, wanted, document, registry)
    return frozen.replace("\n", "\r\n") if b"\r\n" in written else frozen


def _same(frozen: str, wanted: Mapping[str, str], before: Any, registry: Registry) -> None:
    """Check that the new text says what the old one said, and the requirements."""
    kind = Path(before.name).suffix.lower().lstrip(".")
    loader: Any = registry.resolve("loaders", kind)
    after = (loader() if isinstance(loader, type) else loader)(frozen, before.name).data
    rest = {key: value for key, value in before.data.items() if key != "requires"}
    if (
        after.get("requires", {}) != dict(wanted)
        or {key: value for key, value in after.items() if key != "requires"} != rest
    ):
        message = "the requirements cannot be written without changing the rest."
        hint = f"Write it yourself: requires: {json.dumps(dict(wanted))}"
        raise ConfigError(Problem("AX731", before.name, message, hint))


def _json(text: str, wanted: Mapping[str, str], document: Any) -> str:
    fresh: dict[str, Any] = {}
    for key, value in document.data.items():
        if key == "graph":
            fresh.setdefault("requires", dict(wanted))
        fresh[key] = dict(wanted) if key == "requires" else value
    fresh.setdefault("requires", dict(wanted))
    indent = re.search(r"\n([ \t]+)\"", text)
    return json.dumps(fresh, ensure_ascii=False, indent=indent[1] if indent else 2) + "\n"


def _yaml(text: str, wanted: Mapping[str, str], document: Any) -> str:
    block = (
        ["requires:", *(f"  {name}: {json.dumps(version)}" for name, version in wanted.items())]
        if wanted
        else ["requires: {}"]
    )
    return _replaced(text, block, document, "graph")


def _toml(text: str, wanted: Mapping[str, str], document: Any) -> str:
    lines = text.split("\n")
    start = next(
        (i for i, line in enumerate(lines) if re.fullmatch(r"\s*\[requires\]\s*(#.*)?", line)), None
    )
    block = [
        "[requires]",
        *(f"{name} = {json.dumps(version)}" for name, version in wanted.items()),
        "",
    ]
    if start is None:
        start = end = next(
            (i for i, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines)
        )
    else:
        end = next(
            (i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("[")),
            len(lines),
        )
    return "\n".join([*lines[:start], *block, *lines[end:]])


def _replaced(text: str, block: list[str], document: Any, before: str) -> str:
    """Return the lines of the key ``requires`` replaced, or put before another key; blank lines and
    comments between keys stay.
    """
    lines = text.split("\n")
    tops = sorted((line, str(keys[0])) for keys, line in document.lines.items() if len(keys) == 1)
    at = next((line for line, key in tops if key == "requires"), None)
    if at is None:
        put = next((line for line, key in tops if key == before), 1) - 1
        return "\n".join([*lines[:put], *block, *lines[put:]])
    end = next((line for line, _ in tops if line > at), len(lines) + 1) - 1
    while end > at and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return "\n".join([*lines[: at - 1], *block, *lines[end:]])

"""The plan: which distributions a build holds, and because of what.

The components of workflow files are made, which says what they read; graphs in Python and functions
of one's own are imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axil import AxilError, ConfigError, PluginError, Problem, SpecError
from axil.plugin import (
    KERNEL,
    Compiler,
    Dependencies,
    Registry,
    canonical_name,
    install_advice,
    noting_wants,
)
from axil_files import AnyVariable, PythonTarget, dependencies_of, load
from axil_plugins.builds.settings import Settings
from axil_plugins.closure import closure, metadata_of, required

COMMAND = "axil-cli"
WORKER = "axil-postgres"
FILES = "axil-files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The content of a build."""

    name: str
    version: str
    workflows: tuple[Path, ...]
    files: tuple[Path, ...]
    """The workflows and all that they include, by their real paths."""
    roots: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Distributions that are asked for → what asks for them."""
    extras: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    """The extras of these that components need."""
    distributions: Mapping[str, str] = field(default_factory=dict[str, str])
    """All of them, those that others require included → versions, by name."""
    models: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    """Components whose settings could not be looked into."""
    root: Path = Path()
    """The folder that all files are in."""
    graphs: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """Workflows that are graphs in Python → how they are named inside: ``flow.py:graph``."""
    functions: Path | None = None
    """The folder with functions of one's own."""
    asks: str = ""
    """The part of the workflows that asks people; empty: none is known."""

    def inside(self, file: Path) -> str:
        """Return the path of a file inside the distribution."""
        return file.relative_to(self.root).as_posix()

    def named(self, workflow: Path) -> str:
        """Return the name of a workflow inside: its file, or the graph in it."""
        return self.graphs.get(workflow, "") or self.inside(workflow)

    def plain(self) -> dict[str, Any]:
        """Return the plan as data, without a path of this machine."""
        return {
            "name": self.name,
            "version": self.version,
            "workflows": [self.named(each) for each in self.workflows],
            "files": [self.inside(each) for each in self.files],
            "roots": {name: list(uses) for name, uses in self.roots.items()},
            "distributions": dict(self.distributions),
            "models": list(self.models),
            "not_looked_into": list(self.blind),
            "functions": self.inside(self.functions) if self.functions else None,
            "asks": self.asks,
        }


def _read_by(file: str, registry: Registry, vars: Mapping[str, Any] | None) -> list[str]:
    """Return the files that a workflow reads: those below its own folder that are not hidden."""
    with noting_wants() as wants, suppress(AxilError):  # what cannot be made here says so elsewhere
        workflow = load(file, registry=registry, vars=vars, environment=AnyVariable())
        Compiler(workflow.setting).compile(workflow.spec)
    home = Path(os.path.realpath(file)).parent
    named = [Path(each.word.removeprefix("read:")) for each in wants if "read:" in each.word]
    found: list[str] = []
    for path in named:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for each in inside if path.is_relative_to(home) else ():
            is_hidden = any(part.startswith(".") for part in each.relative_to(home).parts)
            if each.is_file() and not is_hidden:
                found.append(str(each))
    return found


def plan(settings: Settings, registry: Registry, vars: Mapping[str, Any] | None = None) -> Plan:
    """Return the plan of a build.

    Args:
        registry: has the functions that the settings name.
        vars: variables of the workflows.
    Raises: ConfigError: AX741 something that is needed is not installed, all at once; AX744
    something is denied. SpecError: a workflow cannot be read.
    """
    functions = settings.functions_folder()
    if functions and settings.dist.is_worker:
        message = "workers read no functions, so compose and helm cannot be made of them."
        hint = "Put the functions into a plugin, and name it in plugins.include."
        raise ConfigError(Problem("AX740", "workflows.functions", message, hint))
    files = [str(file) for file in settings.workflow_files()]
    targets = settings.graphs()
    named = [*files, *(each.kept if each.file else each.text for each in targets)]
    found = dependencies_of(named, registry=registry, vars=vars, functions=functions)
    graphs = dict(map(_graph, targets))
    workflows = (*(Path(os.path.realpath(file)) for file in files), *graphs)
    if found.problems:
        raise SpecError(found.problems)
    missing = [
        Problem("AX741", need.where, need.error.message, need.error.hint)
        for need in found.found
        if need.error is not None
    ]
    if missing:
        raise ConfigError(missing)
    asks = _asks(found)
    roots = _roots(found, settings)
    if settings.dist.command and (
        settings.dist.keep_runs or (asks and settings.dist.keep_runs is None)
    ):
        _keep(roots, registry, asks or "dist.keep_runs")
    distributions = closure(roots, found.extras())
    if absent := [name for name in roots if name not in distributions]:
        message = f"not installed: {', '.join(absent)}."
        raise ConfigError(Problem("AX741", "plugins.include", message, install_advice(*absent)))
    _admitted(distributions, settings)
    data = [each for file in files for each in _read_by(file, registry, vars)]
    files = tuple(dict.fromkeys(Path(file) for file in (*found.files, *data)))
    # names are written into the metadata of a wheel and into a Dockerfile, line by line
    odd = [file for file in files if not str(file).isprintable()]
    if odd:
        shown = str(odd[0]).encode("unicode_escape").decode()
        message = "the name of the file or of its folder has characters that are not printable."
        raise ConfigError(Problem("AX745", shown, message, "Rename it."))
    around = [os.path.realpath(each.folder) for each in targets]
    around += [os.path.realpath(functions)] if functions else []
    root = Path(os.path.commonpath([*(str(file.parent) for file in files), *around]))
    return Plan(
        name=settings.name,
        version=settings.dist.version,
        workflows=workflows,
        files=files,
        roots=roots,
        extras=found.extras(),
        distributions=distributions,
        models=tuple(found.models),
        blind=tuple(found.blind),
        root=root,
        graphs={
            file: f"{file.relative_to(root).as_posix()}:{name}" if name else module
            for file, (name, module) in graphs.items()
        },
        functions=Path(os.path.realpath(functions)) if functions else None,
        asks=asks,
    )


def _graph(target: PythonTarget) -> tuple[Path, tuple[str, str]]:
    """Return the file of a graph in Python; with its name there, or how its module is imported.

    Raises: ConfigError (AX745): the module is part of what is installed.
    """
    if target.file:
        return Path(target.file), (target.name, "")
    file = os.path.realpath(str(getattr(sys.modules[target.module], "__file__", "")))
    if not file.startswith(os.path.realpath(target.folder) + os.sep):
        message = f"{target.module} is not below {target.folder}, so its files cannot be packed."
        hint = "Name it in a file of your own: file.py:graph."
        raise ConfigError(Problem("AX745", target.text, message, hint))
    return Path(file), ("", target.text)


def _asks(found: Dependencies) -> str:
    """Return what asks people: a node for a person, or a tool that needs leave; empty: nothing that
    is known before a run.
    """
    for need in found.found:
        if need.kind == "nodes" and need.name.rpartition("/")[2] == "human":
            return need.where.rpartition("/")[2]
        if need.config.get("approve"):
            return need.where.rpartition("/")[2]
    return ""


def _keep(roots: dict[str, tuple[str, ...]], registry: Registry, why: str) -> None:
    """Add what asks on a terminal, and what keeps runs that wait.

    Raises: ConfigError (AX741): it is not installed.
    """
    problems: list[Problem] = []
    for kind, name in (("channels", "terminal"), ("journals", "sqlite")):
        try:
            distribution = registry.find(kind, name).distribution
        except PluginError as error:
            hint = f"{error.hint} Or set dist.keep_runs = false."
            problems.append(Problem("AX741", why, f"it asks people: {error.message}", hint))
            continue
        roots[distribution] = (*roots.get(distribution, ()), f"{kind}:{name} (people are asked)")
    if problems:
        raise ConfigError(problems)


def _roots(found: Dependencies, settings: Settings) -> dict[str, tuple[str, ...]]:
    roots: dict[str, tuple[str, ...]] = {
        KERNEL: ("runs workflows",),
        FILES: ("reads workflows",),
    }
    if settings.dist.command:
        roots[COMMAND] = ("dist.command",)
    if settings.dist.is_worker:
        roots[WORKER] = ("dist.outputs",)
    for name in settings.plugins.include:
        roots[canonical_name(name)] = ("plugins.include",)
    for name, uses in found.distributions().items():
        data = dict.fromkeys(
            f"{use.kind}:{use.name}{' (default)' if use.is_default else ''}" for use in uses
        )
        roots[name] = (*roots.get(name, ()), *data)
    return dict(sorted(roots.items()))


def _admitted(distributions: Mapping[str, str], settings: Settings) -> None:
    limits = settings.limits
    denied = sorted({canonical_name(name) for name in limits.deny} & set(distributions))
    problems = [
        Problem(
            "AX744",
            "limits.deny",
            f"{name} would be in the build: {' → '.join(chain(name, distributions))}.",
            "Remove what requires it, or take it out of the list.",
        )
        for name in denied
    ]
    if limits.max_distributions is not None and len(distributions) > limits.max_distributions:
        message = (
            f"{len(distributions)} distributions; the limit is {limits.max_distributions}: "
            f"{', '.join(distributions)}."
        )
        hint = "Raise the limit, or remove nodes or plugins that require them."
        problems.append(Problem("AX744", "limits.max_distributions", message, hint))
    if problems:
        raise ConfigError(problems)


def chain(name: str, distributions: Mapping[str, str]) -> list[str]:
    """Return the chain of requirements that leads to a distribution."""
    requirers = {
        each: [inner for inner, _ in required(metadata_of(each))] for each in distributions
    }
    path = [name]
    while above := next(
        (each for each, inner in requirers.items() if path[0] in inner and each not in path), ""
    ):
        path.insert(0, above)
    return path

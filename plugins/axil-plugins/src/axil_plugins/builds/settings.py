"""``axil-build.toml``: what is to be built. Everything but the workflows has a default."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from axil import ConfigError, Problem
from axil.plugin import decode_config
from axil_files import PythonTarget, python_target

FILE = "axil-build.toml"
Output = Literal["wheel", "pyz", "container", "compose", "helm"]


class _Part(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Dist(_Part):
    """The outputs to make."""

    name: str = Field(default="", description="Of the distribution; empty: the first workflow's.")
    version: str = Field(default="0.1.0", description="Of the distribution.")
    entry: str = Field(default="", description="The workflow that it runs; empty: the first one.")
    command: bool = Field(
        default=True, description="Put the axil command in, so that runs can be watched and asked."
    )
    keep_runs: bool | None = Field(
        default=None,
        description="Put in a journal, and what asks on a terminal; without it where a workflow "
        "asks people.",
    )
    outputs: tuple[Output, ...] = Field(
        default=("wheel", "pyz", "container"),
        description="Beside the lock, the wheels and the reports; also compose and helm, for "
        "workers on many machines.",
    )

    @property
    def is_worker(self) -> bool:
        """True for builds of workers on many machines."""
        return not {"compose", "helm"}.isdisjoint(self.outputs)

    @model_validator(mode="after")
    def _has_a_command(self) -> Self:
        if self.is_worker and not self.command:
            raise ValueError("the outputs compose and helm need command = true")
        return self

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if name and not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
            raise ValueError("expected a distribution's name, as in acme-flow")
        return name

    @field_validator("version")
    @classmethod
    def _is_a_version(cls, version: str) -> str:
        # it is written into names of files, metadata and a Dockerfile
        if not re.fullmatch(r"\d+(\.\d+)*((a|b|rc|\.post|\.dev)\d+)*(\+[a-z0-9.]+)?", version):
            raise ValueError("expected a version, as in 1.2.0")
        return version


class Plugins(_Part):
    """The plugins to include beside those that the workflows name."""

    include: tuple[str, ...] = Field(
        default=(),
        description="Distributions, for what no workflow names: channels, journals, hooks.",
    )


class Workflows(_Part):
    """The workflows to build."""

    files: tuple[str, ...] = Field(
        default=(),
        description="Patterns, from the file's folder: flows/**/*.yaml; or graphs in Python, as "
        "module:graph or file.py:graph.",
    )
    functions: str = Field(
        default="", description="A folder with tools, conditions and processors in Python files."
    )


class Limits(_Part):
    """The limits of a build."""

    max_mb: float | None = Field(
        default=None,
        gt=0,
        description="Megabytes, installed.",
        json_schema_extra={"unit": "megabytes"},
    )
    max_distributions: int | None = Field(
        default=None, ge=1, description="Distributions, this one left out."
    )
    deny: tuple[str, ...] = Field(default=(), description="Distributions that may not be in it.")


class Verify(_Part):
    """The settings for verifying a build."""

    dry_run: bool = Field(
        default=True, description="Run each workflow, with models that answer without being asked."
    )
    inputs: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="What is put in, by workflow; else a short text.",
    )
    allow_code: bool = Field(
        default=False, description="Let the dry run run code that the workflows hold."
    )


class Settings(_Part):
    """The whole file."""

    dist: Dist = Dist()
    plugins: Plugins = Plugins()
    workflows: Workflows = Workflows()
    limits: Limits = Limits()
    verify: Verify = Verify()
    sources: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Where a distribution comes from instead of this environment: "
        "a wheel, or its source.",
    )
    wheels: str = Field(
        "",
        description="A folder with original wheels; those that hold what is installed here are "
        "shipped as they are.",
    )
    folder: str = Field(
        ".", description="The folder at which paths begin; set by the reader of the file."
    )

    def graphs(self) -> list[PythonTarget]:
        """Return the graphs in Python among the workflows."""
        found = (self._graph(pattern) for pattern in self.workflows.files)
        return [each for each in found if each is not None]

    def _graph(self, pattern: str) -> PythonTarget | None:
        place = pattern.partition(":")[0]
        is_file = place.endswith(".py")
        return python_target(
            str(Path(self.folder) / pattern) if is_file else pattern, folder=self.folder
        )

    def functions_folder(self) -> str:
        """Return the folder with functions; empty: there is none."""
        named = self.workflows.functions
        return str(Path(self.folder) / named) if named else ""

    def code(self) -> list[str]:
        """Return the parts of the file that run code when it is built."""
        found = {
            "functions": self.workflows.functions,
            "a graph in Python": self.graphs(),
            "sources": [each for each in self.sources.values() if not each.endswith(".whl")],
            "verify.allow_code": self.verify.allow_code,
        }
        return [name for name, given in found.items() if given]

    def workflow_files(self) -> list[Path]:
        """Return the workflows that are files, each once, sorted within a pattern.

        Raises: ConfigError (AX745): there is none, and no graph in Python.
        """
        found: dict[Path, None] = {}
        for pattern in self.workflows.files:
            base = Path(self.folder)
            if self._graph(pattern) is not None:
                continue
            matched = (
                sorted(base.glob(pattern)) if re.search(r"[*?\[]", pattern) else [base / pattern]
            )
            found.update(
                dict.fromkeys(path for path in matched if path.is_file() or "*" not in pattern)
            )
        if not found and not self.graphs():
            message, hint = "there is no workflow to build.", f"Name files, or {FILE}."
            raise ConfigError(Problem("AX745", "workflows.files", message, hint))
        return list(found)

    @property
    def name(self) -> str:
        """Of the distribution."""
        if self.dist.name:
            return self.dist.name
        files = self.workflow_files()
        first = files[0].stem if files else _stem(self.graphs()[0])
        stem = re.sub(r"[^a-z0-9]+", "-", first.lower()).strip("-")
        return stem if re.match(r"[a-z]", stem) else f"flow-{stem}".rstrip("-")


def _stem(graph: PythonTarget) -> str:
    return Path(graph.file).stem if graph.file else graph.module.rpartition(".")[2]


def is_build_file(files: Sequence[str]) -> bool:
    """Return whether what was named is one file with settings of a build."""
    return len(files) == 1 and files[0].endswith(".toml") and "build" in Path(files[0]).name


def read(files: Sequence[str], functions: str = "") -> Settings:
    """Return the settings in a build file, or those that workflow files alone mean.

    Args:
        functions: a folder with functions of one's own.
    Raises: ConfigError: AX740, and what ``decode_config`` finds.
    """
    if is_build_file(files):
        path = Path(files[0])
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            message = f"the settings of the build cannot be read: {why}."
            raise ConfigError(Problem("AX740", files[0], message)) from None
        if "folder" in data:
            message, hint = 'unknown key "folder".', "Paths are relative to the file's folder."
            raise ConfigError(Problem("AX130", f"{files[0]} folder", message, hint))
        if functions:
            own = os.path.relpath(functions, path.parent)
            data = {**data, "workflows": {**data.get("workflows", {}), "functions": own}}
        return decode_config(Settings, {**data, "folder": str(path.parent)}, files[0])
    given: Mapping[str, Any] = {
        "workflows": {"files": [str(Path(file)) for file in files], "functions": functions}
    }
    return decode_config(Settings, given, ", ".join(files))

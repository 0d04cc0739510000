"""The settings of worker processes: number, size, and what they may see."""

from __future__ import annotations

import os

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import EnvName, ImportPath, ReadPath
from axil_process.programs.sandbox import Wanted


class ProcessConfig(BaseModel):
    """Processes for bodies."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1,
        ge=1,
        description="Processes at most; they are started when needed.",
    )
    memory_megabytes: int | None = Field(
        None, ge=64, description="What each may take of addresses; Linux. None: no limit."
    )
    firings_per_worker: int | None = Field(
        None, ge=1, description="A process is replaced after this many bodies. None: never."
    )
    environment: tuple[EnvName, ...] | None = Field(
        None, description="Names of the variables that processes see. None: all."
    )
    timeout_seconds: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="How long a body may take; then its process is killed. None: no limit.",
    )
    output_bytes: int | None = Field(
        None,
        ge=1024,
        description="What a body may send to its run in one firing, its result included. "
        "None: no limit.",
    )
    sandbox: Wanted = Field(
        "off",
        description="off: bodies can do what axil can; auto: in a sandbox where one works; "
        "required: an error where none does; a name: that one.",
    )
    reads: tuple[ReadPath, ...] = Field(
        (),
        description="Files and folders that bodies in a sandbox read, beside the import path and "
        "the run's workspace.",
    )
    state: ImportPath = Field(
        "",
        description="Of a graph with typed state: "
        "where its class can be imported from, module:Class.",
    )


class ProcessExecutorConfig(ProcessConfig):
    """The bodies that run in processes, and the settings of those."""

    lanes: tuple[str, ...] = Field(
        (), description="Bodies of nodes in these lanes. Without lanes: all plain functions."
    )

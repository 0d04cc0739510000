"""The settings of worker processes: number, size, and what they may see."""

from __future__ import annotations

import os

from pydantic import BaseModel, ConfigDict, Field


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
    environment: tuple[str, ...] | None = Field(
        None, description="Names of the variables that processes see. None: all."
    )
    state: str = Field(
        "",
        description="Of a graph with typed state: "
        "where its class can be imported from, module:Class.",
    )


class ExecutorConfig(ProcessConfig):
    """The bodies that run in processes, and the settings of those."""

    lanes: tuple[str, ...] = Field(
        (), description="Bodies of nodes in these lanes. Without lanes: all plain functions."
    )

"""The settings of the executor: the cluster, and which bodies go there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class RayConfig(BaseModel):
    """The cluster, and the bodies that are executed there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str = Field(
        "",
        description="Of the cluster, as ray.init takes it. Empty: $RAY_ADDRESS, else a cluster of "
        "this machine alone.",
    )
    workers: int = Field(
        8, ge=1, description="Processes at most, for each set of resources that nodes name."
    )
    resources: Mapping[str, Amount] = Field(
        default_factory=lambda: {"cpus": 1.0},
        description="What a process takes where its node names no resources.",
    )
    idle_seconds: Amount = Field(
        60.0,
        description="After this time a process without work ends: others may need what it holds.",
    )
    lanes: tuple[str, ...] = Field(
        (),
        description="Bodies of nodes in these lanes, beside those of nodes with resources. Without "
        "lanes: also all plain functions.",
    )
    state: str = Field(
        "",
        description="Of a graph with typed state: "
        "where its class can be imported from, module:Class.",
    )
    runtime_env: Mapping[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Ray's runtime environment: how processes get the code that bodies are in.",
    )
    autoscaling: bool = Field(
        False, description="True: the cluster adds nodes, so what none has now is waited for."
    )

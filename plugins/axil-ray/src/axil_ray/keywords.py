"""Settings of ``axil_ray`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from axil_ray.config import Amount


class RayExecutorKeywords(TypedDict, total=False):
    """The settings of ``RayExecutor``; see ``RayConfig``."""

    address: str
    """Of the cluster, as ray.init takes it. Empty: $RAY_ADDRESS, else a cluster of this machine
    alone.
    """

    workers: int
    """Processes at most, for each set of resources that nodes name."""

    resources: Mapping[str, Amount]
    """What a process takes where its node names no resources."""

    idle_seconds: Amount
    """After this time a process without work ends: others may need what it holds."""

    lanes: Sequence[str]
    """Bodies of nodes in these lanes, beside those of nodes with resources. Without lanes: also all
    plain functions.
    """

    state: str
    """Of a graph with typed state: where its class can be imported from, module:Class."""

    runtime_env: Mapping[str, Any]
    """Ray's runtime environment: how processes get the code that bodies are in."""

    autoscaling: bool
    """True: the cluster adds nodes, so what none has now is waited for."""

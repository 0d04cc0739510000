"""The recognition and reading of agents and subgraphs in DevAll files.

An agent is DevAll's if it has a key that only DevAll's have (``provider``) and none that only
axil's have (``model``); in a file of version 0 every agent is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from axil import ComponentRef
from axil_files import is_version_0

if TYPE_CHECKING:
    from axil import GraphSpec, NodeSpec

DEVALL: Final = frozenset({"provider", "tooling", "thinking", "skills", "retry"})
"""Keys that agents of DevAll files have."""


@cache
def axils() -> frozenset[str]:
    """Return keys that only agents of axil's own files have."""
    from axil_agent import AgentConfig
    from axil_devall.config import AgentConfig as Theirs

    return frozenset(AgentConfig.model_fields) - frozenset(Theirs.model_fields)


_RETRY: Final = {
    "max_attempts": "tries",
    "min_wait_seconds": "min_wait_seconds",
    "max_wait_seconds": "max_wait_seconds",
}
_TRIES: Final = {"tries": 5, "min_wait_seconds": 1.0, "max_wait_seconds": 6.0}
"""DevAll's number of tries and its waits, where a file gives none."""


def agent(node: NodeSpec, graph: GraphSpec) -> NodeSpec:
    """Return the node as ``devall.agent``, if it is DevAll's; else as it is. Its ``retry`` becomes
    that wrapper, innermost.
    """
    if node.use is None:
        return node
    config = node.use.config
    theirs = bool(config.keys() & DEVALL) or is_version_0(graph.extras.get("version"))
    if not theirs or config.keys() & axils():
        return node
    wrappers = (*node.wrappers, *retries(config.get("retry")))
    return replace(node, use=replace(node.use, type="devall.agent"), wrappers=wrappers)


def retries(given: object) -> tuple[ComponentRef, ...]:
    """Return the wrapper for an agent's ``retry``; none, where it is absent or not enabled."""
    if not isinstance(given, Mapping):
        return ()
    data = {
        key: value
        for key, value in cast("Mapping[str, object]", given).items()
        if value is not None
    }
    if data.get("enabled") is False:
        return ()
    config: dict[str, object] = {
        **_TRIES,
        **{ours: data[theirs] for theirs, ours in _RETRY.items() if theirs in data},
    }
    config["wait_seconds"] = config["min_wait_seconds"]
    if "retry_on_status_codes" in data:
        config["on_status"] = data["retry_on_status_codes"]
    if "retry_on_error_substrings" in data:
        config["on_text"] = data["retry_on_error_substrings"]
    for theirs, ours in (
        ("retry_on_exception_types", "on"),
        ("non_retry_exception_types", "not_on"),
    ):
        names = data.get(theirs)
        if isinstance(names, list) and names:
            config[ours] = [f"*.{name}" for name in cast("list[object]", names)]
    return (ComponentRef(type="retry", config=config),)


def subgraph(node: NodeSpec, graph: GraphSpec) -> NodeSpec:
    """Return the node with the wrapper ``devall.subgraph``, if the file is of version 0."""
    if not is_version_0(graph.extras.get("version")):
        return node
    return replace(node, wrappers=(*node.wrappers, ComponentRef(type="devall.subgraph")))

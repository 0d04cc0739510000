"""``subgraph``: a graph from a file or from the node's own config, running inside one node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from axil import Problem
from axil.plugin import CompileOptions, SubgraphSpec, refers_to

_OWN = frozenset({"payload", "state", "attributes"})
"""Keys of a graph that say what its state is."""


def surroundings(setting: CompileOptions) -> dict[str, object]:
    """Return where and with what the graph around a node was read: folder, root, trail,
    variables.
    """
    return dict(setting.extras) or {"folder": setting.folder or "."}


class Subgraph:
    """``subgraph``: what comes in enters the inner graph, what its end gives comes out.

    It starts afresh at each firing. In a graph with typed state, a graph in the settings that says
    nothing of payload and state has that state, too.
    """

    examples = (
        {
            "type": "config",
            "config": {"nodes": [{"id": "A", "type": "passthrough"}], "edges": [], "start": ["A"]},
        },
    )

    class Config(BaseModel, extra="forbid", frozen=True):
        """The graph to use."""

        type: Literal["file", "config"] = Field(
            description="Whether config names a file or is the graph."
        )
        config: dict[str, Any] = Field(
            description="{path: other.yaml}, or a graph: {nodes, edges, start, end}.",
            json_schema_extra=refers_to("graph"),
        )
        keep: bool = Field(
            default=False,
            description="What inner nodes keep for themselves "
            "lasts until the next firing in the same run.",
        )

        @model_validator(mode="after")
        def _config_is_of_its_type(self) -> Self:
            if self.type == "file" and not (
                self.config.keys() == {"path"}
                and isinstance(self.config["path"], str)
                and self.config["path"]
            ):
                raise ValueError(
                    "AX605 a subgraph of type file has the config {path: FILE} and nothing else."
                )
            if self.type == "config" and not isinstance(self.config.get("nodes"), list):
                raise ValueError(
                    "AX605 a subgraph of type config has a graph as its config, with nodes."
                )
            return self

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> object:
        """Return the inner graph.

        Raises: SpecError: the file cannot be read or may not be included, or its graph is wrong.
        """
        from axil_files import LoadOptions, include_spec, inline_spec

        outer, where = surroundings(setting), f'node "{node}"'
        reading = LoadOptions(
            environment=setting.environment,
            allow_code=setting.allow_code,
            grants=setting.grants,
            registry=setting.registry,
        )
        if self.config.type == "file":
            spec = include_spec(
                self.config.config["path"],
                outer,
                where=where,
                registry=setting.registry,
                reading=reading,
            )
            if setting.state is not None and spec.payload == "messages":
                apart = Problem(
                    "AX174",
                    str(setting.place or where),
                    "its nodes take no part in the state of the graph around it: edges of the "
                    "file carry messages.",
                    "Write payload: state in the file, or its graph here.",
                    severity="warning",
                )
                warnings = (*spec.extras.get("warnings", ()), apart)
                spec = replace(spec, extras={**spec.extras, "warnings": warnings})
        else:
            place, graph = setting.place, self.config.config
            place = place and place.at("config", "config")
            shared = setting.state if _OWN.isdisjoint(graph) else None
            if shared is not None:
                graph = {**graph, "payload": "state"}
            spec = inline_spec(graph, outer, place=place, reading=reading)
            if shared is not None:
                spec = replace(spec, schema=shared)
        memories = frozenset(spec.extras.get("growing", ()))
        return SubgraphSpec(spec=spec, hidden=memories, keep=self.config.keep)

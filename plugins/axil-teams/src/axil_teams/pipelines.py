"""Teams whose members each speak once: edges say who hears whom, and there are no rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from pydantic import Field, field_validator

from axil import ComponentRef, EdgeSpec, GraphSpec
from axil.plugin import ENTRY, EXIT, CompileOptions, SubgraphSpec, as_messages
from axil_teams.errors import TeamError
from axil_teams.members import nodes_of
from axil_teams.settings import Settings, literal, member, members
from axil_teams.transcript import entry, named


class _Named:
    """An edge that says whose words it carries."""

    def __init__(self, member: str) -> None:
        self.member, self.__name__ = member, "by name"

    def __call__(self, payload: Any) -> Any:
        said = [named(entry(self.member, each["content"])) for each in as_messages(payload)]
        return said[0] if isinstance(payload, dict) and len(said) == 1 else said


def pipeline(
    node: str,
    setting: CompileOptions,
    team: Mapping[str, Any],
    edges: Sequence[tuple[str, str]],
    *,
    end: str = "",
    has_names: bool = False,
) -> SubgraphSpec:
    """Return members and the edges between them as a node's graph.

    Args:
        end: the member whose words are the answer; empty: those of all that lead to the exit.
        has_names: whether what members hear of each other begins with the speaker's name.
    """
    made: list[EdgeSpec] = []
    for source, target in edges:
        is_named = has_names and target != EXIT and source != ENTRY
        process = _Named(source) if is_named else None
        made.append(EdgeSpec(source=source, target=target, process=process))
    spec = GraphSpec(
        id=node,
        nodes=nodes_of(team, node, setting, {}),
        edges=tuple(made),
        payload="messages",
        end=(end,) if end else (),
        cycles="forbid",
    )
    return SubgraphSpec(spec=spec)


class Horizontal:
    """``horizontal``: members in a line; each is sent what the one before it said."""

    examples = ({"members": {"draft": literal("A draft."), "edit": literal("The text.")}},)

    class Config(Settings, frozen=True):
        """The line."""

        members: dict[str, object] = members("The members in their order", min_length=1)

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the line."""
        names = list(self.config.members)
        edges = zip([ENTRY, *names], [*names, EXIT], strict=True)
        return pipeline(node, setting, self.config.members, list(edges), end=names[-1])


class Vertical:
    """``vertical``: members side by side on one task; an aggregator puts together what they say."""

    examples = (
        {"members": {"a": literal("One."), "b": literal("Two.")}, "aggregator": literal("Both.")},
    )

    class Config(Settings, frozen=True):
        """The members."""

        members: dict[str, object] = members("The members that work in parallel", min_length=1)
        aggregator: object = member(
            "The member that combines the answers; none: all answers are the output", default=None
        )

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the members side by side."""
        config, names = self.config, list(self.config.members)
        if config.aggregator is None:
            edges = [edge for name in names for edge in ((ENTRY, name), (name, EXIT))]
            return pipeline(node, setting, config.members, edges)
        team = {**config.members, "aggregator": config.aggregator}
        edges = [edge for n in names for edge in ((ENTRY, n), (n, "aggregator"))]
        edges = [(ENTRY, "aggregator"), *edges, ("aggregator", EXIT)]
        return pipeline(node, setting, team, edges, end="aggregator", has_names=True)


class AdjacencyMatrix:
    """``adjacency_matrix``: members, and a table that says whose words reach whom."""

    examples = (
        {
            "members": {"a": literal("One."), "b": literal("Two.")},
            "matrix": [[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]],
        },
    )

    class Config(Settings, frozen=True):
        """The members and the table."""

        members: dict[str, object] = members("The members in the order of the table", min_length=1)
        matrix: list[list[int]] = Field(
            description="An adjacency matrix with a row and a column for the entry, each member "
            "and the exit: 1 for an edge from the row to the column."
        )

        @field_validator("matrix")
        @classmethod
        def _is_square(cls, rows: list[list[int]]) -> list[list[int]]:
            if any(len(row) != len(rows) for row in rows):
                raise ValueError("AX672 expected as many columns as rows.")
            return rows

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the graph of the table. Raises: TeamError (AX672): it has another size."""
        ends, rows = [ENTRY, *self.config.members, EXIT], self.config.matrix
        if len(rows) != len(ends):
            message = f'the matrix of "{node}" has {len(rows)} rows, expected {len(ends)}.'
            hint = "Write one row for the entry, one for each member, and one for the exit."
            raise TeamError("AX672", message, hint)
        pairs = zip(ends, rows, strict=True)
        edges = [(source, target) for source, row in pairs for target in compress(ends, row)]
        return pipeline(node, setting, self.config.members, edges, has_names=True)


class Brainstorming:
    """``brainstorming``: members speak in turn, each hears all before it; then the solver."""

    examples = (
        {"members": {"a": literal("One."), "b": literal("Two.")}, "solver": literal("Both.")},
    )

    class Config(Settings, frozen=True):
        """The members and the solver."""

        members: dict[str, object] = members(
            "The members that give ideas, in their order", min_length=1
        )
        solver: object = member("The member that makes one answer of the ideas")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the line, in which each is connected with all before it."""
        team = {**self.config.members, "solver": self.config.solver}
        edges = list(_all_before(list(team)))
        return pipeline(node, setting, team, edges, end="solver", has_names=True)


def _all_before(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, name in enumerate(names):
        yield ENTRY, name
        yield from ((before, name) for before in names[:at])
    yield names[-1], EXIT


class MapReduce:
    """``map_reduce``: one firing of the mapper for each document, then the reducer on all it said.

    A document is a message, or a part of one as ``split`` says.
    """

    examples = ({"mapper": {"type": "passthrough"}, "reducer": literal("All of it.")},)

    class Config(Settings, frozen=True):
        """The mapper, the reducer, and what a document is."""

        mapper: object = member("The node that runs for each document")
        reducer: object = member("The node that makes one answer of the mapper's results")
        split: dict[str, Any] | None = Field(
            default=None,
            description="How the input is split into documents, as in map: {type: regex, …}.",
        )
        max_parallel: int = Field(
            default=10, ge=1, description="The largest number of documents at the same time."
        )

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the mapper, as often as there are documents, and the reducer."""
        config = self.config
        team = {"mapper": config.mapper, "reducer": config.reducer}
        edges = [(ENTRY, "mapper"), ("mapper", "reducer"), ("reducer", EXIT)]
        whole = pipeline(node, setting, team, edges, end="reducer")
        given: dict[str, Any] = {"max_parallel": config.max_parallel}
        if config.split is not None:
            given["split"] = config.split
        mapper, reducer = whole.spec.nodes
        wrappers = (ComponentRef(type="map", config=given), *mapper.wrappers)
        nodes = (replace(mapper, wrappers=wrappers), reducer)
        return replace(whole, spec=replace(whole.spec, nodes=nodes))

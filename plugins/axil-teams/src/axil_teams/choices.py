"""Teams in which a handoff, a selector, a supervisor or a plan says who speaks next."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from axil.plugin import CompileOptions, SubgraphSpec
from axil_teams.members import one_of
from axil_teams.orders import Handoffs, Planned, Selected, Stop
from axil_teams.settings import Stopped, Talk, literal, member, members
from axil_teams.turns import conversation


class Hub:
    """``hub``: one member, the hub, hands over to others, each of which hands back to it.

    It ends where the hub answers without a handoff.
    """

    examples = ({"hub": literal("Hello."), "spokes": {"a": literal("One.")}},)

    class Config(Stopped, frozen=True):
        """The hub and the others."""

        hub: object = member("The member that hands over")
        spokes: dict[str, object] = members("The others", min_length=1)
        turns: int = Field(default=20, ge=1, description="The largest number of turns.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        team = {"hub": config.hub, **config.spokes}
        order = Handoffs(
            members=list(team), first="hub", home="hub", turns=config.turns, stop=Stop(config.stop)
        )
        return conversation(
            node,
            setting,
            team,
            order,
            **config.talk,
            handoffs={"hub": list(config.spokes)},
        )


class Swarm:
    """``swarm``: members hand over to each other; an answer without a handoff ends it."""

    examples = ({"members": {"a": literal("One."), "b": literal("Two.")}},)

    class Config(Stopped, frozen=True):
        """The members and their handoffs."""

        members: dict[str, object] = members("The members", min_length=1)
        first: str = Field(
            default="", description="The member that speaks first; empty: the first of the members."
        )
        handoffs: dict[str, list[str]] | None = Field(
            default=None,
            description="The members that each member may hand over to; without it all others.",
        )
        turns: int = Field(default=20, ge=1, description="The largest number of turns.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation. Raises: TeamError (AX670): a name is no member's."""
        config, names = self.config, list(self.config.members)
        first = one_of(config.first, config.members, "first")
        handoffs = config.handoffs
        if handoffs is None:
            handoffs = {name: [n for n in names if n != name] for name in names}
        for name in (*handoffs, *(target for targets in handoffs.values() for target in targets)):
            one_of(name, config.members, "a handoff")
        order = Handoffs(members=names, first=first, turns=config.turns, stop=Stop(config.stop))
        return conversation(
            node,
            setting,
            config.members,
            order,
            **config.talk,
            handoffs=handoffs,
        )


class GroupChat:
    """``group_chat``: before each turn a selector names the member that speaks; all hear all."""

    examples = (
        {
            "members": {"a": literal("One."), "b": literal("Two.")},
            "selector": literal("b"),
            "turns": 2,
        },
    )

    class Config(Stopped, frozen=True):
        """The members and the selector."""

        members: dict[str, object] = members("The members", min_length=1)
        selector: object = member(
            "The member that chooses the next speaker; its own words are not sent to the others"
        )
        turns: int = Field(default=10, ge=1, description="The largest number of turns of members.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        order = Selected(
            chooser="selector",
            members=list(config.members),
            turns=config.turns,
            stop=Stop(config.stop),
        )
        team = {"selector": config.selector, **config.members}
        return conversation(node, setting, team, order, **config.talk)


class Supervisor:
    """``supervisor``: one gives work to the members, hears what they say, and writes the answer.

    A member is sent the work alone, not the conversation.
    """

    examples = ({"supervisor": literal("Done."), "members": {"a": literal("One.")}},)

    class Config(Talk, frozen=True):
        """The supervisor and the members."""

        supervisor: object = member("The member that assigns work and writes the answer at the end")
        members: dict[str, object] = members("The members", min_length=1)
        turns: int = Field(default=10, ge=1, description="The largest number of turns of members.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        order = Selected(
            chooser="supervisor", members=list(config.members), turns=config.turns, supervises=True
        )
        team = {"supervisor": config.supervisor, **config.members}
        return conversation(node, setting, team, order, **config.talk)


class PlanAndExecute:
    """``plan_and_execute``: a planner writes steps, members carry them out, a writer answers.

    Steps that wait for nothing run side by side, each with the results that it needs.
    """

    examples = (
        {
            "planner": literal("1. Look it up."),
            "members": {"worker": literal("Found.")},
            "writer": literal("So it is."),
        },
    )

    class Config(Talk, frozen=True):
        """The planner, the members and the writer."""

        planner: object = member("The member that writes the steps: lines, or JSON")
        members: dict[str, object] = members("The members that carry out steps", min_length=1)
        writer: object = member(
            "The member that writes the answer; none: the answer is the last result", default=None
        )
        steps: int = Field(default=10, ge=1, description="The largest number of steps.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        team: dict[str, Any] = {"planner": config.planner, **config.members}
        if config.writer is not None:
            team["writer"] = config.writer
        order = Planned(
            planner="planner",
            members=list(config.members),
            steps=config.steps,
            writer="writer" if config.writer is not None else "",
        )
        return conversation(node, setting, team, order, **config.talk)

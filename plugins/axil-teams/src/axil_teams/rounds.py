"""Teams that talk in turn, until a phrase or a number of rounds ends it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from axil.plugin import CompileOptions, SubgraphSpec
from axil_teams.orders import InTurn, Stop
from axil_teams.settings import Stopped, literal, member, members
from axil_teams.turns import conversation


class Mesh:
    """``mesh``: members in turn, each hears all; until one says the phrase."""

    examples = ({"members": {"a": literal("One."), "b": literal("FINAL ANSWER: two.")}},)

    class Config(Stopped, frozen=True):
        """The members."""

        members: dict[str, object] = members("The members in their order", min_length=1)
        rounds: int = Field(
            default=5, ge=1, description="The largest number of turns of each member."
        )
        stop: Any = Field(
            default="FINAL ANSWER",
            description="The phrase that ends the conversation; in Python also a function.",
        )

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        order = InTurn(
            stages=[[n] for n in config.members], rounds=config.rounds, stop=Stop(config.stop)
        )
        return conversation(node, setting, config.members, order, **config.talk)


class PingPong:
    """``ping_pong``: two members in turn; each turn is counted."""

    examples = ({"members": {"ping": literal("Ping."), "pong": literal("Pong.")}, "turns": 4},)

    class Config(Stopped, frozen=True):
        """The two."""

        members: dict[str, object] = members(
            "The two members, in the order of their turns", min_length=2, max_length=2
        )
        turns: int = Field(default=20, ge=1, description="The largest number of turns.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        names = list(config.members)
        order = InTurn(
            stages=[[name] for name in names],
            rounds=1,
            turns=config.turns,
            stop=Stop(config.stop),
        )
        return conversation(node, setting, config.members, order, **config.talk)


class InstructorAssistant:
    """``instructor_assistant``: one says what to do, the other does it, until the work is done.

    The answer is the assistant's last words.
    """

    examples = ({"instructor": literal("Do it."), "assistant": literal("Done.")},)

    class Config(Stopped, frozen=True):
        """The two."""

        instructor: object = member("The member that gives instructions")
        assistant: object = member("The member that carries them out")
        rounds: int = Field(default=5, ge=1, description="The largest number of instructions.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        order = InTurn(
            stages=[["instructor"], ["assistant"]],
            rounds=config.rounds,
            stop=Stop(config.stop),
            answer="assistant",
        )
        team = {"instructor": config.instructor, "assistant": config.assistant}
        return conversation(node, setting, team, order, **config.talk)


class GeneratorVerifier:
    """``generator_verifier``: one makes, one checks, until it is good; the work is the answer."""

    examples = ({"generator": literal("2 + 2 = 4"), "verifier": literal("ACCEPT")},)

    class Config(Stopped, frozen=True):
        """The two."""

        generator: object = member("The member that writes the answer")
        verifier: object = member(
            "The member that checks the answer, and says the phrase when it is good"
        )
        rounds: int = Field(default=3, ge=1, description="The largest number of attempts.")
        stop: Any = Field(
            default="ACCEPT",
            description="The phrase by which the verifier accepts the answer; in Python also a "
            "function.",
        )

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        order = InTurn(
            stages=[["generator"], ["verifier"]],
            rounds=config.rounds,
            stop=Stop(config.stop, by=("verifier",)),
            answer="generator",
        )
        team = {"generator": config.generator, "verifier": config.verifier}
        return conversation(node, setting, team, order, **config.talk)


class VerticalDecision:
    """``vertical_decision``: in each round critics speak side by side, and the solver answers them.

    Where all critics say the phrase, or the solver does, it ends; the solver's last words are the
    answer.
    """

    examples = ({"critics": {"a": literal("No."), "b": literal("Yes.")}, "solver": literal("So.")},)
    drafts = False

    class Config(Stopped, frozen=True):
        """The critics and the solver."""

        critics: dict[str, object] = members("The members that speak in parallel", min_length=1)
        solver: object = member("The member that answers them")
        aggregator: object = member("A member between the critics and the solver", default=None)
        rounds: int = Field(default=3, ge=1, description="The largest number of rounds.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config = self.config
        team = {**config.critics, "solver": config.solver}
        stages = [list(config.critics), ["solver"]]
        if config.aggregator is not None:
            team["aggregator"] = config.aggregator
            stages.insert(1, ["aggregator"])
        order = InTurn(
            first=[["solver"]] if self.drafts else [],
            stages=stages,
            rounds=config.rounds,
            stop=Stop(config.stop),
            answer="solver",
        )
        return conversation(node, setting, team, order, **config.talk)


class VerticalSolverFirst(VerticalDecision):
    """``vertical_solver_first``: the solver drafts, and then rounds as in ``vertical_decision``."""

    drafts = True


class Debate:
    """``debate``: debaters speak in turn or side by side; then a judge decides."""

    examples = (
        {"members": {"pro": literal("Yes."), "con": literal("No.")}, "judge": literal("Yes.")},
    )

    class Config(Stopped, frozen=True):
        """The debaters and the judge."""

        members: dict[str, object] = members("The debaters in their order", min_length=2)
        judge: object = member("The member that reads all turns and decides")
        rounds: int = Field(default=2, ge=1, description="The number of turns of each debater.")
        at_once: bool = Field(
            default=False,
            description="Debaters of a round speak in parallel and do not see that round's turns.",
        )

    def __init__(self, config: Config) -> None:
        self.config = config

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """Return the conversation."""
        config, names = self.config, list(self.config.members)
        order = InTurn(
            stages=[names] if config.at_once else [[name] for name in names],
            rounds=config.rounds,
            last=[["judge"]],
            stop=Stop(config.stop, by=tuple(names)),
        )
        team = {**config.members, "judge": config.judge}
        return conversation(node, setting, team, order, **config.talk)

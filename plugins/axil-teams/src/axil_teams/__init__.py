"""Teams: graphs of agents that talk, each a node type."""

from __future__ import annotations

from axil_teams.choices import GroupChat, Hub, PlanAndExecute, Supervisor, Swarm
from axil_teams.errors import TeamError
from axil_teams.handoff import Handoff
from axil_teams.orders import End, Handoffs, InTurn, Meeting, Order, Planned, Selected, Stop, Turn
from axil_teams.pipelines import AdjacencyMatrix, Brainstorming, Horizontal, MapReduce, Vertical
from axil_teams.rounds import (
    Debate,
    GeneratorVerifier,
    InstructorAssistant,
    Mesh,
    PingPong,
    VerticalDecision,
    VerticalSolverFirst,
)
from axil_teams.turns import conversation

__all__ = [
    "AdjacencyMatrix",
    "Brainstorming",
    "Debate",
    "End",
    "GeneratorVerifier",
    "GroupChat",
    "Handoff",
    "Handoffs",
    "Horizontal",
    "Hub",
    "InTurn",
    "InstructorAssistant",
    "MapReduce",
    "Meeting",
    "Mesh",
    "Order",
    "PingPong",
    "PlanAndExecute",
    "Planned",
    "Selected",
    "Stop",
    "Supervisor",
    "Swarm",
    "TeamError",
    "Turn",
    "Vertical",
    "VerticalDecision",
    "VerticalSolverFirst",
    "conversation",
]

"""Agents and people as nodes."""

from __future__ import annotations

from evofabric.core.agent.agent_node import AgentNode
from evofabric.core.agent.user_node import UserNode

__all__ = ["AgentNode", "UserNode"]

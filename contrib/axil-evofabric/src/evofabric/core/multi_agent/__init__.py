"""Teams of agents."""

from evofabric.core.multi_agent.swarm import Swarm

__all__ = ["Swarm"]

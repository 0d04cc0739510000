"""Agent Spec: agents and flows, as Oracle specifies them openly."""

"""Flowise: agentflows, and chatflows."""

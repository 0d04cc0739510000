"""Graphs, agents, clients, tools, messages."""

"""Graphs, agents, switches, people."""

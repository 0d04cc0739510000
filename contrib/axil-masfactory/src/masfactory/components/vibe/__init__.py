"""Graphs that a model designs."""

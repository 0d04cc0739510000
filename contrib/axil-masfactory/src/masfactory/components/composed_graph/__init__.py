"""Graphs of usual shapes."""

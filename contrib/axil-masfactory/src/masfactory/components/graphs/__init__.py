"""Graphs and loops."""

"""Nodes, edges, templates, fields."""

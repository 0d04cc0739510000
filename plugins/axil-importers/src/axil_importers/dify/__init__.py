"""Dify's exports."""

"""Switches."""

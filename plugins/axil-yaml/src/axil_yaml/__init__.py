"""Reads and writes workflow files in YAML."""

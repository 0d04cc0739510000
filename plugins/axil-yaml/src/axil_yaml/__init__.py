"""Reads workflow files in YAML: plain data with the lines it stands on, and nothing else."""

from __future__ import annotations

from axil_yaml.loader import parse_yaml

__all__ = ["parse_yaml"]

"""Nodes that steer a graph, conditions and processors for its edges; no model is involved."""

from __future__ import annotations

from axil_control.channels import Replies
from axil_control.fans import Map, Tree
from axil_control.switches import LogicSwitch

__all__ = ["LogicSwitch", "Map", "Replies", "Tree"]

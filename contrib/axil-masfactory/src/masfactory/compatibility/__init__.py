"""Workflows of other systems as graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from masfactory.compatibility.chatdev import ChatDevRootGraph, load_graph_from_chatdev_yaml
from masfactory.compatibility.dify import load_graph_from_dify_dict, load_graph_from_dify_yaml
from masfactory.compatibility.errors import CompatibilityImportError
from masfactory.compatibility.langflow import load_graph_from_langflow_json
from masfactory.compatibility.options import (
    ChatDevCompileOptions,
    DifyCompileOptions,
    LangflowCompileOptions,
)
from masfactory.errors import missing

__all__ = [
    "ChatDevCompileOptions",
    "ChatDevRootGraph",
    "CompatibilityImportError",
    "DifyCompileOptions",
    "LangflowCompileOptions",
    "load_graph_from_chatdev_yaml",
    "load_graph_from_dify_dict",
    "load_graph_from_dify_yaml",
    "load_graph_from_langflow_json",
]

_DESIGNS = (
    "The imported graph is in graph.axil.to_spec(), and axil_files writes it as a workflow file."
)
_EXPORTS = (
    "blueprint_to_graph",
    "blueprint_to_graph_design",
    "blueprint_to_graph_design_document",
    "chatdev_chain_to_blueprint",
    "chatdev_document_to_blueprint",
    "chatdev_document_to_graph_design",
    "compatibility_out_dir",
    "default_graph_design_path",
    "dify_document_to_blueprint",
    "dify_document_to_graph_design",
    "export_graph_design_for_blueprint",
    "langflow_document_to_blueprint",
    "langflow_document_to_graph_design",
    "maybe_export_graph_design",
    "workflow_export_to_blueprint",
    "write_graph_design_json",
)
__getattr__: Callable[[str], Any] = missing(__name__, dict.fromkeys(_EXPORTS, _DESIGNS))

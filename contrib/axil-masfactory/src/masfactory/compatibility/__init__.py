"""Workflows of other systems as graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from masfactory.compatibility.blueprint import (
    COMPATIBILITY_OUT_DIR,
    ExternalEdge,
    ExternalNode,
    GraphBlueprint,
    blueprint_to_aml_document,
    blueprint_to_graph,
    blueprint_to_graph_design,
    blueprint_to_graph_design_document,
    blueprint_to_graph_design_document_via_aml,
    blueprint_to_graph_via_aml,
    chatdev_document_to_aml,
    chatdev_document_to_blueprint,
    chatdev_document_to_graph_design,
    compatibility_out_dir,
    default_aml_path,
    default_graph_design_path,
    dify_document_to_aml,
    dify_document_to_blueprint,
    dify_document_to_graph_design,
    export_aml_for_blueprint,
    export_graph_design_for_blueprint,
    is_chatdev_workflow_document,
    is_dify_app_document,
    is_langflow_document,
    langflow_document_to_aml,
    langflow_document_to_blueprint,
    langflow_document_to_graph_design,
    workflow_export_to_blueprint,
    write_aml,
    write_graph_design_json,
)
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
    "COMPATIBILITY_OUT_DIR",
    "ChatDevCompileOptions",
    "ChatDevRootGraph",
    "CompatibilityImportError",
    "DifyCompileOptions",
    "ExternalEdge",
    "ExternalNode",
    "GraphBlueprint",
    "LangflowCompileOptions",
    "blueprint_to_aml_document",
    "blueprint_to_graph",
    "blueprint_to_graph_design",
    "blueprint_to_graph_design_document",
    "blueprint_to_graph_design_document_via_aml",
    "blueprint_to_graph_via_aml",
    "chatdev_document_to_aml",
    "chatdev_document_to_blueprint",
    "chatdev_document_to_graph_design",
    "compatibility_out_dir",
    "default_aml_path",
    "default_graph_design_path",
    "dify_document_to_aml",
    "dify_document_to_blueprint",
    "dify_document_to_graph_design",
    "export_aml_for_blueprint",
    "export_graph_design_for_blueprint",
    "is_chatdev_workflow_document",
    "is_dify_app_document",
    "is_langflow_document",
    "langflow_document_to_aml",
    "langflow_document_to_blueprint",
    "langflow_document_to_graph_design",
    "load_graph_from_chatdev_yaml",
    "load_graph_from_dify_dict",
    "load_graph_from_dify_yaml",
    "load_graph_from_langflow_json",
    "workflow_export_to_blueprint",
    "write_aml",
    "write_graph_design_json",
]

_LOADED = "Load the file: load_graph_from_dify_yaml, …_langflow_json or …_chatdev_yaml."
_NAMES = (
    *("DifyRootGraph", "LangflowRootGraph", "blueprint_to_chatdev_graph"),
    *("blueprint_to_dify_graph", "blueprint_to_langflow_graph", "chatdev_chain_to_blueprint"),
    *("chatdev_majority_voting_to_blueprint", "is_chatdev_majority_voting_document"),
    *("langflow_document_to_graph", "maybe_export_aml", "maybe_export_graph_design"),
    *("openai_compatible_model_from_dify", "resolve_aml_export_path"),
    "resolve_graph_design_export_path",
)
__getattr__: Callable[[str], Any] = missing(__name__, dict.fromkeys(_NAMES, _LOADED))

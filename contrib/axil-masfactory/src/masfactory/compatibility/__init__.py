"""Workflows of other systems as graphs."""

from __future__ import annotations

from masfactory.compatibility.chatdev import ChatDevRootGraph, load_graph_from_chatdev_yaml
from masfactory.compatibility.dify import load_graph_from_dify_dict, load_graph_from_dify_yaml
from masfactory.compatibility.errors import CompatibilityImportError
from masfactory.compatibility.langflow import load_graph_from_langflow_json
from masfactory.compatibility.options import (
    ChatDevCompileOptions,
    DifyCompileOptions,
    LangflowCompileOptions,
)

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

"""AML: graphs as XML."""

from __future__ import annotations

from masfactory.aml.compiling import compile_aml
from masfactory.aml.conditions import condition_of
from masfactory.aml.design import (
    aml_to_graph_design,
    graph_design_to_aml,
    graph_design_to_aml_document,
)
from masfactory.aml.model import (
    AmlDocument,
    AmlEdge,
    AmlError,
    AmlGraph,
    AmlNode,
    validate_aml_document,
)
from masfactory.aml.reader import (
    AML_VERSION,
    SUPPORTED_AML_VERSIONS,
    detect_aml_version,
    parse_aml_document,
)

__all__ = [
    "AML_VERSION",
    "SUPPORTED_AML_VERSIONS",
    "AmlDocument",
    "AmlEdge",
    "AmlError",
    "AmlGraph",
    "AmlNode",
    "aml_to_graph_design",
    "compile_aml",
    "condition_of",
    "detect_aml_version",
    "graph_design_to_aml",
    "graph_design_to_aml_document",
    "parse_aml_document",
    "validate_aml_document",
]

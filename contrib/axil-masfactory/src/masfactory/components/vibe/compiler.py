"""Compilers by MASFactory's signatures: from AML and from designs to a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import masfactory.aml as aml_package
from masfactory.aml.compiling import Compiling
from masfactory.aml.design import (
    Design,
    aml_to_graph_design,
    design_graph,
    graph_design_to_aml_document,
    normalize_graph_design,
)
from masfactory.aml.model import AmlDocument, validate_aml_document
from masfactory.components.graphs.base_graph import BaseGraph

__all__ = [
    "compile_aml",
    "compile_graph_design",
    "load_cached_aml",
    "load_cached_graph_design",
    "normalize_graph_design",
    "validate_graph_design_strict",
]


def compile_aml(
    *,
    target_graph: BaseGraph,
    aml: str | Path,
    model: Any,
    tools: Sequence[Callable[..., Any]] | None = None,
    **more: Any,
) -> None:
    """Put a document into a graph; ``more`` as of ``masfactory.aml.compile_aml``."""
    aml_package.compile_aml(aml, target_graph, model=model, tools=tools or (), **more)


def compile_graph_design(
    *,
    target_graph: BaseGraph,
    graph_design: Any,
    model: Any,
    tools: Sequence[Callable[..., Any]] | None = None,
) -> None:
    """Put a design into a graph; its agents have the tools that they name.

    Raises: TypeError: it is no dict; AmlError: it cannot be made.
    """
    if not isinstance(graph_design, dict):
        raise TypeError(
            f"found a design that is a {type(graph_design).__name__}, expected a dict. "
            "Load a file by load_cached_graph_design."
        )
    graph = design_graph(graph_design)
    validate_aml_document(AmlDocument("", aml_package.AML_VERSION, graph, {}))
    Compiling(model, tools or ()).fill(target_graph, graph)


def validate_graph_design_strict(graph_design: Any) -> Design:
    """Check a design, and give it in its usual form. Raises: AmlError: all that is wrong."""
    return normalize_graph_design(graph_design)


def load_cached_graph_design(cache_path: str | Path) -> Design:
    """Give the design in a file of JSON or AML, or in ``graph_design.json`` of a folder."""
    path = Path(cache_path)
    path = path / "graph_design.json" if path.is_dir() else path
    given = aml_to_graph_design(path) if path.suffix.lower() == ".aml" else path
    return normalize_graph_design(given)


def load_cached_aml(cache_path: str | Path) -> str | Path:
    """Give the AML of a file, or of ``graph.aml`` in a folder; a design in JSON as AML."""
    path = Path(cache_path)
    if path.is_dir():
        kept = path / "graph.aml"
        path = kept if kept.is_file() else path / "graph_design.json"
    if path.suffix.lower() == ".aml":
        if not path.is_file():
            raise FileNotFoundError(path)
        return path
    return graph_design_to_aml_document(
        normalize_graph_design(path),
        document_id=f"{path.stem}.legacy_cache",
        root_graph_id=path.stem.replace(".", "_"),
    )

"""Nodes, edges, templates, fields."""

from __future__ import annotations

from masfactory.core.multimodal import FieldModality, FieldSpec, ImageAsset, PdfAsset

__all__ = ["FieldModality", "FieldSpec", "ImageAsset", "PdfAsset"]

"""Workflows from the text of a procedure."""

from evofabric.app.sop2workflow.descriptions import (
    GraphDescription,
    GraphDespEdge,
    GraphDespNode,
    SopBreakdownGraphDesp,
    SopBreakdownNodeDesp,
    WorkflowGeneratorBase,
    extract_text_between,
    generate_condition_router_function_call,
    user_feedback_router,
)
from evofabric.app.sop2workflow.generator import WorkflowGenerator

__all__ = [
    "GraphDescription",
    "GraphDespEdge",
    "GraphDespNode",
    "SopBreakdownGraphDesp",
    "SopBreakdownNodeDesp",
    "WorkflowGenerator",
    "WorkflowGeneratorBase",
    "extract_text_between",
    "generate_condition_router_function_call",
    "user_feedback_router",
]

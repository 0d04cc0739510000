"""MASFactory's names, on axil: ``import masfactory`` keeps working."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from masfactory import elsewhere
from masfactory.adapters.memory import HistoryMemory, Memory, VectorMemory
from masfactory.adapters.model import (
    AnthropicModel,
    GeminiModel,
    LegacyOpenAIModel,
    Model,
    OpenAIModel,
)
from masfactory.adapters.retrieval import (
    FileSystemRetriever,
    Retrieval,
    SimpleKeywordRetriever,
    VectorRetriever,
)
from masfactory.components.agents.agent import Agent
from masfactory.components.agents.dynamic_agent import DynamicAgent
from masfactory.components.agents.single_agent import SingleAgent
from masfactory.components.composed_graph.adjacency_matrix_graph import AdjacencyMatrixGraph
from masfactory.components.composed_graph.brainstorming_graph import BrainstormingGraph
from masfactory.components.composed_graph.generator_verifier_graph import GeneratorVerifierGraph
from masfactory.components.composed_graph.horizontal_graph import HorizontalGraph
from masfactory.components.composed_graph.hub_graph import HubGraph
from masfactory.components.composed_graph.instructor_assistant_graph import (
    InstructorAssistantGraph,
)
from masfactory.components.composed_graph.mesh_graph import MeshGraph
from masfactory.components.composed_graph.ping_pong_graph import PingPongGraph
from masfactory.components.composed_graph.vertical_decision_graph import VerticalDecisionGraph
from masfactory.components.composed_graph.vertical_graph import VerticalGraph
from masfactory.components.composed_graph.vertical_solver_first_decision_graph import (
    VerticalSolverFirstDecisionGraph,
)
from masfactory.components.controls.agent_switch import AgentSwitch
from masfactory.components.controls.base_switch import BaseSwitch
from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.custom_node import CustomNode
from masfactory.components.graphs.base_graph import BaseGraph
from masfactory.components.graphs.graph import Graph
from masfactory.components.graphs.loop import Loop
from masfactory.components.graphs.root_graph import RootGraph
from masfactory.components.human.human_chat import HumanChat
from masfactory.components.human.human_chat_visual import HumanChatVisual
from masfactory.components.human.human_file_edit import HumanFileEdit
from masfactory.components.human.human_file_edit_visual import HumanFileEditVisual
from masfactory.components.vibe import LegacyVibeGraph, VibeGraph
from masfactory.core.edge import Edge
from masfactory.core.message import (
    JsonMessageFormatter,
    LenientJsonMessageFormatter,
    MarkdownMessageFormatter,
    MessageFormatter,
    ParagraphMessageFormatter,
    TaggedFieldMessageFormatter,
    TwinsFieldTextFormatter,
)
from masfactory.core.multimodal import FieldModality, FieldSpec, ImageAsset, PdfAsset
from masfactory.core.node import Node
from masfactory.core.node_template import (
    Factory,
    NodeTemplate,
    Shared,
    template_defaults,
    template_defaults_for,
    template_overrides,
    template_overrides_for,
)
from masfactory.errors import Unsupported, missing
from masfactory.skills import Skill, SkillSet, load_skill, load_skills
from masfactory.utils.embedding import (
    AnthropicEmbedder,
    BaseEmbedder,
    HybridEmbedder,
    OpenAIEmbedder,
    SentenceTransformerEmbedder,
    SimpleEmbedder,
)
from masfactory.utils.hook import HookManager, HookStage, masf_hook

__all__ = [
    "AdjacencyMatrixGraph",
    "Agent",
    "AgentSwitch",
    "AnthropicEmbedder",
    "AnthropicModel",
    "BaseEmbedder",
    "BaseGraph",
    "BaseSwitch",
    "BrainstormingGraph",
    "CustomNode",
    "DynamicAgent",
    "Edge",
    "Factory",
    "FieldModality",
    "FieldSpec",
    "FileSystemRetriever",
    "GeminiModel",
    "GeneratorVerifierGraph",
    "Graph",
    "HistoryMemory",
    "HookManager",
    "HookStage",
    "HorizontalGraph",
    "HubGraph",
    "HumanChat",
    "HumanChatVisual",
    "HumanFileEdit",
    "HumanFileEditVisual",
    "HybridEmbedder",
    "ImageAsset",
    "InstructorAssistantGraph",
    "JsonMessageFormatter",
    "LegacyOpenAIModel",
    "LegacyVibeGraph",
    "LenientJsonMessageFormatter",
    "LogicSwitch",
    "Loop",
    "MarkdownMessageFormatter",
    "Memory",
    "MeshGraph",
    "MessageFormatter",
    "Model",
    "Node",
    "NodeTemplate",
    "OpenAIEmbedder",
    "OpenAIModel",
    "ParagraphMessageFormatter",
    "PdfAsset",
    "PingPongGraph",
    "Retrieval",
    "RootGraph",
    "SentenceTransformerEmbedder",
    "Shared",
    "SimpleEmbedder",
    "SimpleKeywordRetriever",
    "SingleAgent",
    "Skill",
    "SkillSet",
    "TaggedFieldMessageFormatter",
    "TwinsFieldTextFormatter",
    "Unsupported",
    "VectorMemory",
    "VectorRetriever",
    "VerticalDecisionGraph",
    "VerticalGraph",
    "VerticalSolverFirstDecisionGraph",
    "VibeGraph",
    "load_skill",
    "load_skills",
    "masf_hook",
    "template_defaults",
    "template_defaults_for",
    "template_overrides",
    "template_overrides_for",
]

elsewhere.install()
_DESIGNS = "VibeGraph designs AML by one model, and keeps it in build_cache_path."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "AdjacencyListGraph": "Declare the edges, or use AdjacencyMatrixGraph.",
        "VibeWorkflow": _DESIGNS,
    },
)

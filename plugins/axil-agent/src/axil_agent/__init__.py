"""Agents for axil: observe, think, act. No model's SDK is imported here."""

from __future__ import annotations

from axil_agent.agent import Agent, DynamicAgent
from axil_agent.cached import Cached
from axil_agent.context import ContextPolicy
from axil_agent.converse import Stage
from axil_agent.delegate import AgentTool
from axil_agent.errors import PromptError, ReplayMiss, ReplyError, TurnLimit, WiringError
from axil_agent.history import HistoryMemory
from axil_agent.human import HumanFileEdit, HumanNode
from axil_agent.judge import Judge
from axil_agent.measure import measure_text
from axil_agent.models import Chosen, models_through
from axil_agent.nodes import AgentConfig
from axil_agent.prompt import Wiring
from axil_agent.replay import Recorder, Replay
from axil_agent.scripted import Scripted
from axil_agent.single import SingleAgent, ask
from axil_agent.switch import AgentSwitch
from axil_agent.template import Verbatim
from axil_agent.thinking import Reflection, Thinking, converse_with_thinking
from axil_agent.verdict import decided

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentSwitch",
    "AgentTool",
    "Cached",
    "Chosen",
    "ContextPolicy",
    "DynamicAgent",
    "HistoryMemory",
    "HumanFileEdit",
    "HumanNode",
    "Judge",
    "PromptError",
    "Recorder",
    "Reflection",
    "Replay",
    "ReplayMiss",
    "ReplyError",
    "Scripted",
    "SingleAgent",
    "Stage",
    "Thinking",
    "TurnLimit",
    "Verbatim",
    "Wiring",
    "WiringError",
    "ask",
    "converse_with_thinking",
    "decided",
    "measure_text",
    "models_through",
]

"""Agents for axil: observe, think, act. No model's SDK is imported here."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Agents": {
        "agent": "Agent DynamicAgent",
        "context": "ContextPolicy",
        "nodes": "AgentConfig",
        "prompt": "Wiring",
        "single": "SingleAgent ask",
        "stage": "Stage",
        "switch": "AgentSwitch",
        "template": "Verbatim",
        "thinking": "Reflection Thinking converse_with_thinking",
    },
    "People": {
        "human": "HumanFileEdit HumanNode",
    },
    "Models and memories": {
        "cached": "Cached",
        "history": "HistoryMemory",
        "models": "Chosen models_through",
        "replay": "Recorder Replay",
        "scripted": "Scripted",
    },
    "Tools and conditions": {
        "delegate": "AgentTool",
        "judge": "Judge",
        "measure": "measure_text",
        "verdict": "decided",
    },
    "Errors": {
        "errors": "PromptError ReplayMiss ReplyError TurnLimit WiringError",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

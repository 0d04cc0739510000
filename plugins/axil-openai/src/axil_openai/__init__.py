"""OpenAI, and servers that speak as it does, as models and embedders of axil agents.

The SDK is imported by the first call.
"""

from __future__ import annotations

from axil_openai.chat import OpenAIModel
from axil_openai.embedder import OpenAIEmbedder
from axil_openai.profiles import PROFILES, Profile
from axil_openai.realtime import OpenAIRealtimeModel
from axil_openai.responses import OpenAIResponsesModel

__all__ = [
    "PROFILES",
    "OpenAIEmbedder",
    "OpenAIModel",
    "OpenAIRealtimeModel",
    "OpenAIResponsesModel",
    "Profile",
]

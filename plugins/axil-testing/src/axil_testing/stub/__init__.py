"""A model service with scripted replies, on a socket of this machine: for tests of adapters.

    with Stub("chat") as server:
        server.say("Hello.", Act(status=429, headers={"retry-after": "2"}))
        model = OpenAIModel("m", api_key=server.key, base_url=server.url)

It speaks Chat Completions (``chat``), Responses (``responses``), Anthropic's Messages
(``messages``) and Gemini's generateContent (``generate``), and gives embeddings; it takes batches
as OpenAI and Anthropic do. It keeps the requests, and counts connections. ``RealtimeStub`` speaks
OpenAI's Realtime API.
"""

from __future__ import annotations

from axil_testing.stub.act import Act, Call
from axil_testing.stub.batches import Batches
from axil_testing.stub.caching import Front, PromptCache, front, shared_front
from axil_testing.stub.dialects import DIALECTS
from axil_testing.stub.realtime import RealtimeStub, speech
from axil_testing.stub.server import Address, Asked, Stub

__all__ = [
    "DIALECTS",
    "Act",
    "Address",
    "Asked",
    "Batches",
    "Call",
    "Front",
    "PromptCache",
    "RealtimeStub",
    "Stub",
    "front",
    "shared_front",
    "speech",
]

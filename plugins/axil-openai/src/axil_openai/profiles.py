"""Profiles of services that speak as OpenAI does: where they are, and what they take.

One row of data for each. What a service only ignores is not said here; what it refuses is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal

from axil_models import Modality

Form = Literal["strict", "schema", "object", "prompt"]

_ALL: Final[tuple[Form, ...]] = ("strict", "schema", "object", "prompt")
_LOOSE: Final[tuple[Form, ...]] = ("schema", "object", "prompt")
_JSON: Final[tuple[Form, ...]] = ("object", "prompt")
_SEEING: Final[tuple[Modality, ...]] = ("text", "image")
_HEARING: Final[tuple[Modality, ...]] = ("text", "image", "audio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The address of a service, and what it takes."""

    name: str = ""
    title: str = ""
    hosts: tuple[str, ...] = ()
    """Patterns of its hosts: a ``base_url`` at one of them has this profile."""
    place: str = ""
    """Its address; empty: each customer has another one."""
    example: str = ""
    """An address, where each customer has another one."""
    keys: tuple[str, ...] = ()
    """Environment variables of its key; none: it needs no key, or has no usual variable."""
    forms: tuple[Form, ...] = _ALL
    """The forms of structured output that it takes, the firmest first."""
    takes: tuple[Modality, ...] | None = None
    """The modalities that it takes; None: all that the API can carry."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings that have another name there."""
    refused: tuple[str, ...] = ()
    """The fields that are sent unasked elsewhere, and that it refuses."""
    thinking: str = ""
    """The field in which thoughts come."""
    wants_thoughts: bool = False
    """True if it refuses calls of tools without thoughts, be they another model's."""
    caching: Literal["", "automatic", "asked for"] = ""
    """The way to its prompt cache; empty: it has none."""

    @property
    def is_own(self) -> bool:
        """True if it is OpenAI itself, or Azure's."""
        return self.name in ("openai", "azure")


_OPENAI: Final = {"max_tokens": "max_completion_tokens"}

PROFILES: Final[Mapping[str, Profile]] = {
    each.name: each
    for each in (
        Profile(
            name="openai",
            title="OpenAI",
            hosts=("api.openai.com", "*.openai.com"),
            place="https://api.openai.com/v1",
            keys=("OPENAI_API_KEY",),
            renamed=_OPENAI,
            caching="automatic",
        ),
        Profile(
            name="azure",
            title="Azure OpenAI",
            hosts=("*.azure.com",),
            example="https://RESOURCE.openai.azure.com/openai/v1/",
            keys=("AZURE_OPENAI_API_KEY",),
            renamed=_OPENAI,
            caching="automatic",
        ),
        Profile(
            name="gemini",
            title="Gemini API, as OpenAI speaks",
            hosts=("generativelanguage.googleapis.com",),
            place="https://generativelanguage.googleapis.com/v1beta/openai/",
            keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            forms=_LOOSE,
            takes=_HEARING,
            thinking="extra_content",
            wants_thoughts=True,
            caching="automatic",
        ),
        Profile(
            name="vertex",
            title="Gemini on Vertex AI",
            hosts=("aiplatform.googleapis.com", "*-aiplatform.googleapis.com"),
            example="https://aiplatform.googleapis.com/v1/projects/PROJECT/locations/global"
            "/endpoints/openapi",
            forms=_LOOSE,
            takes=_HEARING,
            thinking="extra_content",
            wants_thoughts=True,
            caching="automatic",
        ),
        Profile(
            name="bedrock",
            title="Amazon Bedrock",
            hosts=("bedrock-*.amazonaws.com", "bedrock-*.api.aws"),
            example="https://bedrock-runtime.REGION.amazonaws.com/openai/v1",
            keys=("AWS_BEARER_TOKEN_BEDROCK",),
            forms=("schema", "prompt"),
            takes=_SEEING,
        ),
        Profile(
            name="mistral",
            title="Mistral",
            hosts=("api.mistral.ai",),
            place="https://api.mistral.ai/v1",
            keys=("MISTRAL_API_KEY",),
            takes=_SEEING,
            renamed={"seed": "random_seed", "max_completion_tokens": "max_tokens"},
            refused=("stream_options",),  # it sends the usage without
            thinking="content",
        ),
        Profile(
            name="cohere",
            title="Cohere",
            hosts=("api.cohere.ai", "api.cohere.com"),
            place="https://api.cohere.ai/compatibility/v1",
            keys=("COHERE_API_KEY", "CO_API_KEY"),
            forms=_JSON,
            takes=_SEEING,
        ),
        Profile(
            name="deepseek",
            title="DeepSeek",
            hosts=("api.deepseek.com",),
            place="https://api.deepseek.com",
            keys=("DEEPSEEK_API_KEY",),
            forms=_JSON,
            takes=("text",),
            thinking="reasoning_content",
            wants_thoughts=True,
            caching="automatic",
        ),
        Profile(
            name="qwen",
            title="Qwen (Model Studio)",
            hosts=("dashscope*.aliyuncs.com",),
            place="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            keys=("DASHSCOPE_API_KEY",),
            forms=_LOOSE,
            takes=_HEARING,
            thinking="reasoning_content",
            caching="automatic",
        ),
        Profile(
            name="kimi",
            title="Kimi (Moonshot)",
            hosts=("api.moonshot.ai", "api.moonshot.cn"),
            place="https://api.moonshot.ai/v1",
            keys=("MOONSHOT_API_KEY",),
            forms=_JSON,
            takes=_SEEING,
            thinking="reasoning_content",
            wants_thoughts=True,
            caching="automatic",
        ),
        Profile(
            name="xai",
            title="xAI",
            hosts=("api.x.ai",),
            place="https://api.x.ai/v1",
            keys=("XAI_API_KEY",),
            takes=_SEEING,
            thinking="reasoning_content",
            caching="automatic",
        ),
        Profile(
            name="groq",
            title="Groq",
            hosts=("api.groq.com",),
            place="https://api.groq.com/openai/v1",
            keys=("GROQ_API_KEY",),
            takes=_SEEING,
            thinking="reasoning",
            caching="automatic",
        ),
        Profile(
            name="openrouter",
            title="OpenRouter",
            hosts=("openrouter.ai",),
            place="https://openrouter.ai/api/v1",
            keys=("OPENROUTER_API_KEY",),
            thinking="reasoning_details",
            caching="automatic",
        ),
        Profile(
            name="ollama",
            title="Ollama",
            hosts=("ollama.com",),
            place="http://localhost:11434/v1",
            forms=_LOOSE,
            takes=_SEEING,
            thinking="reasoning",
        ),
        Profile(
            name="vllm",
            title="vLLM",
            place="http://localhost:8000/v1",
            forms=_LOOSE,
            takes=_HEARING,
            thinking="reasoning",
            caching="automatic",
        ),
        Profile(
            name="llama.cpp",
            title="llama.cpp",
            place="http://localhost:8080/v1",
            forms=_LOOSE,
            takes=_HEARING,
            thinking="reasoning_content",
            caching="automatic",
        ),
        Profile(
            name="lmstudio",
            title="LM Studio",
            place="http://localhost:1234/v1",
            forms=("schema", "prompt"),
            takes=_SEEING,
            thinking="reasoning",
        ),
        Profile(
            name="litellm",
            title="LiteLLM proxy",
            place="http://localhost:4000",
            thinking="reasoning_content",
            caching="automatic",
        ),
    )
}
"""Profiles by their names."""

UNKNOWN: Final = Profile()
"""The profile of any other service: all that the API has is tried."""


@lru_cache
def profile_at(host: str) -> Profile:
    """Return the profile of the service at a host.

    >>> profile_at("api.deepseek.com").name, profile_at("localhost").name
    ('deepseek', '')
    """
    for each in PROFILES.values():
        if any(fnmatchcase(host, known) for known in each.hosts):
            return each
    return UNKNOWN

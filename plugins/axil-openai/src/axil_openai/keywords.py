"""Settings of ``axil_openai`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from axil_models import Modality, Prices, Retry
from axil_openai.profiles import Form


class OpenAIEmbedderKeywords(TypedDict, total=False):
    """The settings of ``OpenAIEmbedder``; see ``EmbedderConfig``."""

    headers: Mapping[str, str]
    """Further headers of every request."""

    timeout_seconds: float
    """The longest silence, before a reply and within it."""

    connect_timeout_seconds: float
    """How long a connection may take to be made."""

    retry: Retry | Mapping[str, object]
    """When it is asked again."""

    organization: str | None
    """The organization that pays."""

    project: str | None
    """The project that pays."""

    query: Mapping[str, str]
    """Further query parameters, as api-version."""

    profile: str | None
    """The service: deepseek, mistral, ollama, … It gives the address, the variable of the key, and
    what is sent; without it base_url decides.
    """

    dimensions: int | None
    """The length of the vectors, of models that can shorten them; without it, the model's."""

    batch_size: int
    """How many texts go into one request."""

    model_name: str
    model: str


class OpenAIRealtimeModelKeywords(TypedDict, total=False):
    """The settings of ``OpenAIRealtimeModel``; see ``RealtimeConfig``."""

    headers: Mapping[str, str]
    """Further headers of every request."""

    timeout_seconds: float
    """The longest silence, before a reply and within it."""

    connect_timeout_seconds: float
    """How long a connection may take to be made."""

    retry: Retry | Mapping[str, object]
    """When it is asked again."""

    organization: str | None
    """The organization that pays."""

    project: str | None
    """The project that pays."""

    query: Mapping[str, str]
    """Further query parameters, as api-version."""

    profile: str | None
    """The service: deepseek, mistral, ollama, … It gives the address, the variable of the key, and
    what is sent; without it base_url decides.
    """

    modalities: Sequence[Modality] | None
    """The kinds of input; without it all that the API can carry."""

    prices: Prices | Mapping[str, object] | None
    """The prices of a million tokens: {input, output, cached, cache_write}."""

    voice: str | None
    """The voice: marin, cedar, …"""

    turn_detection: Literal["server_vad", "semantic_vad", "none"]
    """How the end of what a person says is found: by silence, by meaning, or not: then an empty
    chunk on the line says so.
    """

    transcription: str | None
    """The model that writes down what was heard; null: nothing is written down."""

    transcription_prices: Prices | Mapping[str, object] | None
    """Its prices, where the run has no pricing."""

    model_name: str
    model: str
    invoke_settings: Mapping[str, object]


class StreamedModelKeywords(TypedDict, total=False):
    """The settings of ``StreamedModel``; see ``ModelConfig``."""

    headers: Mapping[str, str]
    """Further headers of every request."""

    timeout_seconds: float
    """The longest silence, before a reply and within it."""

    connect_timeout_seconds: float
    """How long a connection may take to be made."""

    retry: Retry | Mapping[str, object]
    """When it is asked again."""

    organization: str | None
    """The organization that pays."""

    project: str | None
    """The project that pays."""

    query: Mapping[str, str]
    """Further query parameters, as api-version."""

    profile: str | None
    """The service: deepseek, mistral, ollama, … It gives the address, the variable of the key, and
    what is sent; without it base_url decides.
    """

    modalities: Sequence[Modality] | None
    """The kinds of input; without it all that the API can carry."""

    prices: Prices | Mapping[str, object] | None
    """The prices of a million tokens: {input, output, cached, cache_write}."""

    structured_output: Literal["auto"] | Form
    """How a reply is held to a schema. strict; schema: not strictly; object: JSON, shown the
    schema; prompt: only shown the schema; auto: the first of these that the service and the schema
    allow; the next one where the service refuses.
    """

    strict_tools: bool
    """Hold arguments of tools to their schemas; all of them become required."""

    model_name: str
    model: str
    invoke_settings: Mapping[str, object]

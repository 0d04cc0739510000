"""Settings of ``axil_anthropic`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from axil_anthropic.model import Form
from axil_models import Modality, Prices, Retry


class AnthropicModelKeywords(TypedDict, total=False):
    """The settings of ``AnthropicModel``; see ``AnthropicConfig``."""

    headers: Mapping[str, str]
    """Further headers of every request."""

    timeout_seconds: float
    """The longest silence, before a reply and within it."""

    connect_timeout_seconds: float
    """How long a connection may take to be made."""

    retry: Retry | Mapping[str, object]
    """When it is asked again."""

    modalities: Sequence[Modality] | None
    """The kinds of input; without it all that the API can carry."""

    prices: Prices | Mapping[str, object] | None
    """The prices of a million tokens: {input, output, cached, cache_write}."""

    structured_output: Form
    """How a reply is held to a schema. schema: by the service; prompt: only shown the schema; auto:
    schema where the service takes it, else prompt.
    """

    prompt_cache: Literal["auto", "off"]
    """auto: where an agent goes on from a request (it has tools, or it has replied before), the
    service is asked to cache what the next one begins with; off: never.
    """

    model_name: str
    model: str
    invoke_settings: Mapping[str, object]

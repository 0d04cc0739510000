"""Settings of ``axil_gemini`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from axil_gemini.model import Form
from axil_models import Modality, Prices, Retry


class GeminiModelKeywords(TypedDict, total=False):
    """The settings of ``GeminiModel``; see ``GeminiConfig``."""

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

    structured_output: Literal["auto"] | Form
    """How a reply is held to a schema. schema: by the service; object: any JSON, shown the schema;
    prompt: only shown it; auto: the first of these that is not refused.
    """

    model_name: str
    model: str
    invoke_settings: Mapping[str, object]

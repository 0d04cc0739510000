"""The page `docs/reference/providers.md`, made of the profiles of services.

Written by `make manifests`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from axil_openai import PROFILES, OpenAIModel, Profile

PAGE = "docs/reference/providers.md"
_TESTS = "../../tests/integration/test_providers.py"
_FORMS = {
    "strict": "strict schema",
    "schema": "schema",
    "object": "JSON object",
    "prompt": "prompt",
}
_SENT = {"text": "text", "image": "images", "file": "PDF", "audio": "audio"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """A service with an adapter of its own."""

    title: str
    model: str
    keys: tuple[str, ...]
    forms: tuple[str, ...]
    takes: tuple[str, ...]
    thinking: str
    caching: str


NATIVE = {
    "openai_responses": Native(
        title="OpenAI, Responses",
        model="{type: openai_responses}",
        keys=("OPENAI_API_KEY",),
        forms=("strict", "schema", "object", "prompt"),
        takes=("text", "image", "file"),
        thinking="items",
        caching="automatic",
    ),
    "anthropic": Native(
        title="Anthropic",
        model="{type: anthropic}",
        keys=("ANTHROPIC_API_KEY",),
        forms=("schema", "prompt"),
        takes=("text", "image", "file"),
        thinking="blocks",
        caching="asked for",
    ),
    "gemini_native": Native(
        title="Gemini API",
        model="{type: gemini}",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        forms=("schema", "object", "prompt"),
        takes=("text", "image", "file", "audio"),
        thinking="parts",
        caching="automatic",
    ),
}
"""Adapters by the names of their cases in the tests."""


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Providers"
    yield ""
    yield "Made of the profiles in `axil_openai.PROFILES`; `make manifests` writes it."
    yield ""
    yield "All take text and tools. *Structured output*: the forms in the order in which"
    yield "`structured_output: auto` tries them, the next one where the service refuses, as it may"
    yield "for some of its models. *Takes*: what is sent; where a model differs, set `modalities`."
    yield "*Thinking*: where thoughts come. Tests ask the kit's stub, which refuses what is not in"
    yield "the row. Bedrock, Cohere and Vertex AI are asked at their endpoints that speak as OpenAI"
    yield "does; what these do not have (Claude on Bedrock), and other services, through a LiteLLM"
    yield "proxy."
    yield ""
    columns = ("provider", "model in a file", "key", "structured output", "takes")
    yield f"| {' | '.join((*columns, 'thinking', 'cache', 'test'))} |"
    yield f"|{'---|' * 8}"
    for name, native in NATIVE.items():
        yield _row(name, native.title, native.model, native)
    for name, profile in PROFILES.items():
        if name == "openai":
            model = "{type: openai}"
        else:
            model = f"{{type: openai, profile: {name}}}"
        title = profile.title if name != "openai" else "OpenAI, Chat Completions"
        yield _row(name, title, model, profile)
    yield ""
    yield "## Addresses"
    yield ""
    yield "A profile gives the address, unless `base_url` does. Those with words in capitals need"
    yield "`base_url`; a token of Vertex lives an hour, and is given as `api_key`."
    yield ""
    yield "| profile | address |"
    yield "|---|---|"
    for name, profile in PROFILES.items():
        yield f"| `{name}` | `{profile.place or profile.example}` |"
    yield ""
    yield "Without `profile`, a `base_url` at one of the hosts of a provider has its profile."


def _row(name: str, title: str, model: str, has: Profile | Native) -> str:
    takes = OpenAIModel.carried if has.takes is None else has.takes
    cells = (
        title,
        f"`{model}`",
        " or ".join(f"`{key}`" for key in has.keys) or "`api_key`, if any",
        ", ".join(_FORMS[form] for form in has.forms),
        ", ".join(_SENT[each] for each in takes),
        f"`{has.thinking}`" if isinstance(has, Profile) and has.thinking else has.thinking,
        has.caching,
        f"[{name}]({_TESTS})",
    )
    return f"| {' | '.join(cells)} |"

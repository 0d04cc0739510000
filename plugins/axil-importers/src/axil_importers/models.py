"""Models and tools of other systems as components of axil."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from axil_importers.draft import Step

_ADAPTERS: Final = {"openai": "openai", "anthropic": "anthropic", "google": "gemini"}
_WORDS: Final = {"gemini": "google", "claude": "anthropic", "gpt": "openai", "vertex": "google"}
_SETTINGS: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "topP": "top_p",
    "max_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "stop": "stop",
}
USUAL_MODEL: Final = "gpt-4.1-mini"
"""The model where the source names none."""
TOOLS: Final[Mapping[str, tuple[str, str, str]]] = {
    "current_time": ("current_time", "", ""),
    "time": ("current_time", "", ""),
    "webscraper": ("read_web_page", "url", "url"),
    "jina_reader": ("read_web_page", "url", "url"),
    "scrape_website": ("read_web_page", "url", "url"),
    "google_search": ("web_search", "query", "query"),
    "tavily_search": ("web_search", "query", "query"),
    "ddgo_search": ("web_search", "query", "query"),
    "duckduckgo_search": ("web_search", "query", "query"),
    "searxng_search": ("web_search", "query", "query"),
    "bing_search": ("web_search", "query", "query"),
    "custom_search": ("web_search", "query", "query"),
    "brave_search": ("web_search", "query", "query"),
    "serp_api": ("web_search", "query", "query"),
    "web_scraper": ("read_web_page", "url", "url"),
    "requests_get": ("http_get", "url", "url"),
    "serpapi": ("web_search", "query", "query"),
    "serper": ("web_search", "query", "query"),
    "web_search": ("web_search", "query", "query"),
    "file_read": ("load_file", "file_path", "path_or_id"),
}
"""Tools of others, by a part of their name: what stands for them, their argument, and its."""


def model_of(provider: str, name: str, step: Step) -> dict[str, Any]:
    """Return a model as a file names it."""
    parts = provider.lower().replace("_", "/").split("/")
    known = next((word for part in reversed(parts) for word in _known(part)), "")
    if known in _ADAPTERS and "azure" not in parts:
        return {"type": _ADAPTERS[known], "name": name or USUAL_MODEL}
    if not name:
        name = USUAL_MODEL
        step.approximate(
            "the source names no model that can be read", f"It is {name} now; name another."
        )
    elif provider:
        step.approximate(
            f"no adapter is known for the model {name} of {provider}",
            "Set base_url of a server with OpenAI's interface, or name another adapter.",
        )
    return {"type": "openai", "name": name}


def _known(part: str) -> list[str]:
    if part in _ADAPTERS:
        return [part]
    return [known for word, known in _WORDS.items() if part.startswith(word)]


def settings_of(given: Mapping[str, Any], step: Step) -> dict[str, Any]:
    """Return the settings of a call that adapters know."""
    known = {
        _SETTINGS[k]: v for k, v in given.items() if k in _SETTINGS and v not in (None, "", [])
    }
    others = [k for k, v in given.items() if k not in _SETTINGS and v not in (None, "", [], {})]
    if others:
        step.approximate(
            f"settings of the model are left out: {', '.join(sorted(others))}",
            "Add what the adapter knows to model_settings.",
        )
    return known


def tool_of(name: str) -> tuple[str, str, str] | None:
    """Return what stands for a tool: the tool, the argument there, and the argument here."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    return next((TOOLS[known] for known in TOOLS if known in plain), None)

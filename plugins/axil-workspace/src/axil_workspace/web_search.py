"""``web_search``: a tool that asks a search service, where the caller allowed the network.

It uses Serper's API, with a key of one's own. For another service, register a tool of the same
parameters, or give a function ``web_search`` with ``--functions``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, cast

import httpx2
from pydantic import Field, field_validator

from axil.plugin import Secret, current_grants, note_own
from axil_workspace.code import permitted
from axil_workspace.errors import FetchFault, LimitExceeded
from axil_workspace.toolset import Tools, ToolsConfig, again

KEY: Final = "SERPER_DEV_API_KEY"
"""The variable that holds the key where the config has none."""
_ADDRESS: Final = "https://google.serper.dev/search"
_MOST: Final = 2_000_000
"""Bytes of an answer."""


class WebSearch(Tools):
    """``web_search``: search the public web by a service."""

    class Config(ToolsConfig, frozen=True):
        """The service, and how much of its answer is shown."""

        api_key: Secret | None = Field(
            default=None,
            description=f"The service's key: {{env: NAME}} or ${{NAME}}; without it ${{{KEY}}}.",
        )
        url: str = Field(default=_ADDRESS, description="The URL of the service.")
        timeout_seconds: int | float = Field(
            default=30,
            gt=0,
            allow_inf_nan=False,
            description="The longest time to wait for an answer.",
        )
        results: int = Field(default=10, ge=1, description="The number of results shown.")

        @field_validator("url")
        @classmethod
        def _is_a_url(cls, given: str) -> str:
            try:
                parts = httpx2.URL(given)
            except httpx2.InvalidURL as error:
                raise ValueError("expected a URL as https://host/path") from error
            if parts.scheme not in ("http", "https") or not parts.host:
                raise ValueError("expected a URL as https://host/path")
            return given

    provides: ClassVar = ("web_search",)

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        self._grants = current_grants()
        if self._is_at_its_makers:
            note_own(f"env:{KEY}")

    @property
    def wants(self) -> tuple[str, ...]:
        """The words that a file asks leave for: the service's host."""
        return (f"net:{self._host}",)

    @property
    def _host(self) -> str:
        """The service's host, as certificates name it."""
        return httpx2.URL(self.config.url).raw_host.decode("ascii").lower().strip("[]")

    @property
    def _is_at_its_makers(self) -> bool:
        return self.config.url == _ADDRESS

    @again("none")
    async def web_search(
        self,
        ctx: Any,
        query: Annotated[str, Field(min_length=1, description="the query")],
        page: Annotated[int, Field(ge=1, description="the number of the page of results")] = 1,
        language: Annotated[str, "the language of the results, like en or zh-cn"] = "en",
        country: Annotated[str, "the country of the search, like us"] = "us",
    ) -> str:
        """Search the web: titles, addresses and excerpts of the pages that are found."""
        host = self._host
        permitted(ctx, f"net:{host}", "ask this host")
        key = self._key()
        wanted = {"q": query, "page": page, "hl": language, "gl": country}
        try:
            async with (
                httpx2.AsyncClient(timeout=self.config.timeout_seconds, trust_env=False) as client,
                client.stream(
                    "POST", self.config.url, json=wanted, headers={"X-API-KEY": key}
                ) as response,
            ):
                data = bytearray()
                async for chunk in response.aiter_bytes(1 << 14):
                    data += chunk
                    if len(data) > _MOST:
                        message = f"{host} sent more than {_MOST} bytes."
                        raise LimitExceeded("AX878", message, "Search again.")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            message = f"{host} cannot be reached: {type(error).__name__}."
            raise FetchFault("AX878", message, "Try again later.") from error
        status = response.status_code
        if status >= 400:
            hint = "Check the key." if status in (401, 403) else "Try again later."
            raise FetchFault("AX878", f"{host} answered with the status {status}.", hint)
        return _shown(_answer(bytes(data), host), self.config.results) or "Nothing was found."

    def _key(self) -> str:
        """Return the key. Raises: FetchFault (AX800): there is none; ConfigError (AX134): the
        variable that the config names is not set.
        """
        given = self.config.api_key
        found = given.resolve(where="api_key").get_secret_value() if given else ""
        grants = self._grants
        # a file that names another service gets no key that it does not name
        if grants is None or self._is_at_its_makers or grants.allows(f"env:{KEY}"):
            found = found or os.environ.get(KEY, "")
        if not found:
            hint = f"Set {KEY} or the tool's api_key: {{env: NAME}}; or go on without searches."
            raise FetchFault("AX800", "web_search has no key for its search service.", hint)
        return found


def _answer(data: bytes, host: str) -> Mapping[str, Any]:
    """Return the answer of a service. Raises: FetchFault (AX878): it is not an answer."""
    try:
        found: Any = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        message = f"{host} sent a reply that is not a JSON object."
        raise FetchFault("AX878", message, "Try again later.")
    return cast("dict[str, Any]", found)


def _shown(answer: Mapping[str, Any], most: int) -> str:
    """Return the results as a model reads them.

    >>> print(_shown({"organic": [{"title": "T", "link": "http://t", "snippet": "s"}]}, 5))
    1. T
       http://t
       s
    """
    parts: list[str] = []
    graph: Any = answer.get("knowledgeGraph")
    if isinstance(graph, dict):
        about = cast("dict[str, Any]", graph)
        parts.append(_lines(about, "title", "type", "description"))
    for number, each in enumerate(_several(answer, "organic")[:most], 1):
        parts.append(f"{number}. " + _lines(each, "title", "link", "snippet", "date"))
    for each in _several(answer, "peopleAlsoAsk")[:most]:
        parts.append("Also asked: " + _lines(each, "question", "snippet", "link"))
    searches = _several(answer, "relatedSearches")
    if related := [str(each["query"]) for each in searches if "query" in each]:
        parts.append(f"Related: {', '.join(related)}")
    return "\n\n".join(parts)


def _several(answer: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects in the answer; whatever else is there is left out."""
    found: Any = answer.get(name)
    given = cast("list[Any]", found if isinstance(found, list) else [])
    return [cast("Mapping[str, Any]", each) for each in given if isinstance(each, dict)]


def _lines(given: Mapping[str, Any], *names: str) -> str:
    return "\n   ".join(str(given[name]) for name in names if given.get(name))

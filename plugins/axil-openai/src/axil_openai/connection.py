"""The way to a service: where it is, with which key, how long to wait, and what its errors mean."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from axil.config import Secret, decode
from axil.errors import ConfigError, Problem
from axil_agent.clients import Clients
from axil_agent.errors import ModelError
from axil_agent.interfaces import Emit
from axil_agent.retries import Retry, Showing, persevere, retry_after_seconds

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

_NO_KEY = "no-key"
_LONGEST = 600
_PASSING = frozenset({"server_error", "internal_error", "overloaded_error", "overloaded", "rate_limit_error", "rate_limit_exceeded"})


class BrokenOff(Exception):
    """The reply ended before its end."""


class ConnectionConfig(BaseModel):
    """Where a service is, and how it is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, description="The model's name, as the service calls it.")
    api_key: Secret | None = Field(None, description="The key: {env: NAME} or ${NAME}; without it OPENAI_API_KEY.")
    base_url: str | None = Field(None, description="Where the service is; without it OPENAI_BASE_URL, else OpenAI.")
    organization: str | None = Field(None, description="The organization that pays.")
    project: str | None = Field(None, description="The project that pays.")
    headers: dict[str, str] = Field(default_factory=dict[str, str], description="Further headers of every request.")
    query: dict[str, str] = Field(default_factory=dict[str, str], description="Further query parameters, as api-version.")
    timeout_seconds: float = Field(600, gt=0, description="The longest silence of the service, before and between parts of a reply.")
    connect_timeout_seconds: float = Field(10, gt=0, description="How long a connection may take to be made.")
    retry: Retry = Field(Retry(), description="When it is asked again.")

    @field_validator("base_url")
    @classmethod
    def _is_a_url(cls, given: str | None) -> str | None:
        if given:
            parts = urlsplit(given)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("expected a URL as https://host/v1")
        return given or None


Config = TypeVar("Config", bound=ConnectionConfig)


def configured(kind: type[Config], name: Any, api_key: Any, base_url: str | None, more: Mapping[str, Any]) -> Config:
    """A config from what a constructor was given. Raises: ConfigError: all that is wrong with it."""
    if isinstance(name, kind):
        return name
    given = dict(more)
    name = name or given.pop("model_name", None) or given.pop("model", None)
    said = {"name": name, "api_key": api_key, "base_url": base_url}
    return decode(kind, {**{key: value for key, value in said.items() if value is not None}, **given}, "axil_openai")


class Connection:
    """Clients for a config, and what the service's errors mean."""

    def __init__(self, config: ConnectionConfig) -> None:
        self.config = config
        self.clients: Clients[AsyncOpenAI] = Clients(self._make, lambda client: client.close())
        self._key = ""

    @property
    def base_url(self) -> str | None:
        """Where the service is; None: where OpenAI is."""
        return self.config.base_url or os.environ.get("OPENAI_BASE_URL") or None

    @property
    def host(self) -> str:
        """The service's host, as it may be shown."""
        return (urlsplit(self.base_url).hostname or "") if self.base_url else "api.openai.com"

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI itself, or Azure's."""
        return self.host == "openai.com" or self.host.endswith((".openai.com", ".azure.com"))

    def _make(self) -> AsyncOpenAI:
        """A client, with retries of its own switched off. Raises: ConfigError (AX134, AX800): there is no key."""
        from openai import AsyncOpenAI, Timeout

        config = self.config
        self._key = self._resolved()
        return AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=self.base_url,
            organization=config.organization,
            project=config.project,
            timeout=Timeout(config.timeout_seconds, connect=config.connect_timeout_seconds),
            max_retries=0,
            default_headers=config.headers or None,
            default_query=dict[str, object](config.query) or None,
        )

    def _resolved(self) -> str:
        if self.config.api_key is not None:
            return self.config.api_key.resolve(where="api_key").get_secret_value()
        found = os.environ.get("OPENAI_API_KEY", "")
        if not found and self.is_openai:
            hint = "Set OPENAI_API_KEY, or give api_key: {env: NAME}."
            raise ConfigError(Problem("AX800", "api_key", f"there is no key for {self.host}.", hint))
        return found

    async def call(self, attempt: Callable[[AsyncOpenAI, Showing], Awaitable[T]], emit: Emit) -> T:
        """What ``attempt`` gives, tried as the config says. Raises: ModelError; ConfigError (AX800)."""
        async with self.clients.lease() as client:
            return await persevere(lambda show: attempt(client, show), self.config.retry, emit, self.told)

    # -- errors

    def told(self, error: Exception) -> ModelError | None:
        """What an exception of a call means; None: it is none of the service's."""
        import openai

        if isinstance(error, ModelError):
            return error
        made: ModelError | None = None
        if isinstance(error, openai.APIStatusError):
            made = self._refused(error)
        elif isinstance(error, openai.APITimeoutError):
            made = ModelError(f"{self.host} was silent for longer than timeout_seconds.", transient=True)
        elif isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            made = ModelError(f"the connection to {self.host} failed: {self._clean(cause) or type(cause).__name__}.", transient=True)
        elif isinstance(error, openai.APIError):
            made = self.failed(error.body if error.body is not None else error.message)
        elif isinstance(error, BrokenOff):
            made = ModelError(f"the reply of {self.host} broke off.", transient=True)
        elif isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
            made = ModelError(f"{self.host} sent what is no JSON.", transient=True)
        elif isinstance(error, UnicodeEncodeError):
            made = ModelError("the request holds text that is not valid Unicode.", transient=False)
        elif type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2"):
            made = ModelError(f"the connection to {self.host} failed: {self._clean(error)}.", transient=True)
        if made is not None and not self._shows_key(error):
            made.__cause__ = error
        return made

    def failed(self, body: Any) -> ModelError:
        """What an error that came in the middle of a reply means."""
        given: Mapping[str, Any] = cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else {"message": str(body)}
        code = given.get("code")
        words = {str(code), str(given.get("type"))}
        status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdigit()) else None
        told = f"{self.host} failed in the middle: {self._clean(given.get('message') or given)}"
        if status is not None and 400 <= status <= 599:
            return ModelError(told, status=status)
        return ModelError(told, transient=bool(words & _PASSING) or words == {"None"})

    def _refused(self, error: Any) -> ModelError:
        status = int(error.status_code)
        headers = cast("Mapping[str, str]", error.response.headers)
        body: Any = error.body
        told = cast("Mapping[str, Any]", body).get("message") if isinstance(body, Mapping) else None
        transient: bool | None = None
        if getattr(error, "code", None) == "insufficient_quota" or headers.get("x-should-retry") == "false":
            transient = False
        return ModelError(
            f"{self.host} answered {status}: {self._clean(told or error.message)}",
            status=status,
            retry_after_seconds=retry_after_seconds(headers),
            transient=transient,
            hint=_HINTS.get(status, ""),
        )

    def _clean(self, given: Any) -> str:
        """A text of the service, without the key and not too long."""
        words = str(given)
        if self._key:
            words = words.replace(self._key, "**********")
        return words if len(words) <= _LONGEST else words[:_LONGEST] + "…"

    def _shows_key(self, error: BaseException | None) -> bool:
        seen = 0
        while error is not None and seen < 10:
            if self._key and self._key in f"{error} {error!r} {getattr(error, 'body', '')}":
                return True
            error, seen = error.__cause__ or error.__context__, seen + 1
        return False


_HINTS = {
    401: "Check the key.",
    403: "Check what the key may do.",
    404: "Check the model's name and base_url.",
}

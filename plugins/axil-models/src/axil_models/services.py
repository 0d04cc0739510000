"""The shared parts of adapters for remote models: address, key, meaning of errors.

No SDK is imported here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, cast
from urllib.parse import urlsplit

from axil import ConfigError, Problem
from axil.plugin import current_grants, keep_secret, note_own
from axil_models.clients import Clients
from axil_models.errors import ModelError
from axil_models.requests import Emit
from axil_models.retries import Retry, Showing, persevere, retry_after_seconds
from axil_models.service_configs import ServiceConfig
from axil_models.service_errors import (
    BrokenOff,
    Malformed,
    ended,
    entry_in,
    error_in,
    is_of_kind,
    is_page,
    said_in,
    wait_in,
)

C = TypeVar("C")
T = TypeVar("T")


_LONGEST = 600
_SHORT_KEY = 8
"""Characters; a shorter key is no secret that a service made."""
_PLAIN_URL = re.compile(r"https://[A-Za-z0-9.-]+(?::443)?(?:/[A-Za-z0-9._~/-]*)?\Z")
_TRANSIENT = frozenset(
    {
        *("server_error", "internal_error", "api_error"),
        *("overloaded", "overloaded_error", "rate_limit_error", "rate_limit_exceeded"),
        *("rate_limited", "rate_limit_reached_error", "engine_overloaded_error"),
    }
)
_POOR = frozenset({"insufficient_quota", "exceeded_current_quota_error"})
"""Codes and types of errors that say that there is no money left."""
_WEB_PAGE = "It is the address of an API: it often ends in /v1."


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """The defaults of a service for settings that a config leaves out."""

    host: str
    """The address at which its maker serves it."""
    keys: tuple[str, ...]
    """Environment variables of the key; the first that is set counts."""
    url: str = ""
    """The environment variable of its address."""
    place: str = ""
    """Its address, where the SDK is another maker's: then no host but this one is its maker's."""


class Service(Generic[C]):
    """The way to a service: clients, keys, errors."""

    def __init__(
        self,
        config: ServiceConfig,
        usual: Usual,
        make: Callable[[str], C],
        close: Callable[[C], Awaitable[None]],
        meaning: Callable[[Exception], ModelError | None],
    ) -> None:
        """Store the settings; the first call connects.

        Args:
            make: makes a client with a key, empty where none is needed; called in a thread.
            meaning: the error that an error of the SDK means; None: it is not one of its errors.
        Raises: ConfigError: a file names a key that it may not read.
        """
        self.config, self.usual = config, usual
        self._grants = current_grants()
        if (key := config.api_key) is not None and not self._is_usual(key.name):
            key.permit("api_key")
        self._note_own()
        self._meaning, self._key = meaning, ""

        def connect() -> C:
            self._key = self._resolved()
            return make(self._key)

        self.clients: Clients[C] = Clients(connect, close)

    @property
    def base_url(self) -> str | None:
        """The address of the service; None: its maker's."""
        return self.config.base_url or os.environ.get(self.usual.url) or self.usual.place or None

    @property
    def is_of_a_file(self) -> bool:
        """True if a workflow file chose the address: nothing of the environment is sent there."""
        return self._grants is not None and self.config.base_url is not None

    def explicit(self, client: C, **values: object) -> C:
        """Return a client of the SDK; where a file chose the address, or it is not for this SDK's
        maker, with ``values`` instead of what the SDK finds in the environment.

        Raises: AttributeError: this version of the SDK has none of that name.
        """
        for name, value in values.items() if self.is_of_a_file or self.usual.place else ():
            getattr(client, name)
            setattr(client, name, value)
        return client

    @property
    def account(self) -> str:
        """The name of the account: the variable of its key, or of a key given as a text a digest;
        empty: the usual one.
        """
        if (key := self.config.api_key) is None or key.name:
            return "" if key is None else key.name
        return hashlib.sha256(key.resolve().get_secret_value().encode()).hexdigest()[:16]

    @property
    def host(self) -> str:
        """The service's host, as it may be shown."""
        return (urlsplit(self.base_url).hostname or "") if self.base_url else self.usual.host

    @property
    def address(self) -> str:
        """The service's host, with its port where one is given."""
        try:
            port = urlsplit(self.base_url).port if self.base_url else None
        except ValueError:  # it is no number; the client says so
            port = None
        return f"{self.host}:{port}" if port else self.host

    @property
    def _shown_url(self) -> str:
        """The address with its path, and without names, passwords and parameters."""
        if not self.base_url:
            return "its usual place"
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{self.address}{parts.path}"

    @property
    def _key_setting(self) -> str:
        """The setting of the key, for messages."""
        if (key := self.config.api_key) is not None:
            return f"api_key ({{env: {key.name}}})" if key.name else "api_key"
        names = self.usual.keys
        name = next((n for n in names if os.environ.get(n)), names[0] if names else "")
        return f"the variable {name}, or api_key" if name else "api_key"

    def _hint(self, status: int) -> str:
        if status == 401:
            return f"Check the key: {self._key_setting}."
        if status == 403:
            return f"Check what the key may do: {self._key_setting}."
        if status == 404:
            return f'Check name ("{self.config.name}") and base_url ({self._shown_url}).'
        if status == 429:
            return "Wait and resume the run; more retry.max_tries wait by themselves."
        return ""

    @property
    def is_at_its_makers(self) -> bool:
        """True if the service is its maker's, rather than another host with the same API."""
        if self.usual.place or not self.usual.host:
            return bool(self.usual.host) and self.host == self.usual.host
        domain = ".".join(self.usual.host.split(".")[-2:])
        return self.host == self.usual.host or self.host.endswith(f".{domain}")

    def _note_own(self) -> None:
        """Note what a file does without leave: asking the maker's host, with the maker's key."""
        if not self.config.base_url:
            note_own(f"net:{self.host}")
        key = self.config.api_key
        for name in self.usual.keys[:1] if key is None else (key.name,):
            if self._is_usual(name):
                note_own(f"env:{name}")

    def _is_usual(self, name: str) -> bool:
        """Return whether a variable holds the maker's key, and its maker gets it, by TLS.

        Host names are compared only where a URL is plain: parsers differ about others.
        """
        url = self.config.base_url
        return name in self.usual.keys and (
            url is None or (self.is_at_its_makers and _PLAIN_URL.match(url) is not None)
        )

    def _resolved(self) -> str:
        if (key := self.config.api_key) is not None:
            permitted = self._is_usual(key.name)
            return key.resolve(where="api_key", permitted=permitted).get_secret_value()
        names = [
            name
            for name in self.usual.keys
            if self._grants is None or self._is_usual(name) or self._grants.allows(f"env:{name}")
        ]
        found = next((value for name in names if (value := os.environ.get(name))), "")
        if not found and self.usual.keys and self.is_at_its_makers:
            hint = f"Set {self.usual.keys[0]}, or give api_key: {{env: NAME}}."
            raise ConfigError(
                Problem("AX800", "api_key", f"there is no key for {self.host}.", hint)
            )
        keep_secret(found)
        return found

    async def call(
        self,
        attempt: Callable[[C, Showing], Awaitable[T]],
        emit: Emit,
        retry: Retry | None = None,
    ) -> T:
        """Return what ``attempt`` gives, tried as ``retry`` says, or without it the config.

        Raises: ModelError (AX660); ConfigError (AX800): there is no key.
        """
        async with self.clients.lease() as client:
            return await persevere(
                lambda show: attempt(client, show),
                retry or self.config.retry,
                emit,
                self.meaning_of,
            )

    def meaning_of(self, error: Exception) -> ModelError | None:
        """Return what an exception of a try means; None: it is not an error of the service."""
        if isinstance(error, ModelError):
            return error
        made = self._meaning(error)
        if made is None:
            made = self._usual_meaning(error)
        if made is not None and not self._shows_key(error):
            made.__cause__ = error
        return made

    def _usual_meaning(self, error: Exception) -> ModelError | None:
        kind = type(error)
        if isinstance(error, BrokenOff):
            return ModelError(f"the reply of {self.address} broke off.", transient=True)
        if isinstance(error, Malformed):
            return ModelError(
                f"the reply of {self.address} has another form than its API.",
                transient=True,
                hint="Check base_url, and that the service has this API.",
            )
        if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
            return ModelError(f"{self.address} sent what is no JSON.", transient=True)
        if isinstance(error, UnicodeEncodeError):
            return ModelError("the request holds text that is not valid Unicode.", transient=False)
        if kind.__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2"):
            return self.silent() if "Timeout" in kind.__name__ else self.unreachable(error)
        return None

    def sdk_meaning(self, sdk: Any, error: Exception) -> ModelError | None:
        """Return what an error of an SDK means that has ``APIStatusError``, ``APITimeoutError``,
        ``APIConnectionError`` and ``APIError``.
        """
        if isinstance(error, sdk.APIStatusError):
            given: Any = error
            body = given.message if given.body is None else given.body
            status = int(given.status_code)
            if status < 400:  # an error in the middle of a stream that began well
                return self.failed(body)
            return self.refused(status, body, given.response.headers)
        if isinstance(error, sdk.APITimeoutError):
            return self.silent()
        if isinstance(error, sdk.APIConnectionError):
            return self.unreachable(error.__cause__ or error)
        if isinstance(error, sdk.APIError):
            body = cast("Any", error).body
            return self.failed(body if body is not None else str(error))
        return None

    def silent(self) -> ModelError:
        """Return the error of a service that was silent for too long."""
        message = f"{self.address} was silent for longer than timeout_seconds."
        return ModelError(message, transient=True)

    def unreachable(self, error: BaseException) -> ModelError:
        """Return the error of a connection that could not be made, or broke."""
        why = self.clean(error).rstrip(".") or type(error).__name__
        hint = "Is the service running there? Check base_url." if self.base_url else ""
        message = f"the connection to {self.address} failed: {why}."
        return ModelError(message, transient=True, hint=hint)

    def checked(self, headers: Mapping[str, str]) -> None:
        """Raises: ModelError (AX660): the answer is a web page; it is not asked for again."""
        if is_page(headers):
            message = f"{self.address} sent a web page, and no reply of a model."
            hint = f"Check base_url ({self._shown_url}). {_WEB_PAGE}"
            raise ModelError(message, transient=False, hint=hint)

    async def whole_of(self, response: Any) -> Mapping[str, Any] | None:
        """Return the reply of a service that answers in one piece where a stream was asked for;
        None: it is a stream.

        Raises: ModelError: it is an error; Malformed: it is no reply.
        """
        self.checked(response.headers)
        if not is_of_kind(response.headers, "application/json"):
            return None
        body = json.loads(await response.aread())
        if not isinstance(body, Mapping):
            raise Malformed("the reply is no object")
        whole = cast("Mapping[str, Any]", body)
        if whole.get("error") or whole.get("object") == "error":
            raise self.failed(whole)
        return whole

    def refused(self, status: int, body: object, headers: Mapping[str, str] | None) -> ModelError:
        """Return the error of an answer with an error's status and this body."""
        error, transient = error_in(body), None
        no_money = not _POOR.isdisjoint(str(entry_in(error, key)) for key in ("code", "type"))
        if no_money or (headers is not None and headers.get("x-should-retry") == "false"):
            transient = False
        page = headers is not None and is_page(headers)
        said = "a web page." if page else ended(self.clean(said_in(error)))
        wait = retry_after_seconds(headers)
        return ModelError(
            f"{self.address} answered {status}: {said}",
            status=status,
            retry_after_seconds=wait_in(error) if wait is None else wait,
            transient=transient,
            hint=self._hint(status) or (f"Check base_url. {_WEB_PAGE}" if page else ""),
        )

    def failed(self, body: object) -> ModelError:
        """Return the error of a reply that failed in the middle; ``body``: what the service sent,
        with ``message``, ``type``, ``code``.
        """
        error = error_in(body)
        code = str(entry_in(error, "code"))
        words = {code, str(entry_in(error, "type"))}
        message = f"{self.address} failed in the middle: {ended(self.clean(said_in(error)))}"
        if code.isdigit() and 400 <= int(code) <= 599:
            return ModelError(message, status=int(code))
        return ModelError(message, transient=bool(words & _TRANSIENT) or words == {"None"})

    @property
    def _whole_key(self) -> re.Pattern[str]:
        """The key where it stands as a word: a short one may be part of any other."""
        key = re.escape(self._key)
        return re.compile(key if len(self._key) >= _SHORT_KEY else rf"(?<!\w){key}(?!\w)")

    def clean(self, given: object) -> str:
        """Return a text of the service, without the key and not too long."""
        words = str(given)
        if self._key:
            words = self._whole_key.sub("**********", words)
        return words if len(words) <= _LONGEST else words[:_LONGEST] + "…"

    def _shows_key(self, error: BaseException | None) -> bool:
        """Return whether an error, or what caused it, repeats the key."""
        seen = 0
        while error is not None and seen < 10 and self._key:
            if self._whole_key.search(f"{error} {error!r} {vars(error)!r}"):
                return True
            error, seen = error.__cause__ or error.__context__, seen + 1
        return False


class Remote:
    """The base of models and embedders that call a ``service``."""

    service: Any
    """A ``Service``, of whatever kind the adapter has."""

    @property
    def name(self) -> str:
        """The name under which the service knows it, and by which prices are found."""
        return str(self.service.config.name)

    async def __aenter__(self) -> Self:
        self.service.clients.hold()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.service.clients.let_go()

    async def close(self) -> None:
        """Close the connections of this event loop; the next call opens new ones."""
        await self.service.clients.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.service.config.name!r}, host={self.service.host!r})"

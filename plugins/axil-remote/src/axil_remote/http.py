"""``http``: one HTTP request, made of fields, to a host that the settings name."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from axil import Context
from axil.plugin import Effects, NetAddress, Secret, decode_config, render
from axil_models import ToolError
from axil_remote.sending import (
    certificates,
    media_of,
    quote_all,
    read_text,
    refuse_redirect,
    unanswered,
)

if TYPE_CHECKING:
    import httpx2

    from axil_remote.keywords import HttpKeywords

_PLACE: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_SHOWN: Final = 2_000
_EFFECTS: Final[Mapping[str, Effects]] = {
    "GET": "none",
    "HEAD": "none",
    "PUT": "idempotent",
    "DELETE": "idempotent",
}
_HEADERS: Final = {"Accept": "application/json, */*;q=0.5", "Accept-Encoding": "identity"}


class HttpConfig(BaseModel):
    """A request, and the fields that get its answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = Field(
        "GET", description="The method."
    )
    url: NetAddress = Field(
        min_length=1,
        description="The address; behind the host with places, {field} or {field.name.0}.",
    )
    query: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="Parameters of the address, with places."
    )
    headers: dict[str, str] = Field(
        default_factory=dict[str, str], description="Headers that are no secrets, with places."
    )
    secrets: dict[str, Secret] = Field(
        default_factory=dict[str, Secret], description="Headers that are secrets."
    )
    body: Any = Field(
        None,
        description="The body; its texts may hold places; a text of one place is its value.",
    )
    send: Literal["json", "form", "text"] = Field("json", description="How the body is written.")
    field: str = Field("answer", min_length=1, description="The field that gets the answer.")
    status: str = Field(
        "", description="The field that gets the status; then 400 and above are no errors."
    )
    parse: bool = Field(True, description="Read an answer in JSON; else it is a text.")
    effects: Effects | None = Field(
        None, description="The effects of sending it again; else those of its method."
    )
    timeout_seconds: float = Field(
        60.0, gt=0, allow_inf_nan=False, description="The longest time to wait for the answer."
    )
    max_response_bytes: int = Field(4_000_000, ge=1, description="The longest answer that is read.")

    @model_validator(mode="after")
    def _has_a_host(self) -> HttpConfig:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the url does not begin with http:// or https:// and a host")
        if set("{}@\\") & set(parts.netloc):
            raise ValueError("the url has a place, a user or a backslash where its host is")
        if self.send == "form" and not isinstance(self.body, Mapping | None):
            raise ValueError("the body of a form is not a mapping")
        return self


class Http:
    """``http``: sends a request, and gives the answer as a field."""

    examples = ({"method": "POST", "url": "https://example.org/x", "body": {"q": "{topic}"}},)
    kit_excuse = "it asks a server; the tests of axil-remote give it one"

    Config = HttpConfig

    def __init__(self, config: HttpConfig | None = None, **settings: Unpack[HttpKeywords]) -> None:
        """``settings``: those of ``HttpConfig``. Raises: ConfigError."""
        self.config = config or decode_config(HttpConfig, settings, "Http")

    async def run(
        self, inputs: dict[str, Any], attributes: dict[str, Any], ctx: Context
    ) -> dict[str, Any]:
        """Raises: ToolError (AX984): there is no answer, or it is an error, a redirection or too
        long.
        """
        config, fields = self.config, {**attributes, **inputs}
        url = self._url(fields)
        request = {"method": config.method, "url": url, "body": _filled(config.body, fields)}

        async def call() -> dict[str, Any]:
            return await self._sent(request, fields)

        effects: Effects = config.effects or _EFFECTS.get(config.method, "external")
        said = await ctx.step("http", call, request=request, effects=effects)
        if not isinstance(said, Mapping) or "status" not in said:
            text = render(cast("object", said))  # a person has said what came of it
            said = {"status": 200, "text": text}
        given = cast("Mapping[str, Any]", said)
        answer: Any = given["text"]
        if config.parse:
            try:
                answer = json.loads(answer)
            except ValueError:
                answer = given["text"]
        made = {config.field: answer}
        return {**made, config.status: given["status"]} if config.status else made

    def _url(self, fields: Mapping[str, Any]) -> str:
        def placed(found: re.Match[str]) -> str:
            text = render(_found(fields, found[1])) if found[1] is not None else found[0][:1]
            if text in ("", ".", "..") and found[1] is not None:
                message = f'the place {found[0]} of the address is "{text}".'
                raise ToolError("AX984", message, "Give the field a value.")
            return quote_all(text)

        config = self.config
        url = _PLACE.sub(placed, config.url)
        query = {key: _filled(each, fields) for key, each in config.query.items()}
        more = "&".join(f"{quote_all(k)}={quote_all(render(v))}" for k, v in query.items())
        url, sign, fragment = url.partition("#")
        return f"{url}{('&' if '?' in url else '?') + more if more else ''}{sign}{fragment}"

    def _headers(self, fields: Mapping[str, Any]) -> dict[str, str]:
        config, headers = self.config, dict(_HEADERS)
        if config.send == "json" and config.body is not None:
            headers["Content-Type"] = "application/json"
        for name, each in config.headers.items():
            text = str(_filled(each, fields, is_text=True))
            if any(sign < " " for sign in text):
                message = f"the header {name} has characters that no header can have."
                raise ToolError("AX984", message, "Correct the field that it is made of.")
            headers[name] = text.encode("utf-8").decode("latin-1")
        for name, secret in config.secrets.items():
            headers[name] = secret.resolve(None, f"http, secrets {name}").get_secret_value()
        return headers

    async def _sent(self, request: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        import httpx2

        config = self.config
        place = f"{config.method} {config.url.partition('?')[0]}"
        try:
            async with (
                httpx2.AsyncClient(timeout=config.timeout_seconds, verify=certificates()) as client,
                client.stream(
                    config.method,
                    request["url"],
                    headers=self._headers(fields),
                    **_content(config.send, request["body"]),
                ) as response,
            ):
                return await self._answer(response, place)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise unanswered(error, place, config.timeout_seconds) from error

    async def _answer(self, response: httpx2.Response, place: str) -> dict[str, Any]:
        text, data = await read_text(response, place, self.config.max_response_bytes)
        refuse_redirect(response, place)
        if response.status_code >= 400 and not self.config.status:
            said = text[:_SHOWN] or response.reason_phrase
            message = f"{place} answered {response.status_code}: {said}"
            raise ToolError("AX984", message, "Name a field in status, to go on after errors.")
        if data and not text:
            text = f"[{len(data)} bytes of {media_of(response)[:100]}]"
        return {"status": response.status_code, "text": text}


def _content(way: str, body: Any) -> dict[str, Any]:
    if body is None:
        return {}
    if way == "form":
        return {"data": {k: render(v) for k, v in cast("Mapping[str, Any]", body).items()}}
    text = json.dumps(body, ensure_ascii=False) if way == "json" else render(body)
    return {"content": text.encode()}


def _filled(given: Any, fields: Mapping[str, Any], *, is_text: bool = False) -> Any:
    """Return data with the values of fields in the places of its texts."""
    if isinstance(given, str):
        whole = _PLACE.fullmatch(given)
        if whole and whole[1] is not None and not is_text:
            return _found(fields, whole[1])
        return _PLACE.sub(
            lambda each: each[0][:1] if each[1] is None else render(_found(fields, each[1])), given
        )
    if isinstance(given, Mapping):
        items = cast("Mapping[str, Any]", given).items()
        return {key: _filled(each, fields) for key, each in items}
    if isinstance(given, list):
        return [_filled(each, fields) for each in cast("list[Any]", given)]
    return given


def _found(fields: Mapping[str, Any], path: str) -> Any:
    """Return what a path leads to, through mappings, lists and JSON texts; else an empty text."""
    value: Any = fields
    for key in path.split("."):
        if isinstance(value, str) and value[:1] in ("{", "["):
            with contextlib.suppress(ValueError):
                value = json.loads(value)
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(key, "")
        elif isinstance(value, list) and key.isdecimal():
            items = cast("list[Any]", value)
            value = items[int(key)] if int(key) < len(items) else ""
        else:
            return ""
    return value

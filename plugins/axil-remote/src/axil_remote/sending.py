"""One call of an operation: arguments as a request, the answer as a tool's result."""

from __future__ import annotations

import functools
import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import quote

import httpx2

from axil_models import Refused, ToolError, audio, file, image
from axil_remote.credentials import Credentials
from axil_remote.document import Operation, Parameter

_JOINED: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "|"}
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/yaml")
_SHOWN_OF_AN_ERROR: Final = 2_000

Pairs = list[tuple[str, str]]


def target(operation: Operation, base: str, given: Mapping[str, Any], more: Credentials) -> str:
    """Return the address of a call. Raises: Refused: an argument cannot be part of one."""
    path, query = operation.path, Pairs()
    for each in operation.parameters:
        if each.argument not in given:
            continue
        value = given[each.argument]
        if each.place == "path":
            text = _simple(each, value, quote_all)
            if text in ("", ".", ".."):
                raise Refused(f'{each.argument}: "{text}" cannot be a part of a path.')
            path = path.replace(f"{{{each.name}}}", text)
        elif each.place == "query":
            query += _pairs(each, value)
    query += [(quote_all(name), quote_all(value)) for name, value in more.query]
    address = base.rstrip("/") + path
    return f"{address}?{'&'.join(f'{name}={value}' for name, value in query)}" if query else address


def headers_of(operation: Operation, given: Mapping[str, Any], more: Credentials) -> dict[str, str]:
    """Return the headers of a call. Raises: Refused: an argument cannot be in one."""
    headers = {"Accept": "application/json, */*;q=0.5", "Accept-Encoding": "identity"}
    cookies = Pairs()
    for each in operation.parameters:
        if each.argument not in given:
            continue
        if each.place == "header":
            text = _simple(each, given[each.argument], str)
            if any(sign < " " for sign in text):
                raise Refused(f"{each.argument}: it has characters that no header can have.")
            headers[each.name] = text.encode("utf-8").decode("latin-1")
        elif each.place == "cookie":
            cookies += _pairs(each, given[each.argument])
    cookies += [(name, quote_all(value)) for name, value in more.cookies]
    if cookies:
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies)
    return {**headers, **more.headers}


def content_of(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a call, as arguments of the HTTP client."""
    body = operation.body
    if body is None or "body" not in given:
        return {}
    value = given["body"]
    typed = {"Content-Type": body.content_type}
    if body.media == "json":
        return {"content": json.dumps(value, ensure_ascii=False).encode(), "headers": typed}
    if body.media == "text":
        return {"content": str(value).encode(), "headers": typed}
    fields = {name: _texts(each) for name, each in cast("Mapping[str, Any]", value).items()}
    if body.media == "form":
        return {"data": fields}
    return {"files": [(name, (None, each)) for name, texts in fields.items() for each in texts]}


@functools.cache
def certificates() -> ssl.SSLContext:
    """Return what the system trusts, read once."""
    return httpx2.create_ssl_context()


def quote_all(text: str) -> str:
    """Return a text as one part of an address."""
    return quote(text, safe="")


def _texts(value: Any) -> list[str]:
    several = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [_text(each) for each in several]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _simple(parameter: Parameter, value: Any, spelt: Any) -> str:
    if parameter.is_json:
        return str(spelt(json.dumps(value, ensure_ascii=False)))
    if isinstance(value, list):
        return ",".join(str(spelt(_text(each))) for each in cast("list[Any]", value))
    if isinstance(value, Mapping):
        sign = "=" if parameter.explode else ","
        items = cast("Mapping[str, Any]", value).items()
        return ",".join(f"{spelt(name)}{sign}{spelt(_text(each))}" for name, each in items)
    return str(spelt(_text(value)))


def _pairs(parameter: Parameter, value: Any) -> Pairs:
    """Return the parts of a query or of cookies, quoted."""
    name = quote_all(parameter.name)
    if parameter.is_json:
        return [(name, quote_all(json.dumps(value, ensure_ascii=False)))]
    if isinstance(value, list):
        texts = [quote_all(_text(each)) for each in cast("list[Any]", value)]
        if parameter.explode:
            return [(name, text) for text in texts]
        return [(name, _JOINED.get(parameter.style, ",").join(texts))]
    if isinstance(value, Mapping):
        items = [(str(key), each) for key, each in cast("Mapping[str, Any]", value).items()]
        if parameter.style == "deepObject":
            return [
                (quote_all(f"{parameter.name}[{key}]"), quote_all(text))
                for key, each in items
                for text in _texts(each)
            ]
        if parameter.explode:
            return [
                (quote_all(key), quote_all(text)) for key, each in items for text in _texts(each)
            ]
        flat = [part for key, each in items for part in (key, _text(each))]
        return [(name, ",".join(map(quote_all, flat)))]
    return [(name, quote_all(_text(value)))]


async def read_text(response: httpx2.Response, place: str, most_bytes: int) -> tuple[str, bytes]:
    """Return an answer as a text, empty if it is none, and as bytes.

    Raises: ToolError (AX984): it is too long, or compressed.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        message = f"{place} answered in {encoding[:40]!r}, which was not asked for."
        raise ToolError("AX984", message, "Ask the service's owner.")
    data = bytearray()
    async for part in response.aiter_raw(1 << 14):
        data += part
        if len(data) > most_bytes:
            message = f"{place} answered with more than {most_bytes} bytes."
            raise ToolError("AX984", message, "Ask for less, or raise max_response_bytes.")
    text = data.decode(response.charset_encoding or "utf-8", "replace")
    return text if _is_text(media_of(response)) else "", bytes(data)


def media_of(response: httpx2.Response) -> str:
    """Return the media type of an answer."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_text(media: str) -> bool:
    return media.startswith(_TEXTS) or media.endswith(("+json", "+xml")) or not media


def refuse_redirect(response: httpx2.Response, place: str) -> None:
    """Raises: ToolError (AX984): the answer is a redirection."""
    if response.is_redirect:
        to = response.headers.get("location", "")
        message = f"{place} redirects to {to[:200]}, which is not followed."
        raise ToolError("AX984", message, "Set url to where the service is.")


def unanswered(error: Exception, place: str, seconds: float) -> ToolError:
    """Return the error of a request without an answer; it says whether it may have arrived."""
    may_be = "It may have been carried out"
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.InvalidURL):
        # the address may hold a key
        message = f"{place} cannot be asked: {type(error).__name__}."
        return ToolError("AX984", message, "Is the service there?")
    if isinstance(error, httpx2.TimeoutException):
        message = f"{place} took longer than {seconds:g} seconds."
        return ToolError(
            "AX984", message, f"{may_be}. Raise timeout_seconds if it may take longer."
        )
    message = f"{place} did not answer: {type(error).__name__}."
    return ToolError("AX984", message, f"{may_be}. Is the service there?")


async def answer_of(
    response: httpx2.Response, place: str, most_bytes: int, most_characters: int
) -> str | dict[str, Any]:
    """Return an answer as a tool's result: a text, an image, a recording or a file.

    Raises: ToolError (AX984): it is an error, a redirection, too long, or compressed.
    """
    text, data = await read_text(response, place, most_bytes)
    refuse_redirect(response, place)
    if response.status_code >= 400:
        said = text[:_SHOWN_OF_AN_ERROR] or response.reason_phrase
        raise ToolError("AX984", f"{place} answered {response.status_code}: {said}")
    if not data:
        return f"[{response.status_code}, without content]"
    media = media_of(response)
    if _is_text(media):
        rest = f"\n[characters 0 to {most_characters} of {len(text)}]"
        return text if len(text) <= most_characters else text[:most_characters] + rest
    return _part(media, data)


def _part(media: str, data: bytes) -> str | dict[str, Any]:
    if media.startswith("image/"):
        return image(data, media_type=media)
    if media.startswith("audio/"):
        return audio(data, media_type=media)
    if media == "application/pdf":
        return file(data, media_type=media)
    return f"[{len(data)} bytes of {media[:100]}]"


def listed(names: Sequence[str]) -> str:
    """Return names for a message, the first of many."""
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")

"""Parts of a request that routes read: its caller, fields of its body, and the page of a list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from starlette.requests import Request

from axil_serve.access import Caller
from axil_serve.errors import BadRequest, NotFound


def caller_of(request: Request) -> Caller:
    """Return the owner of the request's token; the guard has checked it."""
    return cast("Caller", request.state.caller)


async def body_of(request: Request, names: set[str] | None = None) -> dict[str, Any]:
    """Return the body of a request, an object. Raises: BadRequest (AX966).

    ``names``: the fields that it may have; None: any.
    """
    # A page of another origin can send a form without being asked, and no JSON.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadRequest("AX966", "the body is not declared as JSON.", "Send application/json.")
    try:
        found: Any = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadRequest("AX966", "the body is not valid JSON.", "Send a JSON object.") from error
    if not isinstance(found, dict):
        raise BadRequest("AX966", "the body is not a JSON object.", 'Send {"name": value}.')
    body = cast("dict[str, Any]", found)
    if names is not None and (strange := sorted(body.keys() - names)):
        message = f'the body has an unknown field "{strange[0]:.100}".'
        raise BadRequest("AX966", message, f"Available: {', '.join(sorted(names))}.")
    return body


def paths_in(body: Mapping[str, Any], name: str) -> frozenset[tuple[str, ...]] | None:
    """Return the paths of nodes in a body, lists of texts; None: they are not there.

    Raises: BadRequest (AX966).
    """
    found: Any = body.get(name)
    if found is None:
        return None
    paths = cast("list[Any]", found) if isinstance(found, list) else [None]
    if not all(
        isinstance(path, list) and all(isinstance(part, str) for part in cast("list[Any]", path))
        for path in paths
    ):
        message = f'the field "{name}" is not a list of paths.'
        raise BadRequest("AX966", message, "Send lists of the names of nodes.")
    return frozenset(tuple(path) for path in cast("list[list[str]]", paths))


def text_in(body: Mapping[str, Any], name: str) -> str:
    """Return a text of a body; empty: it is not there. Raises: BadRequest (AX966)."""
    found = body.get(name, "")
    if not isinstance(found, str):
        raise BadRequest("AX966", f"{name} is not a text.", "Send a text.")
    try:
        found.encode()
    except UnicodeEncodeError:
        raise BadRequest("AX966", f"{name} holds half a character.", "Send all of it.") from None
    return found


def fields_in(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object of a body; empty: it is not there. Raises: BadRequest (AX966)."""
    found: Any = body.get(name)
    found = {} if found is None else found
    if not isinstance(found, dict):
        raise BadRequest("AX966", f"{name} is not an object.", 'Send {"name": value}.')
    return cast("dict[str, Any]", found)


def page_of(items: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of a list as OpenAI's clients read it.

    Args:
        items: the first one first, each with an ``id``.
        query: ``order`` (``desc`` unless ``asc``), ``after``, the id of an item, and ``limit``.
    Raises: BadRequest (AX966); NotFound (AX965): there is no such item.
    """
    order, after, ids = query.get("order", "desc"), query.get("after", ""), list[Any]()
    if order not in ("asc", "desc"):
        raise BadRequest("AX966", 'expected "asc" or "desc".', where="order")
    listed = list(items) if order == "asc" else list(items)[::-1]
    if after:
        ids = [each["id"] for each in listed]
        if after not in ids:
            raise NotFound("AX965", "the list has no such item.", where="after")
        listed = listed[ids.index(after) + 1 :]
    page = listed[: number_in(query.get("limit", "10000")) or 1]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(page) < len(listed),
    }


def flag_in(body: Mapping[str, Any], name: str) -> bool:
    found = body.get(name, False)
    if not isinstance(found, bool):
        raise BadRequest("AX966", f"{name} is neither true nor false.", "Send one of them.")
    return found


def texts_in(body: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts of a body. Raises: BadRequest (AX966)."""
    found: Any = body.get(name)
    found = [] if found is None else found
    if isinstance(found, list) and all(isinstance(e, str) for e in cast("list[Any]", found)):
        return cast("list[str]", found)
    raise BadRequest("AX966", f"{name} is not a list of texts.", 'Send ["…"].')


def number_in(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadRequest("AX966", f'expected a number, found "{text:.20}".', "Send digits.")
    return int(text)


__all__ = [
    "body_of",
    "caller_of",
    "fields_in",
    "flag_in",
    "number_in",
    "page_of",
    "paths_in",
    "text_in",
    "texts_in",
]

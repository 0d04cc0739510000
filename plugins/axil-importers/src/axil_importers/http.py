"""Requests of other systems as nodes ``http``; values of secrets are not written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

from axil_importers.draft import Draft, Step, literal
from axil_importers.values import Written

_SECRET: Final = re.compile(r"auth|key|token|cookie|secret|passw|signature|appid", re.I)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
Pairs = Iterable[tuple[str, Written | dict[str, Any]]]


@dataclass(slots=True, kw_only=True)
class Request:
    """One request: its texts have places, as those of ``assign``."""

    method: str
    url: str
    query: Pairs = ()
    headers: Pairs = ()
    body: Any = None
    """A value as ``assign`` has it."""
    send: Literal["json", "form", "text"] = "json"
    secrets: list[str] = field(default_factory=list[str])
    """Headers whose values the source keeps elsewhere."""
    status: str = ""
    """The field of the status."""
    parse: bool = True


def can_be_sent(given: Request) -> bool:
    """Return whether the node ``http`` can send it: the host is known, and the method."""
    try:
        parts = urlsplit(given.url)
    except ValueError:
        return False
    is_known = parts.scheme in ("http", "https") and bool(parts.hostname)
    return is_known and not set("{}@\\") & set(parts.netloc) and given.method in _METHODS


def request(draft: Draft, step: Step, name: str, into: str, given: Request) -> None:
    """Add a node ``http``, which writes the field ``into``."""
    secrets = {each: _variable(name, each) for each in given.secrets}
    headers: dict[str, str] = {}
    for key, value in given.headers:
        text = _template(value)
        if _SECRET.search(key):
            secrets[key] = _variable(name, key)
        elif isinstance(text, str):
            headers[key] = text
    url, lost = _without_secrets(given.url)
    query: dict[str, Any] = {}
    for key, value in given.query:
        made = _template(value)
        if _SECRET.search(key) and not (isinstance(made, str) and "{" in made):
            lost.append(key)
        else:
            query[key] = made
    config: dict[str, Any] = {"method": given.method, "url": url}
    if query:
        config["query"] = query
    if headers:
        config["headers"] = headers
    if secrets:
        config["secrets"] = secrets
        names = ", ".join(each["env"] for each in secrets.values())
        step.approximate(
            f"values of {', '.join(secrets)} are secrets, and were not written",
            f"Set {names}, and allow env:NAME for each; or take the header out of secrets.",
        )
    if lost:
        step.approximate(
            f"the parameters {', '.join(lost)} may be secrets, and were not written",
            "Send them as a header in secrets, or write them into query.",
        )
    if given.body is not None:
        config |= {"body": _template(given.body), "send": given.send}
    config["field"] = into
    if given.status:
        config["status"] = given.status
    if not given.parse:
        config["parse"] = False
    draft.node(name, "http", config, [into, *([given.status] if given.status else [])])
    step.became = f"http {name} (needs --allow net:{urlsplit(url).hostname})"


def _variable(name: str, header: str) -> dict[str, str]:
    named = re.sub(r"[^A-Za-z0-9]+", "_", f"{name}_{header}").strip("_").upper()
    return {"env": f"N_{named}" if named[:1].isdigit() else named}


def _without_secrets(url: str) -> tuple[str, list[str]]:
    """Return the address without parameters that may be secrets, and their names."""
    base, sign, rest = url.partition("?")
    kept: list[str] = []
    lost: list[str] = []
    for each in rest.split("&") if sign else []:
        key, _, value = each.partition("=")
        if _SECRET.search(key) and value and "{" not in value:
            lost.append(key)
        else:
            kept.append(each)
    return base + ("?" + "&".join(kept) if kept else ""), lost


def _template(given: Any) -> Any:
    """Return a value of ``assign`` as data with places, as ``http`` takes it."""
    if isinstance(given, str):
        return given
    said = cast("Mapping[str, Any]", given)
    if said.get("path"):
        return "{" + str(said["path"]) + "}"
    if "object" in said:
        return {key: _template(each) for key, each in said["object"].items()}
    return _plain(said.get("value"))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    return value

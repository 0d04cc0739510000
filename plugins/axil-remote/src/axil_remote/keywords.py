"""Settings of ``axil_remote`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from axil.plugin import Effects, NetAddress, ReadPath, Secret


class A2ANodeKeywords(TypedDict, total=False):
    """The settings of ``A2ANode``; see ``A2AConfig``."""

    url: NetAddress
    """The address below which it has its agent card."""

    token: Secret | str | Mapping[str, str] | None
    """A bearer token."""

    headers: Mapping[str, Secret | str | Mapping[str, str]]
    """Headers of each request."""

    effects: Effects
    """The effect of sending a message again, after a run broke off."""

    timeout_seconds: float
    """The longest time to wait for an answer."""


class A2AToolKeywords(TypedDict, total=False):
    """The settings of ``A2ATool``; see ``A2AToolConfig``."""

    url: NetAddress
    """The address below which it has its agent card."""

    token: Secret | str | Mapping[str, str] | None
    """A bearer token."""

    headers: Mapping[str, Secret | str | Mapping[str, str]]
    """Headers of each request."""

    effects: Effects
    """The effect of sending a message again, after a run broke off."""

    timeout_seconds: float
    """The longest time to wait for an answer."""

    name: str
    """The name of the tool."""

    description: str
    """Its purpose, for the model."""


class HttpKeywords(TypedDict, total=False):
    """The settings of ``Http``; see ``HttpConfig``."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
    """The method."""

    url: NetAddress
    """The address; behind the host with places, {field} or {field.name.0}."""

    query: Mapping[str, Any]
    """Parameters of the address, with places."""

    headers: Mapping[str, str]
    """Headers that are no secrets, with places."""

    secrets: Mapping[str, Secret | str | Mapping[str, str]]
    """Headers that are secrets."""

    body: Any
    """The body; its texts may hold places; a text of one place is its value."""

    send: Literal["json", "form", "text"]
    """How the body is written."""

    field: str
    """The field that gets the answer."""

    status: str
    """The field that gets the status; then 400 and above are no errors."""

    parse: bool
    """Read an answer in JSON; else it is a text."""

    effects: Effects | None
    """The effects of sending it again; else those of its method."""

    timeout_seconds: float
    """The longest time to wait for the answer."""

    max_response_bytes: int
    """The longest answer that is read."""


class OpenAPIToolsKeywords(TypedDict, total=False):
    """The settings of ``OpenAPITools``; see ``OpenAPIConfig``."""

    document: ReadPath
    """The file of the OpenAPI document, in JSON or YAML."""

    url: NetAddress
    """The address of the service; empty: the document's first server."""

    allow: Sequence[str]
    """Names or patterns (*, ?, [abc]) of the operations that are offered."""

    deny: Sequence[str]
    """Names or patterns of those that are not; stronger than allow."""

    prefix: str
    """The beginning of the tools' names."""

    auth: Mapping[str, Secret | str | Mapping[str, str]]
    """Secrets by the document's security schemes; of basic: user:password."""

    headers: Mapping[str, Secret | str | Mapping[str, str]]
    """Headers of each request."""

    effects: Mapping[str, Effects]
    """The effects of calling an operation again, by name or pattern; else those of its method."""

    max_tools: int
    """More are an error."""

    timeout_seconds: float
    """The longest time to wait for an answer."""

    max_response_bytes: int
    """The longest answer that is read."""

    max_result_chars: int
    """Characters of a result that reach the model."""

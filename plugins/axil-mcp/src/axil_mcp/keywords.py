"""Settings of ``axil_mcp`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from axil.plugin import Address, Effects, Secret
from axil_mcp.config import LogLevel
from axil_mcp.oauth import OAuthConfig
from axil_models import ModelLike


class ContextConfigKeywords(TypedDict, total=False):
    """The settings of ``ContextConfig``; see ``ContextConfig``."""

    resources: Sequence[str]
    """Addresses or patterns of the listed resources that are read."""

    templates: Sequence[str]
    """Addresses that are read for each query; {query} is its place."""

    prompts: Mapping[str, Mapping[str, str]]
    """Prompts that are asked for, with arguments; {query} is the query's place."""

    label: str
    """What the source is called; empty: mcp: and the server's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    most_read: int
    """Resources that are read for one query."""

    block_chars: int
    """Characters of one block."""

    images: bool
    """Images, sounds and PDF files among resources as parts of blocks; else they are passed over.
    """

    name: str
    """What it is called here."""

    command: Sequence[str]
    """The program and its arguments; no shell is involved."""

    args: Sequence[str]
    """More arguments."""

    env: Mapping[str, Secret | str | Mapping[str, str]]
    """Variables of the program, beside those it needs to start."""

    cwd: str
    """The folder it starts in; empty: the current one."""

    url: Address
    """The address of a server over streamable HTTP."""

    headers: Mapping[str, Secret | str | Mapping[str, str]]
    """Headers of each request."""

    token: Secret | str | Mapping[str, str] | None
    """A bearer token."""

    oauth: OAuthConfig | Mapping[str, object] | None
    """How a token is got with OAuth, instead of one that is known."""

    protocol: Literal["auto", "legacy"]
    """legacy: begin with the handshake of older servers, without asking."""

    connect_timeout_seconds: float
    """For starting, connecting and greeting, retries included."""

    call_timeout_seconds: float
    """For one call; a person's time to answer does not count."""

    retries: int
    """How often connecting is tried again."""

    backoff_seconds: float
    """The wait before the first retry; it doubles."""

    concurrency: int
    """Calls at the same time on one connection."""

    elicitation: bool
    """Whether the server may ask a person, through the run."""

    sampling: Literal["no", "ask", "yes"]
    """Whether the server may use a model of the run: no; ask: a person allows each call, who sees
    what it sends; yes: without asking.
    """

    sampling_model: ModelLike | None
    """The model that it may use: the name of an adapter, or {type: …} with its settings."""

    roots: bool
    """Whether the server may know where the run's workspace is."""

    log_level: LogLevel | None
    """What it logs from this level on is shown; null: nothing is asked for."""

    max_message_bytes: int
    """The longest message that is read from it."""


class ToolsConfigKeywords(TypedDict, total=False):
    """The settings of ``ToolsConfig``; see ``ToolsConfig``."""

    allow: Sequence[str]
    """Names or patterns (*, ?, [abc]) of the tools that are offered."""

    deny: Sequence[str]
    """Names or patterns of those that are not; stronger than allow."""

    expect: str
    """The digest of the tools; another one is refused."""

    description_limit: int
    """Characters of a description that are shown."""

    max_tools: int
    """More are an error."""

    max_result_chars: int
    """Characters of a result that reach the model."""

    effects: Mapping[str, Effects]
    """What calling a tool again may do, by name or pattern; the first that fits, else what the
    server says.
    """

    images: bool
    """Images and sounds of results as parts of the content; else they are named."""

    read_resources: Sequence[str]
    """Addresses or patterns of resources that the model may read, by a tool read_resource; it lists
    them where it is given no address.
    """

    name: str
    """What it is called here."""

    command: Sequence[str]
    """The program and its arguments; no shell is involved."""

    args: Sequence[str]
    """More arguments."""

    env: Mapping[str, Secret | str | Mapping[str, str]]
    """Variables of the program, beside those it needs to start."""

    cwd: str
    """The folder it starts in; empty: the current one."""

    url: Address
    """The address of a server over streamable HTTP."""

    headers: Mapping[str, Secret | str | Mapping[str, str]]
    """Headers of each request."""

    token: Secret | str | Mapping[str, str] | None
    """A bearer token."""

    oauth: OAuthConfig | Mapping[str, object] | None
    """How a token is got with OAuth, instead of one that is known."""

    protocol: Literal["auto", "legacy"]
    """legacy: begin with the handshake of older servers, without asking."""

    connect_timeout_seconds: float
    """For starting, connecting and greeting, retries included."""

    call_timeout_seconds: float
    """For one call; a person's time to answer does not count."""

    retries: int
    """How often connecting is tried again."""

    backoff_seconds: float
    """The wait before the first retry; it doubles."""

    concurrency: int
    """Calls at the same time on one connection."""

    elicitation: bool
    """Whether the server may ask a person, through the run."""

    sampling: Literal["no", "ask", "yes"]
    """Whether the server may use a model of the run: no; ask: a person allows each call, who sees
    what it sends; yes: without asking.
    """

    sampling_model: ModelLike | None
    """The model that it may use: the name of an adapter, or {type: …} with its settings."""

    roots: bool
    """Whether the server may know where the run's workspace is."""

    log_level: LogLevel | None
    """What it logs from this level on is shown; null: nothing is asked for."""

    max_message_bytes: int
    """The longest message that is read from it."""

"""Settings: how a server is reached, what it may do, and what is taken of what it offers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from axil import ConfigError
from axil.plugin import Address, Effects, Secret, decode_config, refers_to
from axil_mcp.addresses import is_plain_uri
from axil_mcp.oauth import OAuthConfig
from axil_models import ModelLike

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class MCPServer(_Settings):
    """The way to reach an MCP server: a program to start, or an address (``url``).

    Made in Python it may be given to several toolsets and providers, which then share its
    connections.
    """

    name: str = Field(
        "mcp",
        pattern=r"^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$",
        max_length=32,
        description="What it is called here.",
    )
    command: tuple[str, ...] = Field(
        (), description="The program and its arguments; no shell is involved."
    )
    args: tuple[str, ...] = Field((), description="More arguments.")
    env: dict[str, Secret] = Field(
        default_factory=dict[str, Secret],
        description="Variables of the program, beside those it needs to start.",
    )
    cwd: str = Field("", description="The folder it starts in; empty: the current one.")
    url: Address = Field(
        "",
        description="The address of a server over streamable HTTP.",
    )
    headers: dict[str, Secret] = Field(
        default_factory=dict[str, Secret], description="Headers of each request."
    )
    token: Secret | None = Field(None, description="A bearer token.")
    oauth: OAuthConfig | None = Field(
        None, description="How a token is got with OAuth, instead of one that is known."
    )
    protocol: Literal["auto", "legacy"] = Field(
        "auto", description="legacy: begin with the handshake of older servers, without asking."
    )
    connect_timeout_seconds: float = Field(
        30.0,
        gt=0,
        allow_inf_nan=False,
        description="For starting, connecting and greeting, retries included.",
    )
    call_timeout_seconds: float = Field(
        120.0,
        gt=0,
        allow_inf_nan=False,
        description="For one call; a person's time to answer does not count.",
    )
    retries: int = Field(2, ge=0, description="How often connecting is tried again.")
    backoff_seconds: float = Field(
        0.2, ge=0, allow_inf_nan=False, description="The wait before the first retry; it doubles."
    )
    concurrency: int = Field(20, ge=1, description="Calls at the same time on one connection.")
    elicitation: bool = Field(
        True, description="Whether the server may ask a person, through the run."
    )
    sampling: Literal["no", "ask", "yes"] = Field(
        "no",
        description="Whether the server may use a model of the run: no; ask: a person allows each "
        "call, who sees what it sends; yes: without asking.",
    )
    sampling_model: ModelLike | None = Field(
        None,
        description="The model that it may use: the name of an adapter, or {type: …} with its "
        "settings.",
        json_schema_extra=refers_to("models"),
    )
    roots: bool = Field(
        False, description="Whether the server may know where the run's workspace is."
    )
    log_level: LogLevel | None = Field(
        "info", description="What it logs from this level on is shown; null: nothing is asked for."
    )
    max_message_bytes: int = Field(
        8_000_000, ge=1024, description="The longest message that is read from it."
    )

    _link: Any = PrivateAttr(None)  # its connections, by event loop

    @field_validator("command", mode="before")
    @classmethod
    def _one_or_more(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _either(self) -> MCPServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either a command or a url")
        if (self.sampling != "no") != (self.sampling_model is not None):
            raise ValueError("sampling and sampling_model have to be given together")
        if self.token is not None and self.oauth is not None:
            raise ValueError("give either a token or oauth")
        if self.command and not self.command[0]:
            raise ValueError("the command is empty")
        if self.url and (
            urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname
        ):
            raise ValueError("the url does not begin with http:// or https:// and a host")
        strangers = ("args", "env", "cwd") if self.url else ("headers", "token", "oauth")
        if any(getattr(self, name) for name in strangers):
            raise ValueError(
                f"{', '.join(strangers)} have no effect "
                f"{'with a url' if self.url else 'with a command'}"
            )
        return self

    @property
    def argv(self) -> list[str]:
        """The program and its arguments."""
        return [*self.command, *self.args]

    @property
    def variables(self) -> frozenset[str]:
        """The variables that its secrets are in."""
        token = () if self.token is None else (self.token,)
        return frozenset(each.name for each in (*self.headers.values(), *self.env.values(), *token))

    @property
    def place(self) -> str:
        """The place of an error about it."""
        return f'MCP server "{self.name}"'


class Offer(_Settings):
    """The tools to use of a server, and how they are shown to models."""

    allow: tuple[str, ...] = Field(
        ("*",), description="Names or patterns (*, ?, [abc]) of the tools that are offered."
    )
    deny: tuple[str, ...] = Field(
        (), description="Names or patterns of those that are not; stronger than allow."
    )
    expect: str = Field(
        "",
        pattern=r"^((sha256:)?[0-9a-f]{64})?$",
        description="The digest of the tools; another one is refused.",
    )
    description_limit: int = Field(
        2000, ge=0, description="Characters of a description that are shown."
    )
    max_tools: int = Field(200, ge=1, description="More are an error.")
    max_result_chars: int = Field(
        100_000, ge=100, description="Characters of a result that reach the model."
    )
    effects: dict[str, Effects] = Field(
        default_factory=dict[str, "Effects"],
        description="What calling a tool again may do, by name or pattern; the first that fits, "
        "else what the server says.",
    )
    images: bool = Field(
        False,
        description="Images and sounds of results as parts of the content; else they are named.",
    )

    read_resources: tuple[str, ...] = Field(
        (),
        description="Addresses or patterns of resources that the model may read, by a tool "
        "read_resource; it lists them where it is given no address.",
    )

    def reads(self, uri: str) -> bool:
        """Return whether the model may read a resource."""
        return is_plain_uri(uri) and _any(self.read_resources, uri)

    def takes(self, tool: str) -> bool:
        """Return whether a tool is offered."""
        return _any(self.allow, tool) and not _any(self.deny, tool)

    def effects_of(self, tool: str, annotations: Mapping[str, object] | None) -> Effects:
        """Return the effect class of a call: what a repeated call may do.

        A server that says a tool only reads, or does no more the second time, is believed: it is
        the server that is called again. One that says nothing is not: after a crash in the middle
        of a call a person is asked.

        >>> offer = Offer(effects={"send_*": "idempotent"})
        >>> [offer.effects_of("send_mail", None), offer.effects_of("look",
        ...     {"read_only_hint": True}), offer.effects_of("look", None)]
        ['idempotent', 'none', 'external']
        """
        data = annotations or {}
        own: Effects = (
            "none"
            if data.get("read_only_hint") is True
            else "idempotent"
            if data.get("idempotent_hint") is True
            else "external"
        )
        named: list[Effects] = [
            effects for pattern, effects in self.effects.items() if fnmatchcase(tool, pattern)
        ]
        return named[0] if named else own


class Shelf(_Settings):
    """The resources and prompts of a server to use as context."""

    resources: tuple[str, ...] = Field(
        ("*",), description="Addresses or patterns of the listed resources that are read."
    )
    templates: tuple[str, ...] = Field(
        (), description="Addresses that are read for each query; {query} is its place."
    )
    prompts: dict[str, dict[str, str]] = Field(
        default_factory=dict[str, "dict[str, str]"],
        description="Prompts that are asked for, with arguments; {query} is the query's place.",
    )
    label: str = Field(
        "", description="What the source is called; empty: mcp: and the server's name."
    )
    passive: bool = Field(True, description="Its blocks go into the prompt.")
    active: bool = Field(False, description="The model may ask it.")
    most_read: int = Field(20, ge=1, description="Resources that are read for one query.")
    block_chars: int = Field(8000, ge=1, description="Characters of one block.")
    images: bool = Field(
        False,
        description="Images, sounds and PDF files among resources as parts of blocks; "
        "else they are passed over.",
    )

    def takes(self, uri: str) -> bool:
        """Return whether a listed resource is read."""
        return is_plain_uri(uri) and _any(self.resources, uri)


class ToolsConfig(MCPServer, Offer):
    """``tools: [{type: mcp, …}]`` of a file."""


class ContextConfig(MCPServer, Shelf):
    """``retrievers: [{type: mcp, …}]`` of a file."""


Part = TypeVar("Part", bound=_Settings)


def split(
    server: MCPServer | None,
    settings: Mapping[str, Any],
    whole: type[MCPServer],
    part: type[Part],
    where: str,
) -> tuple[MCPServer, Part]:
    """Return the server and the part to use, from values given in Python. Raises: ConfigError."""
    if server is None or (isinstance(server, whole) and not settings):
        both = server or decode_config(whole, dict(settings), where)
        return both, cast("Part", both)
    return server, decode_config(part, dict(settings), where)


def secrets_of(given: Mapping[str, Secret], where: str) -> dict[str, str]:
    """Return the values.

    Raises: ConfigError (AX134, AX994): one is not set; all missing ones are named.
    """
    values: dict[str, str] = {}
    problems: list[Any] = []
    for name, secret in given.items():
        try:
            found = secret.resolve(None, f"{where}, {name}", for_run=True)
            values[name] = found.get_secret_value()
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return values


_NEEDED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_NEEDED_WINDOWS = (
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
    "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME",
    "USERPROFILE",
)  # fmt: skip


def environment_of(server: MCPServer) -> dict[str, str]:
    """Return what a program sees of the environment: what it needs, and what its settings name."""
    needed = _NEEDED_WINDOWS if os.name == "nt" else _NEEDED
    # A value that begins so is a function that a shell exported.
    passed = {
        name: value
        for name in needed
        if (value := os.environ.get(name)) is not None and not value.startswith("()")
    }
    return {**passed, **secrets_of(server.env, f"{server.place}, env")}


def _any(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

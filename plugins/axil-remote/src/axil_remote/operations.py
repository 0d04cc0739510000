"""``openapi``: the operations of a service, as an OpenAPI document describes them, as tools.

The document is read when the toolset is made, so what is not understood is known before a run. No
part of it is fetched. Requests go to one address only, and redirections are not followed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from axil import AxilError, ConfigError, Problem
from axil.plugin import (
    BoundedSchema,
    Effects,
    NetAddress,
    ReadPath,
    Secret,
    current_grants,
    decode_config,
    format_names,
)
from axil_files import parse_json, parse_yaml
from axil_models import Refused, Tool, in_thread
from axil_remote.credentials import credentials_of, kind_of, schemes_for
from axil_remote.document import Operation, Unread, checked, operations_of, server_of
from axil_remote.schemas import Unclear
from axil_remote.sending import (
    answer_of,
    certificates,
    content_of,
    headers_of,
    listed,
    target,
    unanswered,
)

if TYPE_CHECKING:
    from axil_remote.keywords import OpenAPIToolsKeywords

_LARGEST: Final = 16_000_000
"""Bytes of a document."""
_EFFECTS: Final[Mapping[str, Effects]] = {
    "GET": "none",
    "HEAD": "none",
    "OPTIONS": "none",
    "PUT": "idempotent",
    "DELETE": "idempotent",
}


class OpenAPIConfig(BaseModel):
    """A service, its operations that are offered, and its secrets."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    document: ReadPath = Field("", description="The file of the OpenAPI document, in JSON or YAML.")
    url: NetAddress = Field(
        "", description="The address of the service; empty: the document's first server."
    )
    allow: tuple[str, ...] = Field(
        ("*",), description="Names or patterns (*, ?, [abc]) of the operations that are offered."
    )
    deny: tuple[str, ...] = Field(
        (), description="Names or patterns of those that are not; stronger than allow."
    )
    prefix: str = Field(
        "", pattern=r"^[A-Za-z0-9_-]{0,32}$", description="The beginning of the tools' names."
    )
    auth: dict[str, Secret] = Field(
        default_factory=dict[str, Secret],
        description="Secrets by the document's security schemes; of basic: user:password.",
    )
    headers: dict[str, Secret] = Field(
        default_factory=dict[str, Secret], description="Headers of each request."
    )
    effects: dict[str, Effects] = Field(
        default_factory=dict[str, "Effects"],
        description="The effects of calling an operation again, by name or pattern; else those of "
        "its method.",
    )
    max_tools: int = Field(100, ge=1, description="More are an error.")
    timeout_seconds: float = Field(
        60.0, gt=0, allow_inf_nan=False, description="The longest time to wait for an answer."
    )
    max_response_bytes: int = Field(4_000_000, ge=1, description="The longest answer that is read.")
    max_result_chars: int = Field(
        50_000, ge=100, description="Characters of a result that reach the model."
    )

    def takes(self, name: str) -> bool:
        """Return whether an operation is offered."""
        return _any(self.allow, name) and not _any(self.deny, name)

    def effects_of(self, operation: Operation) -> Effects:
        """Return what calling an operation again may do."""
        for pattern, effects in self.effects.items():
            if fnmatchcase(operation.name, pattern):
                return effects
        return _EFFECTS.get(operation.method, "external")


class OpenAPITools:
    """The operations of a service: ``OpenAPITools("shop.yaml", allow=["find_*"])``."""

    examples = ({"document": "shop.yaml", "url": "https://shop.example.org/v1"},)
    kit_excuse = "it reads a document; the tests of axil-remote give it one"

    Config = OpenAPIConfig

    def __init__(
        self,
        document: OpenAPIConfig | str | Path | Mapping[str, object],
        /,
        **settings: Unpack[OpenAPIToolsKeywords],
    ) -> None:
        """Read the document.

        Args:
            document: its file, or what it holds.
            settings: those of ``OpenAPIConfig``.
        Raises: ConfigError (AX984): it, or an operation that is offered, is not understood: all of
            them, each with the reason; SpecError: it cannot be read.
        """
        given: Mapping[str, Any] | None = None
        if isinstance(document, OpenAPIConfig):
            self.config = document
        else:
            named: dict[str, Any] = dict(cast("Mapping[str, Any]", settings))
            if isinstance(document, Mapping):
                given = document
            else:
                named["document"] = str(document)
            self.config = decode_config(OpenAPIConfig, named, "OpenAPITools")
        self._place = self.config.document or "the OpenAPI document"
        try:
            self._document = checked(_read(self.config.document) if given is None else given)
        except Unclear as error:
            raise ConfigError(Problem("AX984", self._place, f"{error}.")) from None
        self._url = self._chosen_url()
        self._tools = self._made()

    def _chosen_url(self) -> str:
        url = self.config.url or server_of(self._document)
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            message = "it names no server with an address of its own."
            raise ConfigError(Problem("AX984", self._place, message, "Set url."))
        grants = current_grants()
        if grants is not None and not self.config.url:
            grants.need(f"net:{urlsplit(url).hostname}", where=self._place, later=True)
        return url

    def _made(self) -> list[Tool]:
        problems: list[Problem] = []
        tools: dict[str, Tool] = {}
        known: list[str] = []
        for name in self.config.auth:
            try:
                kind_of(self._document, name)
            except Unclear as error:
                problems.append(Problem("AX984", f"{self._place}, auth", f"{error}."))
        for each in operations_of(self._document):
            known.append(each.name)
            if not self.config.takes(each.name):
                continue
            try:
                if isinstance(each, Unread):
                    raise Unclear(each.reason)
                tool = self._tool(each)
                if tool.name in tools:
                    raise Unclear("two operations have this name")
                tools[tool.name] = tool
            except Unclear as error:
                where = each.place if isinstance(each, Unread) else f"{each.method} {each.path}"
                hint = f'Leave it out: deny: ["{each.name}"].'
                message = f"the operation {each.name} cannot be a tool: {error}."
                problems.append(Problem("AX984", f"{self._place}, {where}", message, hint))
        if not tools and not problems:
            message = f"none of its operations is offered. It has {format_names(known, 20)}."
            problems.append(Problem("AX984", self._place, message, "Correct allow and deny."))
        if len(tools) > self.config.max_tools:
            message = f"it has {len(tools)} operations: {listed(list(tools))}."
            hint = "Choose with allow and deny, or raise max_tools."
            problems.append(Problem("AX984", self._place, message, hint))
        if problems:
            raise ConfigError(problems)
        return list(tools.values())

    def _tool(self, operation: Operation) -> Tool:
        name = f"{self.config.prefix}{operation.name}"
        if len(name) > 64:
            raise Unclear("with the prefix its name has more than 64 characters")
        has_own = bool(self.config.headers)
        schemes = schemes_for(operation, self.config.auth, has_own)
        try:
            schema = BoundedSchema(operation.schema)
        except AxilError as error:
            raise Unclear(str(error).rstrip(".")) from error
        return Tool(
            name=name,
            description=operation.description[:2_000],
            parameters=operation.schema,
            call=functools.partial(self._call, operation, schemes, schema),
            validate=lambda given: ((dict(given),), {}),  # their names need not be Python's
            effects=self.config.effects_of(operation),
        )

    async def tools(self) -> Sequence[Tool]:
        """Return a tool for each operation that is offered."""
        return list(self._tools)

    async def _call(
        self,
        operation: Operation,
        schemes: tuple[str, ...],
        schema: BoundedSchema,
        given: Mapping[str, Any],
    ) -> Any:
        import httpx2

        fault = await in_thread(lambda: schema.first_fault(dict(given)))
        if fault is not None:
            raise Refused(f"{fault.path.removeprefix('$.')}: {fault.message}")
        more = credentials_of(self._document, schemes, self.config.auth, self._place)
        for name, secret in self.config.headers.items():
            where = f"{self._place}, headers"
            more.headers[name] = secret.resolve(None, where).get_secret_value()
        body = content_of(operation, given)
        headers = {**headers_of(operation, given, more), **body.pop("headers", {})}
        place = f"{operation.method} {operation.path}"
        config = self.config
        try:
            async with (
                httpx2.AsyncClient(timeout=config.timeout_seconds, verify=certificates()) as client,
                client.stream(
                    operation.method,
                    target(operation, self._url, given, more),
                    headers=headers,
                    **body,
                ) as response,
            ):
                return await answer_of(
                    response, place, config.max_response_bytes, config.max_result_chars
                )
        except httpx2.HTTPError as error:
            raise unanswered(error, place, config.timeout_seconds) from error


def _read(path: str) -> Any:
    """Return what a file holds. Raises: SpecError: it is no JSON or YAML; ConfigError (AX984)."""
    if not path:
        message, hint = "there is no document.", "Name its file in document."
        raise ConfigError(Problem("AX984", "document", message, hint))
    try:
        with Path(path).open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(Problem("AX984", path, f"it cannot be read: {why}.")) from error
    if len(data) > _LARGEST:
        raise ConfigError(Problem("AX984", path, f"it has more than {_LARGEST} bytes."))
    parse = parse_json if text.lstrip().startswith("{") else parse_yaml
    return parse(text, path).data


def _any(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

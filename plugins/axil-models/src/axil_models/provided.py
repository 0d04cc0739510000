"""``provider_tool``: a tool that a model's provider has: web search, code, files, images, a
computer, MCP servers.

It stands among an agent's tools like any other. Most of them the provider carries out: the model
never calls them here. Two come back: a computer's actions, which a function of yours carries out,
and calls of an MCP server, which a person allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from axil.plugin import Address, Secret, decode_config, format_names, refers_to
from axil_models.errors import ToolError
from axil_models.given import ToolLike
from axil_models.requests import ToolSpec
from axil_models.threads import call_async
from axil_models.tools import Tool

if TYPE_CHECKING:
    from axil_models.keywords import ProviderToolKeywords

ProviderToolKind = Literal[
    "web_search", "code_interpreter", "file_search", "image_generation", "computer", "mcp"
]
PROVIDER_TOOLS: Final[frozenset[str]] = frozenset(
    {"web_search", "code_interpreter", "file_search", "image_generation", "computer", "mcp"}
)
ALLOWED: Final = "allowed"
"""The result of a call of an MCP server that a person allowed: the provider makes it."""
_OWN: Final[Mapping[str, frozenset[str]]] = {
    "web_search": frozenset({"allowed_domains", "blocked_domains", "max_uses"}),
    "code_interpreter": frozenset(),
    "file_search": frozenset({"stores"}),
    "image_generation": frozenset(),
    "computer": frozenset({"act", "width", "height", "approve"}),
    "mcp": frozenset({"name", "url", "token", "allow", "approve"}),
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "file_search": ("stores",),
    "computer": ("act",),
    "mcp": ("name", "url"),
}


class ProviderToolConfig(BaseModel):
    """A tool of a provider."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    kind: ProviderToolKind = Field(description="The tool.")
    allowed_domains: tuple[str, ...] = Field((), description="web_search: only these hosts.")
    blocked_domains: tuple[str, ...] = Field((), description="web_search: not these hosts.")
    max_uses: int | None = Field(None, ge=1, description="web_search: searches of one reply.")
    stores: tuple[str, ...] = Field((), description="file_search: the provider's stores of files.")
    act: ToolLike | None = Field(
        None,
        description="computer: the tool that carries out its actions and gives a picture of the "
        "screen: a function with a parameter actions, or the name of a tool.",
        json_schema_extra=refers_to("tools"),
    )
    width: int = Field(1280, ge=1, description="computer: of the screen, in pixels.")
    height: int = Field(800, ge=1, description="computer: of the screen, in pixels.")
    name: str = Field(
        "", pattern=r"^[A-Za-z0-9_-]{0,64}$", description="mcp: what the server is called."
    )
    url: Address = Field("", description="mcp: the address of the server.")
    token: Secret | None = Field(None, description="mcp: a token that the provider sends to it.")
    allow: tuple[str, ...] = Field((), description="mcp: only these of its tools; empty: all.")
    approve: Literal["always", "never"] = Field(
        "always", description="computer, mcp: whether a person allows each call."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description=(
            "Further fields of the provider's own description of the tool, as they are sent."
        ),
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> ProviderToolConfig:
        given = self.model_fields_set - {"kind", "settings"}
        if strange := sorted(given - _OWN[self.kind]):
            raise ValueError(f"{self.kind} has no {format_names(strange)}")
        missing = [name for name in _NEEDED.get(self.kind, ()) if not getattr(self, name)]
        if missing:
            raise ValueError(f"{self.kind} needs {format_names(missing)}")
        if self.kind == "mcp" and urlsplit(self.url).scheme != "https":
            raise ValueError("the url does not begin with https://")
        return self


class ProviderTool:
    """``provider_tool``: ``Agent(model, tools=[ProviderTool("web_search")])``."""

    examples = (
        {"kind": "web_search", "allowed_domains": ["example.org"]},
        {"kind": "mcp", "name": "notes", "url": "https://example.org/mcp"},
    )

    Config = ProviderToolConfig

    def __init__(
        self,
        kind: ProviderToolConfig | ProviderToolKind,
        /,
        **settings: Unpack[ProviderToolKeywords],
    ) -> None:
        """``settings``: those of ``ProviderToolConfig``. Raises: ConfigError."""
        given = kind if isinstance(kind, ProviderToolConfig) else None
        named = {"kind": kind, **cast("dict[str, Any]", settings)}
        self.config = given or decode_config(ProviderToolConfig, named, "ProviderTool")
        self._act: Tool | None = None
        if self.config.kind == "computer":
            from axil_models.functions import tool_of
            from axil_models.providers import component_of

            self._act = tool_of(component_of("tools", self.config.act, "act"))

    async def tools(self) -> Sequence[Tool]:
        """Return the tool."""
        config = self.config
        is_asked = config.kind in ("computer", "mcp") and config.approve == "always"
        return [
            Tool(
                name=config.name or config.kind,
                description="",
                parameters={"type": "object", "properties": {}},
                call=self._call,
                validate=lambda given: ((dict(given),), {}),
                kind=config.kind,
                options=config,
                needs_approval=is_asked,
                effects="external",
            )
        ]

    async def _call(self, arguments: Mapping[str, object]) -> object:
        if self.config.kind == "mcp":
            return ALLOWED
        if self._act is None:
            message = f"{self.config.kind} is carried out by the provider, and was called here."
            raise ToolError("AX984", message)
        if len(self._act.parameters["properties"]) == 1:  # all of them, under whatever name
            [name] = self._act.parameters["properties"]
            return await call_async(self._act.call, **{name: arguments.get("actions", [arguments])})
        return await self._act(arguments)


def check_provider_tools(
    tools: Sequence[ToolSpec], known: Iterable[str] | None, model: str
) -> None:
    """Check that a model has the provider's tools. ``known``: its ``provider_tools``.

    Raises: ToolError (AX984): it does not have one.
    """
    has: frozenset[str] = frozenset(known or ())
    for each in tools:
        if each.kind and each.kind not in has:
            there = f"It has {format_names(sorted(has))}." if has else "It has none."
            message = f"{model} has no tool {each.kind} of its provider."
            raise ToolError("AX984", message, f"{there} Use another model, or another tool.")


def sent_as(
    spec: ToolSpec, tables: Mapping[str, Callable[[Any], Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return a provider's tool as an adapter's table of kinds makes it, with its own settings."""
    return {**tables[spec.kind](spec.options), **spec.options.settings}


def token_of(options: Any) -> str:
    """Return the token for an MCP server; empty: there is none. Raises: ConfigError (AX134)."""
    secret: Secret | None = options.token
    return "" if secret is None else secret.resolve(None, options.name).get_secret_value()


def used_tool(
    kind: str, *, id: object = "", status: object = "", given: object = None, found: object = None
) -> dict[str, object]:
    """Return the part of a reply that shows what the provider's tool did.

    >>> used_tool("web_search", id="ws_1", given={"query": "axil"})
    {'type': 'provider_tool', 'name': 'web_search', 'id': 'ws_1', 'input': {'query': 'axil'}}
    """
    about = {"id": id, "status": status, "input": given, "output": found}
    return {"type": "provider_tool", "name": kind, **{k: v for k, v in about.items() if v}}

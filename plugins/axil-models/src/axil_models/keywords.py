"""Settings of ``axil_models`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from axil.plugin import Address, Secret
from axil_models.given import ToolLike
from axil_models.provided import ProviderToolKind


class ProviderToolKeywords(TypedDict, total=False):
    """The settings of ``ProviderTool``; see ``ProviderToolConfig``."""

    kind: ProviderToolKind
    """The tool."""

    allowed_domains: Sequence[str]
    """web_search: only these hosts."""

    blocked_domains: Sequence[str]
    """web_search: not these hosts."""

    max_uses: int | None
    """web_search: searches of one reply."""

    stores: Sequence[str]
    """file_search: the provider's stores of files."""

    act: ToolLike | None
    """computer: the tool that carries out its actions and gives a picture of the screen: a function
    with a parameter actions, or the name of a tool.
    """

    width: int
    """computer: of the screen, in pixels."""

    height: int
    """computer: of the screen, in pixels."""

    name: str
    """mcp: what the server is called."""

    url: Address
    """mcp: the address of the server."""

    token: Secret | str | Mapping[str, str] | None
    """mcp: a token that the provider sends to it."""

    allow: Sequence[str]
    """mcp: only these of its tools; empty: all."""

    approve: Literal["always", "never"]
    """computer, mcp: whether a person allows each call."""

    settings: Mapping[str, Any]
    """Further fields of the provider's own description of the tool, as they are sent."""

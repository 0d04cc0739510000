"""The tools of an agent: functions and MCP servers, as an active skill allows them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from axil import Problem, SpecError
from axil.plugin import Registry, make_component
from axil_devall.config import Functions, Local, Remote, Tooling
from axil_devall.functions import called, function_tools, prefixed, tools_of
from axil_devall.skills import SkillSet
from axil_models import Tool, call_async as awaited

_SERVER = "mcp"


class Toolbox:
    """All tools of an agent; a toolset.

    Functions are looked up when it is made, servers are asked at each firing.
    """

    def __init__(
        self, tooling: Sequence[Tooling], registry: Registry, skills: SkillSet | None = None
    ) -> None:
        """Raises: SpecError (AX850, AX851, AX853): what is named and cannot be had; PluginError: a
        component that is missing.
        """
        self._known: list[Tool] = []
        self._sources: list[_Source] = []
        self._skills = skills
        problems: list[Problem] = []
        for number, each in enumerate(tooling):
            where = f"tooling[{number}]"
            try:
                self._add(each, registry, where)
            except SpecError as error:
                problems += error.problems
        if problems:
            raise SpecError(problems)

    def _add(self, each: Tooling, registry: Registry, where: str) -> None:
        if isinstance(each, Functions):
            names = [tool.name for tool in each.config.tools]
            for name, made in function_tools(names, registry, where):
                if isinstance(made, Tool):
                    self._known += prefixed([made], each.prefix)
                else:
                    self._sources.append(_Source(made, prefix=each.prefix, name=name))
        else:
            component = registry.resolve("tools", _SERVER, where)
            server = make_component(component, _server(each, where), where)
            self._sources.append(_Source(server, prefix=each.prefix, own=f"{_SERVER}__"))

    async def tools(self, ctx: Any = None) -> list[Tool]:
        """Return the tools."""
        found = list(self._known)
        for source in self._sources:
            tools = called(source.name, await tools_of(source.tools, ctx))
            found += prefixed(tools, source.prefix, source.own)
        return found if self._skills is None else self._skills.around(found)

    @property
    def is_empty(self) -> bool:
        """True if there can be no tool."""
        return not (self._known or self._sources or self._skills)

    async def close(self) -> None:
        """Close the connections to servers, every one, whatever the others raise."""
        async with AsyncExitStack() as closing:
            for source in self._sources:
                close = getattr(source.tools, "close", None)
                if close is not None:
                    closing.push_async_callback(awaited, close)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A set of tools."""

    tools: Any = field(kw_only=False)
    prefix: str | None = None
    own: str = ""
    """The prefix of the names of its tools, which is removed."""
    name: str = ""
    """The function that it stands for, if it holds one tool."""


def _server(each: Remote | Local, where: str) -> dict[str, Any]:
    """Return the settings of a server, as the tool ``mcp`` takes them.

    Raises: SpecError (AX853): its program is not here.
    """
    if isinstance(each, Remote):
        given: dict[str, Any] = {
            "name": _SERVER,
            "url": each.config.server,
            "headers": each.config.headers or {},
        }
        if each.config.timeout:
            given["call_timeout_seconds"] = each.config.timeout
        return given
    config = each.config
    if shutil.which(config.command) is None:
        message = f'the program "{config.command}" of the MCP server is not installed.'
        hint = f"Install {config.command}, or put its folder on PATH."
        raise SpecError(Problem("AX853", where, message, hint))
    given = {
        "name": _SERVER,
        "command": [config.command],
        "args": config.args,
        "cwd": config.cwd or "",
        "env": config.env or {},
    }
    return {key: value for key, value in given.items() if value}

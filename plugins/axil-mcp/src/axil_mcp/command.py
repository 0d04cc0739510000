"""``axil mcp``: serve workflows as an MCP server, and look at the servers that a workflow uses."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import SecretStr

from axil import ConfigError, GraphSpec, Problem, Workflow, run_sync
from axil.plugin import decode_config, granted, make_component, resolve_secret
from axil_cli import add_shared_arguments
from axil_mcp.addresses import host_of
from axil_mcp.config import MCPServer, ToolsConfig
from axil_mcp.files import listed

if TYPE_CHECKING:
    from axil_mcp.serving import WorkflowServer

TOKEN = "AXIL_MCP_TOKEN"


class Mcp:
    """Serve workflows as an MCP server, or look at the MCP servers that a workflow uses."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        which = parser.add_subparsers(dest="action", metavar="serve | tools | login", required=True)
        serving = which.add_parser(
            "serve", help="serve workflow files: a tool for each", allow_abbrev=False
        )
        serving.add_argument(
            "files",
            nargs="+",
            metavar="WORKFLOW",
            help="workflow files; a tool is called like its file",
        )
        serving.add_argument(
            "--transport", choices=("stdio", "http"), default="stdio", help="how clients connect"
        )
        serving.add_argument("--host", default="127.0.0.1", help="http: the address to listen at")
        serving.add_argument(
            "--port", type=int, default=8765, help="http: the port; 0: any that is free"
        )
        serving.add_argument(
            "--token-env",
            default=TOKEN,
            metavar="NAME",
            help=f"http: the environment variable with the token ({TOKEN})",
        )
        serving.add_argument(
            "--allow-host",
            action="append",
            default=[],
            metavar="NAME",
            help="http: a further name of this server",
        )
        serving.add_argument(
            "--allow-origin",
            action="append",
            default=[],
            metavar="ORIGIN",
            help="http: an origin of web pages that may send requests",
        )
        serving.add_argument(
            "--concurrency", type=int, default=16, metavar="N", help="runs at the same time"
        )
        serving.add_argument(
            "--workspace", metavar="FOLDER", help="where each run gets a folder of its own"
        )
        serving.add_argument(
            "--journal",
            metavar="FOLDER",
            help="where runs are kept, so that those that wait for an answer outlive the server",
        )
        looking = which.add_parser(
            "tools",
            help="the tools of the MCP servers that a workflow uses, and their digests",
            allow_abbrev=False,
        )
        looking.add_argument("file", metavar="WORKFLOW", help="a workflow file")
        looking.add_argument(
            "--format", choices=("text", "json"), default="text", help="how they are shown"
        )
        login = which.add_parser(
            "login",
            help="log in to the MCP servers of a workflow that want a person to",
            allow_abbrev=False,
        )
        login.add_argument("file", metavar="WORKFLOW", help="a workflow file")
        for each in (serving, looking, login):
            add_shared_arguments(each, "--workflow")

    def run(self, options: argparse.Namespace, session: Any) -> int:
        """Do it; 0: done."""
        act = {"serve": _serve, "tools": _look, "login": _log_in}[options.action]
        return act(options, session)


def _serve(options: argparse.Namespace, session: Any) -> int:
    from axil_mcp.serving import Serving, WorkflowServer

    workflows = {
        Path(file).stem: workflow
        for file, workflow in ((file, _loaded(file, options, session)) for file in options.files)
    }
    if len(workflows) < len(options.files):
        raise ConfigError(
            Problem("AX935", "FILE", "two files would be tools of one name.", "Rename one.")
        )
    if options.concurrency < 1:
        raise ConfigError(
            Problem(
                "AX934",
                "--concurrency",
                f"expected a whole number ≥ 1, found {options.concurrency}.",
            )
        )
    journal: Any = None
    if options.journal:
        kind = session.registry.resolve("journals", "sqlite", "--journal")
        journal = make_component(kind, {"folder": options.journal}, "--journal")
    serving = Serving(
        allow=frozenset[str](options.allow),
        concurrency=options.concurrency,
        workspace=Path(options.workspace) if options.workspace else None,
        journal=journal,
        waiting=Path(options.journal) / "mcp" if options.journal else None,
    )
    try:
        return _served(WorkflowServer(workflows, serving=serving), options, session)
    finally:
        if journal is not None:
            journal.close()


def _served(server: WorkflowServer, options: argparse.Namespace, session: Any) -> int:
    if options.transport == "stdio":
        run_sync(server.stdio())
        return 0
    from axil_mcp.guard import HttpConfig, serve

    door = HttpConfig(
        token=_token(options.token_env),
        host=options.host,
        port=options.port,
        hosts=tuple(options.allow_host),
        origins=tuple(options.allow_origin),
    )
    run_sync(serve(server, door, lambda address: session.tell(f"listening at {address}")))
    return 0


def _token(name: str) -> SecretStr:
    try:
        return resolve_secret({"env": name}, where="--token-env")
    except ConfigError:
        message = (
            f"a server over HTTP needs a token, and the environment variable {name} is not set."
        )
        hint = (
            f'Set it: export {name}=$(python -c "import secrets; print(secrets.token_urlsafe(32))")'
        )
        raise ConfigError(Problem("AX934", "--token-env", message, hint)) from None


def _loaded(file: str, options: argparse.Namespace, session: Any) -> Workflow:
    return session.workflow(file, **session.reading(options))


# --------------------------------------------------------------------------------------------------


def _look(options: argparse.Namespace, session: Any) -> int:
    allow = frozenset[str](options.allow)
    found = run_sync(_listings(_loaded(options.file, options, session).spec, allow))
    if options.format == "json":
        session.say(json.dumps(found, ensure_ascii=False, indent=2))
        return 0
    if not found:
        session.tell(f"{options.file} uses no MCP server.")
    for each in found:
        session.say(f"{each['server']}  {each['digest']}")
        for tool in each["tools"]:
            session.say(f"  {tool['name']}  {' '.join(tool['description'].split())[:100]}".rstrip())
    return 0


def _log_in(options: argparse.Namespace, session: Any) -> int:
    spec = _loaded(options.file, options, session).spec
    with granted(spec.extras.get("grants")):
        servers = [decode_config(ToolsConfig, each, options.file) for each in _used(spec)]
    wanting = [each for each in servers if each.oauth and each.oauth.client_secret is None]
    if not wanting:
        session.tell(f"{options.file} uses no MCP server that a person logs in to.")
    for server in wanting:
        run_sync(_logged_in(server, functools.partial(_open_page, server, session)))
        session.say(f"{server.name}: logged in")
    return 0


def _open_page(server: MCPServer, session: Any, address: str) -> None:
    session.tell(f"{server.name} ({host_of(server.url)}) wants a login at {host_of(address)}.")
    session.tell(f"Open {address}")


async def _logged_in(server: MCPServer, login: Callable[[str], None]) -> None:
    """Connect once, with a person; the tokens are kept then."""
    from mcp import Client

    from axil_mcp.http import headers_of, http

    async with Client(http(server, headers_of(server), lambda status: None, login)) as client:
        await client.list_tools()


async def _listings(spec: GraphSpec, allowed: frozenset[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for config in _used(spec):
        with granted(spec.extras.get("grants")):  # the file names the server, and what it is sent
            listing = await listed(config, allowed)
        tools = [
            {"name": each.name, "description": each.description, "digest": each.tool.digest}
            for each in listing.tools
        ]
        found.append({"server": listing.server, "digest": listing.digest, "tools": tools})
    return found


def _used(spec: GraphSpec) -> Iterator[dict[str, Any]]:
    """Yield the settings of each toolset of MCP in the nodes of a file, graphs inside them
    included; without what was expected of it.
    """
    seen: list[dict[str, Any]] = []
    waiting: list[Any] = [node.use.config for node in spec.nodes if node.use is not None]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, Mapping):
            tools = cast("Mapping[str, Any]", each).get("tools")
            for use in cast("list[Any]", tools) if isinstance(tools, (list, tuple)) else []:
                if isinstance(use, Mapping) and cast("Mapping[str, Any]", use).get("type") == "mcp":
                    given = {
                        key: value
                        for key, value in cast("Mapping[str, Any]", use).items()
                        if key != "type"
                    }
                    config = {**cast("dict[str, Any]", given.get("config") or given)}
                    config.pop("expect", None)
                    if config not in seen:
                        seen.append(config)
                        yield config
            waiting += list(cast("Mapping[str, Any]", each).values())
        elif isinstance(each, (list, tuple)):
            waiting += list(cast("list[Any]", each))

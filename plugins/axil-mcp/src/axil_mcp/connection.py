"""Connections: one to a server on each event loop, opened when it is first needed and again when it
was lost. A server that may know the workspace has one for each workspace, so that it never knows
that of another run; one that is sent secrets of callers has one for each caller.

A connection is owned by a task of its own, which enters the SDK's client and leaves it: its cancel
scopes must be left where they were entered, and a caller that is cancelled must not take the
connection away from the others. Callers use it from their own tasks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

from axil.plugin import LoopLocal, callers_secrets
from axil_mcp.calls import Call, current
from axil_mcp.config import MCPServer, environment_of
from axil_mcp.errors import CallFailed, McpFault, Unreachable
from axil_mcp.http import headers_of, http
from axil_mcp.stdio import Program, stdio
from axil_mcp.texts import Tail, clean, without

log = logging.getLogger("axil_mcp")
_TAIL: Final = 4000
"""Bytes of a program's standard error that are kept."""
_MOST_IDLE: Final = 16
"""Connections for workspaces that no call uses and that stay open; the oldest are closed."""


def link_of(server: MCPServer) -> Link:
    """Return the connections of a server; users of the same object share them."""
    if server._link is None:  # pyright: ignore[reportPrivateUsage]  # its place is there
        server._link = Link(server)  # pyright: ignore[reportPrivateUsage]
    return cast("Link", server._link)  # pyright: ignore[reportPrivateUsage]


class Link:
    """A server's connections, by event loop, workspace, and what callers gave for it."""

    def __init__(self, server: MCPServer) -> None:
        self.server = server
        self._lines = LoopLocal[dict[tuple[Path | None, str], Line]](dict)

    async def ask(
        self, what: str, use: Callable[[Any], Awaitable[Any]], *, ctx: Any = None, tool: str = ""
    ) -> Any:
        """Return the result of ``use(client)`` over the connection of a firing. Raises: as
        ``Line.ask``.
        """
        line = self.line_of(getattr(ctx, "workspace", None) if self.server.roots else None)
        line.users += 1
        try:
            return await line.ask(what, use, ctx=ctx, tool=tool)
        finally:
            line.users -= 1
            lines = self._lines.get()
            idle = [place for place, each in lines.items() if not each.users]
            for place in idle[:-_MOST_IDLE]:
                await lines.pop(place).close()

    def line_of(self, workspace: Path | None = None) -> Line:
        """Return the connection for a workspace and the caller of the run, open or not."""
        lines, own = self._lines.get(), callers_secrets()
        key = workspace, "" if own is None else own.digest(self.server.variables)
        # the one that was used last is the last one
        line = lines[key] = lines.pop(key, None) or Line(self.server, workspace)
        return line

    async def close(self) -> None:
        """Close the connections of the running event loop.

        Using one again opens it again; the next ``close`` finds that one, too.
        """
        for line in list((self._lines.peek() or {}).values()):
            await line.close()


class Line:
    """One connection on one event loop."""

    def __init__(self, server: MCPServer, workspace: Path | None = None) -> None:
        self.server = server
        self.workspace = workspace
        """The folder that the server may know of."""
        self.users = 0
        """Calls that use it, or wait for it."""
        self._owner: _Owner | None = None
        self._connecting: asyncio.Task[_Owner] | None = None
        self._room = asyncio.Semaphore(server.concurrency)

    async def ask(
        self, what: str, use: Callable[[Any], Awaitable[Any]], *, ctx: Any = None, tool: str = ""
    ) -> Any:
        """Return the result of ``use(client)``, within the server's limits of time and concurrency;
        ``what`` names it in errors.

        A request that a lost connection did not take is sent once more over a new one.
        Raises: Unreachable (AX920); CallFailed: AX924: the connection was lost, AX925: it took too
        long, AX927: the server refused it, AX931: the answer is malformed.
        """
        async with self._room:
            owner = await self._opened()
            try:
                return await self._asked(owner, what, use, ctx, tool)
            except _Unsent:
                owner = await self._opened()
                try:
                    return await self._asked(owner, what, use, ctx, tool)
                except _Unsent as error:
                    raise owner.lost(what) from error.__cause__

    async def _asked(
        self, owner: _Owner, what: str, use: Callable[[Any], Awaitable[Any]], ctx: Any, tool: str
    ) -> Any:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        server = self.server
        call = Call(server.name, tool or what, ctx, owner.secrets)
        call.sampling, call.model = server.sampling, server.sampling_model
        owner.calls.append(call)
        token = current.set(call)
        try:
            job: asyncio.Future[Any] = asyncio.ensure_future(use(owner.client))
            return await call.follow(job, self.server.call_timeout_seconds)
        except MCPError as error:
            if (
                error.code == CONNECTION_CLOSED
                and self.server.url
                and error.message != "Connection closed"
            ):
                # one answer's own stream broke off; the others' may go on
                raise owner.lost(what) from error
            if error.code == CONNECTION_CLOSED or error.message == "Session terminated":
                owner.leave()
                await owner.gone()
                if error.message == "Session terminated" or owner.never_sent:
                    raise _Unsent from error
                raise owner.lost(what) from error
            message = f"{what} was refused: {owner.shown(error.message)} (code {error.code})."
            if owner.unasked:
                message, owner.unasked = f"{message} {owner.unasked}", ""
            raise CallFailed("AX927", message, where=self.server.place) from error
        except (ValidationError, RuntimeError) as error:
            # the SDK's words for an answer that breaks the protocol or its own schema
            if isinstance(error, McpFault) or hasattr(error, "problem"):
                raise
            # lost while a person was asked: the SDK does not say so
            if owner.is_over and isinstance(error, RuntimeError):
                await owner.gone()
                raise owner.lost(what) from error
            raise CallFailed(
                "AX931",
                f"the answer to {what} cannot be used: {owner.shown(str(error))}",
                where=self.server.place,
            ) from error
        finally:
            current.reset(token)
            owner.calls.remove(call)

    async def _opened(self) -> _Owner:
        if self._owner is not None and not self._owner.is_over:
            return self._owner
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(
                self._connect(), name=f"axil-mcp {self.server.name} connect"
            )
        connecting = self._connecting  # who comes when it is over begins another
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if connecting.cancelled():  # somebody closed the connection meanwhile
                raise Unreachable(
                    "AX920", "the connection was closed.", where=self.server.place
                ) from None
            raise

    async def _connect(self) -> _Owner:
        """Return a connection that greets, kept for all, whether or not somebody still waits for
        it.

        Raises: Unreachable (AX920); ConfigError (AX134): a secret is not set.
        """
        server = self.server
        owner = _Owner(server, self.workspace)
        clock = asyncio.timeout(server.connect_timeout_seconds)
        try:
            async with clock:
                for attempt in range(server.retries + 1):
                    if attempt:
                        await asyncio.sleep(server.backoff_seconds * 2 ** (attempt - 1))
                        owner = _Owner(server, self.workspace)
                    if await owner.begin() or not owner.may_pass:
                        break
        except TimeoutError:
            if not clock.expired():
                raise
            await owner.close()
            raise owner.unreachable(
                f"it did not answer within {server.connect_timeout_seconds:g} s"
            ) from None
        except asyncio.CancelledError:
            await owner.close()
            raise
        if owner.is_over:
            raise owner.unreachable(owner.cause) from owner.error
        self._owner = owner
        return owner

    async def close(self) -> None:
        """Close it; idempotent."""
        if self._connecting is not None and not self._connecting.done():
            # else somebody closes it already; twice would break that off
            if not self._connecting.cancelling():
                self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._owner is not None:
            await self._owner.close()


class _Unsent(Exception):
    """The server has not seen the request."""


class _Owner:
    """One opened connection, and the task that holds it open."""

    def __init__(self, server: MCPServer, workspace: Path | None) -> None:
        self.server = server
        self.workspace = workspace
        self.client: Any = None
        self.calls: list[Call] = []
        self.error: BaseException | None = None
        self.unasked = ""
        """The reason why a question of the server was not asked, for the error of the call that it
        makes fail.
        """
        self.secrets: dict[str, str] = {}
        self._tail = Tail(_TAIL)
        self._status = 0
        """Of the last answer over HTTP that was an error."""
        self._ready = asyncio.Event()
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """True if nothing can be sent over the connection any more."""
        return self._leave.is_set() or self._task is None or self._task.done()

    async def begin(self) -> bool:
        """Open it; whether it is open."""
        self._task = asyncio.create_task(self._own(), name=f"axil-mcp {self.server.name}")
        await self._ready.wait()
        return not self.is_over

    def leave(self) -> None:
        """End the task of a connection that is of no use."""
        self._leave.set()

    async def gone(self) -> None:
        """Wait until the task has left."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def close(self) -> None:
        """Close it and wait until nothing is left; idempotent."""
        self.leave()
        if self._task is not None and not self._ready.is_set():
            self._task.cancel()
        await self.gone()

    async def _own(self) -> None:
        from mcp import Client

        try:
            async with Client(self._transport(), **self._ways()) as self.client:
                self._ready.set()
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001
            # shown to the opener, or in the next error of a call
            self.error = error
        finally:
            self._leave.set()
            self._ready.set()

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Any]:
        server = self.server
        if server.url:
            headers = headers_of(server)
            self.secrets = {name: value.removeprefix("Bearer ") for name, value in headers.items()}
            streams = http(server, headers, self._refused)
        else:
            environment = environment_of(server)
            self.secrets = {name: environment[name] for name in server.env}
            streams = stdio(
                Program(server=server, environment=environment, tail=self._tail, lost=self.leave)
            )
        async with streams as both:
            yield both

    def _refused(self, status: int) -> None:
        self._status = status

    def _ways(self) -> dict[str, Any]:
        from mcp_types import Implementation

        server = self.server
        ways: dict[str, Any] = {
            "mode": server.protocol,
            "client_info": Implementation(name="axil", version=_version()),
            "logging_callback": self._log,
            "log_level": server.log_level,
            "cache": None,  # what a server offers is looked at each time: a change is to be seen
        }
        if server.elicitation:
            ways["elicitation_callback"] = self._elicit
        if server.sampling != "no":
            ways["sampling_callback"] = self._sample
        if server.roots:
            ways["list_roots_callback"] = self._roots
        return ways

    # -- what the server asks

    def _caller(self) -> Call | None:
        """Return the call that the server asks for: the one that the SDK is at work for, or the
        only one there is.
        """
        known = current.get()
        if known is not None and known in self.calls:
            return known
        return self.calls[0] if len(self.calls) == 1 else None

    async def _elicit(self, context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult, ErrorData

        call = self._asking()
        if isinstance(call, ErrorData):
            return call
        action, content = await call.elicit(params)
        return ElicitResult(action=action, content=content)

    async def _sample(self, context: Any, params: Any) -> Any:
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        call = self._asking()
        if isinstance(call, ErrorData):
            return call
        reply = await call.sample(params)
        if reply is None:
            return ErrorData(code=INVALID_REQUEST, message="The use of the model was not allowed.")
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=reply.text),
            model=reply.model,
            stop_reason=reply.stop_reason,
        )

    def _asking(self) -> Any:
        """Return the call that the server asks for, or the error to answer with."""
        from mcp_types import INVALID_REQUEST, ErrorData

        call = self._caller()
        if call is None:
            self.unasked = (
                "It asked something while several calls were under way and could not say for "
                "which; give it concurrency: 1. (AX928)"
                if self.calls
                else ""
            )
            log.warning("%s asks something, and it is not known for which call.", self.server.place)
            return ErrorData(code=INVALID_REQUEST, message="It is not known which call asks.")
        return call

    async def _roots(self, context: Any) -> Any:
        from mcp_types import ListRootsResult, Root

        workspace = self.workspace
        return ListRootsResult(
            roots=[]
            if workspace is None
            else [Root(uri=cast("Any", workspace.resolve().as_uri()), name="workspace")]
        )

    async def _log(self, params: Any) -> None:
        call = self._caller()
        if call is not None:
            call.log(str(params.level), params.logger, params.data)
        else:
            log.debug("%s: %s", self.server.place, self.shown(str(params.data)))

    # -- the description of its state

    @property
    def may_pass(self) -> bool:
        """True if trying again may help."""
        is_final = isinstance(
            self._first, (FileNotFoundError, PermissionError, NotADirectoryError, ValueError)
        )
        return not is_final and not 400 <= self._status < 500

    @property
    def _first(self) -> BaseException | None:
        error = self.error
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        return error

    @property
    def never_sent(self) -> bool:
        """True if the connection failed because no server answered at the address."""
        import httpx2

        return isinstance(self._first, (httpx2.ConnectError, httpx2.ConnectTimeout))

    @property
    def cause(self) -> str:
        """The reason why the connection is over."""
        error = self._first
        if isinstance(error, FileNotFoundError) and self.server.command:
            return f'there is no program "{self.server.command[0]}"' + (
                f' in "{self.server.cwd}"' if self.server.cwd else ""
            )
        if error is None:
            return "it closed the connection"
        status = f" (HTTP {self._status})" if self._status else ""
        return (
            self.shown(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
            + status
        )

    def shown(self, text: str) -> str:
        """Return the server's output, fit for an error."""
        return clean(without(text, self.secrets.values()), 1000)

    def unreachable(self, why: str) -> BaseException:
        """Return the error for the caller that wanted to connect."""
        # a secret is not set: that is all there is to say
        if isinstance(self._first, ValueError) and hasattr(self._first, "problems"):
            return self._first
        start = "started" if self.server.command else "reached"
        hint = "Check the command." if self.server.command else "Check the url and the token."
        return Unreachable(
            "AX920", f"it cannot be {start}: {why}.{self._error_output()}", hint, self.server.place
        )

    def lost(self, what: str) -> CallFailed:
        """Return the error for a call that a lost connection has taken with it."""
        message = f"the connection was lost during {what}.{self._error_output()}"
        return CallFailed(
            "AX924",
            message,
            "It may have been carried out. The next call connects again.",
            self.server.place,
        )

    def _error_output(self) -> str:
        stated = self._tail.text(self.secrets.values())
        return f"\nIts standard error ends with:\n{stated}\n" if stated else ""


def _version() -> str:
    from importlib.metadata import version

    return version("axil-mcp")

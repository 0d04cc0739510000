"""The protocol ``mcp`` of ``axil serve``: its workflows as tools, for its callers.

A call is a run of the server: of the caller, by the caller's rights, in the journal and the audit,
seen on the page. Each request stands by itself: any server on the same journal answers the next
one. A run that asks pauses; a client that can be asked is, and its next request has the answer; any
other receives the question with the run's id, and answers with a tool.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, cast

from starlette.routing import BaseRoute, Route

from axil import AxilError, Question
from axil_mcp.asking import misfit
from axil_mcp.errors import Unserved
from axil_mcp.served import (
    ANSWER_SCHEMA,
    ANSWER_TOOL,
    Served,
    asking_call,
    can_answer,
    content_of,
    failed_call,
    form_of,
    plain,
    question_text,
    reply_of,
    served,
    text_of,
)

PATH: Final = "/mcp"
_STOPPED: Final = ("done", "failed", "limited", "cancelled", "parked")


class McpProtocol:
    """Workflows as tools of MCP over streamable HTTP."""

    def __init__(self) -> None:
        self._manager: Any = None

    def routes(self, service: object) -> Iterable[BaseRoute]:
        """Return the route ``/mcp``. ``service``: the ``RunService`` of axil-serve."""
        from importlib.metadata import version

        from mcp.server import Server
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        calls = _Calls(service)
        server: Any = Server(
            "axil",
            version=version("axil-mcp"),
            on_list_tools=calls.list,
            on_call_tool=calls.call,
        )
        # the guard of axil serve has asked already
        is_open = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._manager = StreamableHTTPSessionManager(
            app=server, stateless=True, security_settings=is_open
        )
        return [Route(PATH, _Endpoint(self._manager), methods=["GET", "POST", "DELETE"])]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Within it requests are answered."""
        async with self._manager.run():
            yield


class _Endpoint:
    """The manager as an ASGI application."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._manager.handle_request(scope, receive, send)


class _Calls:
    """The requests of clients."""

    def __init__(self, service: Any) -> None:
        self._service = service

    async def list(self, ctx: Any, params: Any) -> Any:
        from mcp import MCPError
        from mcp_types import INVALID_REQUEST, ListToolsResult, Tool

        try:
            _caller(ctx).check("look")
        except AxilError as error:
            raise MCPError(code=INVALID_REQUEST, message=str(error)) from error
        tools = [
            Tool(
                name=tool.name,
                description=tool.description,
                input_schema=dict(tool.input_schema),
                output_schema=dict(tool.output_schema),
            )
            for _, tool in self._tools().values()
        ]
        if not can_answer(ctx) and ANSWER_TOOL not in self._tools():
            said = "Answers the question of a run that asks, and gives the run's result."
            schema = dict(ANSWER_SCHEMA)
            tools.append(Tool(name=ANSWER_TOOL, description=said, input_schema=schema))
        return ListToolsResult(tools=tools)

    async def call(self, ctx: Any, params: Any) -> Any:
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS

        found = self._tools().get(params.name)
        is_answer = found is None and params.name == ANSWER_TOOL
        if found is None and not is_answer:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no tool {params.name!r:.100}")
        arguments = dict(params.arguments or {})
        fault = misfit(arguments, ANSWER_SCHEMA if found is None else found[1].input_schema)
        if fault:
            return failed_call(f"AX936 wrong arguments: {fault}")
        caller = _caller(ctx)
        try:
            return await self._ran(ctx, params, caller, found, arguments)
        except AxilError as error:
            if getattr(error, "id", "") == "AX962":
                await self._service.note(caller, "refused", request=f"mcp {params.name:.200}")
            return failed_call(str(error))

    async def _ran(
        self,
        ctx: Any,
        params: Any,
        caller: Any,
        found: tuple[str, Served] | None,
        arguments: Mapping[str, Any],
    ) -> Any:
        service, after = self._service, ""
        caller.check("look")
        with service.permit(caller) as permit:
            if found is None:
                run_id = str(arguments["run_id"])
                refused = await self._answer(caller, run_id, {"": arguments["answer"]})
            elif params.request_state is not None:
                run_id = str(params.request_state)
                refused = await self._answer(caller, run_id, _replies(params.input_responses))
            else:
                run_id = await service.start(caller, found[0], found[1].given(arguments))
                refused = None
            if refused is not None:
                return refused
            if found is None or params.request_state is not None:
                after = str((await service.read(service.steps, caller, run_id))[-1]["id"])
            await self._stopped(ctx, caller, run_id, after, permit)
        return self._result(ctx, await service.result(caller, run_id))

    async def _answer(self, caller: Any, run_id: str, replies: Mapping[str, Any]) -> Any:
        """Answer the questions of a run; return what is wrong with the replies, None: nothing.

        ``replies``: by the keys of the questions; under no key, a value for the first one.
        """
        run = await self._service.read(self._service.look, caller, run_id)
        if not run["questions"]:
            return failed_call(
                "AX937 the run that was asked about is not waiting any more.", run_id
            )
        answers: dict[str, Any] = {}
        for number, question in enumerate(map(_question, run["questions"]), 1):
            if "" in replies:
                content: Any = content_of(question, replies[""])
            else:
                reply = replies.get(f"q{number}")
                if (action := getattr(reply, "action", "no reply")) != "accept":
                    said = f"AX938 the question was not answered ({action})"
                    return failed_call(f"{said}: {question_text(question)}", run_id)
                content = getattr(reply, "content", None) or {}
            if fault := misfit(content, form_of(question)):
                return failed_call(f"AX938 the answer does not fit: {fault}", run_id)
            answers[question.id] = reply_of(question, content)
            if "" in replies:
                break
        await self._service.answer(caller, run_id, answers, is_awaited=True)
        return None

    async def _stopped(self, ctx: Any, caller: Any, run_id: str, after: str, permit: Any) -> None:
        """Wait until a run has ended, or asks; report firings as progress."""
        service, count = self._service, 0
        events = service.stream(caller, run_id, after=after, permit=permit)
        async with aclosing(events):
            async for event in events:
                if event.kind != "step":
                    continue
                if event.data["kind"] == "done":
                    count += 1
                    await ctx.session.report_progress(float(count), None, event.data["activation"])
                if event.data["kind"] != "ended":
                    continue
                if event.data["status"] in _STOPPED:
                    return
                if (await service.read(service.look, caller, run_id))["questions"]:
                    return

    def _result(self, ctx: Any, run: Mapping[str, Any]) -> Any:
        from mcp_types import CallToolResult, TextContent

        run_id, questions = run["run_id"], [_question(each) for each in run["questions"]]
        if questions and can_answer(ctx):
            return asking_call(questions, run_id)
        if questions:
            said = "\n\n".join(map(question_text, questions))
            hint = f'Ask the person, and call {ANSWER_TOOL} with the run_id "{run_id}".'
            return failed_call(f"The workflow asks:\n\n{said}\n\n{hint}", run_id)
        if run["status"] != "done":
            return failed_call(str(run["error"] or f"the run ended as {run['status']}."), run_id)
        output = plain(run["output"])
        content: Any = [TextContent(type="text", text=text_of(output))]
        data = {"output": output, "run_id": run_id}
        return CallToolResult(content=content, structured_content=data)

    def _tools(self) -> dict[str, tuple[str, Served]]:
        """Return the workflows as tools, by the names of these; one whose name is taken is left
        out.
        """
        tools: dict[str, tuple[str, Served]] = {}
        for name, workflow in self._service.workflows.items():
            try:
                [tool] = served({name: workflow}).values()
            except Unserved:
                continue
            tools.setdefault(tool.name, (name, tool))
        return tools


def _caller(ctx: Any) -> Any:
    """Return the caller of a request, whom the guard of axil serve has found."""
    return ctx.request.state.caller


def _replies(given: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


def _question(data: Mapping[str, Any]) -> Question:
    return Question(
        text=data["text"],
        kind=data["kind"],
        options=tuple(data["options"]),
        default=data["default"],
        data=data["data"],
        id=data["id"],
    )


__all__ = ["McpProtocol"]

"""``WorkflowServer``: workflows as an MCP server, a tool for each.

A call is a run. Its firings are progress; cancelling the call cancels the run. What a node asks a
person is asked through the client: over a connection that can carry a question back the run waits
for the answer; where it cannot (the protocol of 2026), the run pauses, the client receives what is
asked, and its next request resumes the run. A client that cannot be asked receives the question
with the id of the run, and answers with a tool. Paused runs are kept in memory, or with a journal
on disk, where another process continues with them; a bounded number for a bounded time.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from axil import MISSING, AxilError, Question, Result, Workflow
from axil.plugin import LoopLocal
from axil_journals import MemoryJournal, open_questions
from axil_mcp.asking import misfit
from axil_mcp.leaving import MessageStream
from axil_mcp.offering import (
    contents_of,
    links_of,
    prompt_of,
    prompted,
    resource_of,
    template,
)
from axil_mcp.served import (
    ANSWER_SCHEMA,
    ANSWER_TOOL,
    Served,
    asking_call,
    can_answer,
    content_of,
    failed_call,
    failure,
    form_of,
    question_text,
    reply_of,
    served,
    structured,
    text_of,
)
from axil_mcp.waiting import Paused, Waiting, digest_of

log = logging.getLogger("axil_mcp")
_BACKLOG: Final = 1000
"""Reports of progress that wait to be sent; more are dropped."""
_GONE: Final = (
    "AX937 the run that was asked about is not waiting any more. Call again from the start."
)
_LAST_WORDS: Final = 1.0
"""Seconds in which those that are left may be sent when the run is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The settings by which calls are run."""

    allow: frozenset[str] = frozenset()
    """The grants of workflows; as ``axil.Options``."""
    concurrency: int = 16
    """Runs at the same time; further calls wait."""
    most_waiting: int = 1000
    """Calls that wait; further ones are refused."""
    most_paused: int = 100
    """Runs that wait for an answer; the oldest is given up for a new one."""
    keep_seconds: float = 3600.0
    """The seconds that a run waits for an answer."""
    hooks: Any = None
    workspace: str | Path | None = None
    """The folder in which each run gets a folder of its own; None: runs have none."""
    journal: Any = None
    """The journal of runs; None: those that wait are kept in memory."""
    waiting: Path | None = None
    """The folder that says which run of the journal waits for which call; None: in memory."""


class WorkflowServer:
    """Workflows behind one MCP server.

    >>> from axil import RootGraph
    >>> graph = RootGraph("greet")
    >>> _ = graph.create_node(lambda inputs: {"text": f"Hello {inputs['name']}"}, name="hello")
    >>> (
    ...     graph.edge_from_entry("hello", {"name": "whom"}),
    ...     graph.edge_to_exit("hello", {"text": ""}),
    ... )
    (...)
    >>> WorkflowServer({"greet": graph.build()}).tools["greet"].input_schema["required"]
    ['name']
    """

    def __init__(
        self,
        workflows: Mapping[str, Workflow],
        *,
        name: str = "axil",
        serving: Serving | None = None,
    ) -> None:
        """``workflows``: by the names of their tools.

        Raises: Unserved (AX935); SpecError: one does not compile.
        """
        self.name, self.serving = name, serving or Serving()
        self.tools: dict[str, Served] = served(workflows)
        given = self.serving
        folder = given.waiting if given.journal is not None else None
        self._waiting = Waiting(given.most_paused, given.keep_seconds, folder)
        self._journals: dict[str, MemoryJournal] = {}
        self._rooms = LoopLocal(lambda: asyncio.Semaphore(self.serving.concurrency))
        self._queued = 0

    @cached_property
    def server(self) -> Any:
        """The SDK's server, for transports: ``Client(server)`` connects to it in the process."""
        from importlib.metadata import version

        from mcp.server import Server

        return Server(
            self.name,
            version=version("axil-mcp"),
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
        )

    @asynccontextmanager
    async def ready(self) -> AsyncGenerator[None]:
        """Within it the components of all workflows stay open, instead of being opened and closed
        by each run.
        """
        from contextlib import AsyncExitStack

        async with AsyncExitStack() as stack:
            for tool in self.tools.values():
                await stack.enter_async_context(tool.workflow)
            yield

    async def stdio(self) -> None:
        """Serve one client over standard input and output, to the end of the input, or until the
        client is gone.
        """
        from mcp.server.stdio import stdio_server

        from axil_mcp.lines import bounded_input

        try:
            async with (
                self.ready(),
                bounded_input() as stdin,
                stdio_server(stdin) as (read, write),
            ):
                options = self.server.create_initialization_options()
                await self.server.run(read, MessageStream(write), options)
        except* BrokenPipeError:  # in the middle of an answer
            log.info("the client is gone")

    # -- what clients ask

    async def _list(self, ctx: Any, params: Any) -> Any:
        from mcp_types import ListToolsResult, Tool

        tools = [
            Tool(
                name=t.name,
                description=t.description,
                input_schema=dict(t.input_schema),
                output_schema=dict(t.output_schema),
            )
            for t in self.tools.values()
        ]
        if not can_answer(ctx) and ANSWER_TOOL not in self.tools:
            said = "Answers the question of a run that asks, and gives the run's result."
            schema = dict(ANSWER_SCHEMA)
            tools.append(Tool(name=ANSWER_TOOL, description=said, input_schema=schema))
        return ListToolsResult(tools=tools)

    async def _prompts(self, ctx: Any, params: Any) -> Any:
        from mcp_types import ListPromptsResult

        return ListPromptsResult(prompts=[prompt_of(tool) for tool in self.tools.values()])

    async def _prompt(self, ctx: Any, params: Any) -> Any:
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS

        tool = self.tools.get(params.name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no prompt {params.name!r:.100}")
        return prompted(tool, params.arguments or {})

    async def _resources(self, ctx: Any, params: Any) -> Any:
        from mcp_types import ListResourcesResult

        return ListResourcesResult(resources=[resource_of(tool) for tool in self.tools.values()])

    async def _templates(self, ctx: Any, params: Any) -> Any:
        from mcp_types import ListResourceTemplatesResult

        found = [template()] if self.serving.workspace is not None else []
        return ListResourceTemplatesResult(resource_templates=found)

    async def _read(self, ctx: Any, params: Any) -> Any:
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS, ReadResourceResult

        uri = str(params.uri)
        contents = await asyncio.to_thread(contents_of, uri, self.tools, self.serving.workspace)
        if contents is None:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no resource {uri!r:.200}")
        return ReadResourceResult(contents=[contents])

    async def _call(self, ctx: Any, params: Any) -> Any:
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS

        tool, arguments = self.tools.get(params.name), dict(params.arguments or {})
        is_answer = tool is None and params.name == ANSWER_TOOL
        if tool is None and not is_answer:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no tool {params.name!r:.100}")
        fault = misfit(arguments, ANSWER_SCHEMA if tool is None else tool.input_schema)
        if fault:
            return failed_call(f"AX936 wrong arguments: {fault}")
        if self._queued >= self.serving.most_waiting:
            return failed_call(f"AX933 {self._queued} calls wait already. Call again later.")
        async with self._admitted():
            if tool is None:
                return await self._answered(arguments, ctx)
            paused = None
            # not before there is room: a call that is cancelled until then has taken nothing
            if params.request_state is not None:
                call = digest_of(arguments)
                paused = self._waiting.take(params.request_state, tool.name, call)
                if paused is None:
                    return failed_call(_GONE)
            return await self._ran(tool, arguments, ctx, paused, params.input_responses or {})

    async def _answered(self, arguments: Mapping[str, Any], ctx: Any) -> Any:
        """Resume the run that ``ANSWER_TOOL`` names, with the answer to its first question."""
        paused = self._waiting.take(str(arguments["run_id"]))
        tool = None if paused is None else self.tools.get(paused.tool)
        if paused is None or tool is None:
            return failed_call(_GONE)
        return await self._ran(tool, {}, ctx, paused, {}, answer=arguments["answer"])

    @asynccontextmanager
    async def _admitted(self) -> AsyncGenerator[None]:
        """Wait for room for a run."""
        self._queued += 1
        try:
            await self._room.acquire()
        finally:
            self._queued -= 1
        try:
            yield
        finally:
            self._room.release()

    @property
    def _room(self) -> asyncio.Semaphore:
        """The semaphore that bounds the runs of the running event loop."""
        return self._rooms.get()

    async def _ran(
        self,
        tool: Served,
        arguments: Mapping[str, Any],
        ctx: Any,
        paused: Paused | None,
        replies: Mapping[str, Any],
        *,
        answer: Any = MISSING,
    ) -> Any:
        """Return the result of a run, begun or resumed.

        Args:
            paused: the run that waited; None: one begins.
            replies: to what the client was asked.
            answer: to the first question, of a client that cannot be asked.
        """
        is_askable = can_answer(ctx)
        live = is_askable and ctx.session.can_send_request
        channel = _Live(ctx) if live else None
        run_id = paused.run_id if paused is not None else secrets.token_hex(8)
        journal: Any = self.serving.journal
        if journal is None and (paused is not None or not live):
            journal = self._journals.pop(run_id, None) or MemoryJournal()
        answers: dict[str, Any] = {}
        asked = [] if paused is None or journal is None else open_questions(journal.entries(run_id))
        if answer is not MISSING and asked:
            content = content_of(asked[0], answer)
            if fault := misfit(content, form_of(asked[0])):
                self._keep(tool, "" if paused is None else paused.call, run_id, journal)
                return failed_call(f"AX938 the answer does not fit: {fault}", run_id)
            answers[asked[0].id] = reply_of(asked[0], content)
            asked = []  # what else it asks it asks again
        for number, question in enumerate(asked, 1):
            key = f"q{number}"
            reply: Any = replies.get(key)
            action = getattr(reply, "action", "no reply")
            if action != "accept":
                return failed_call(
                    f"AX938 the question was not answered ({action}): {question_text(question)}"
                )
            if not misfit(reply.content or {}, form_of(question)):
                answers[question.id] = reply_of(question, reply.content or {})
        # what does not fit is asked again; how often is the client's limit
        if len(answers) < len(asked):
            return self._asked(tool, arguments, run_id, journal, asked)
        ways: dict[str, Any] = {
            "channel": channel,
            "journal": journal,
            "run_id": run_id,
            "answers": answers,
        }
        ways |= {
            "allow": self.serving.allow,
            "resuming": paused is not None,
            "workspace": self._folder(run_id),
        }
        try:
            result = await self._driven(
                tool, None if paused is not None else tool.given(arguments), ctx, ways
            )
        except AxilError as error:  # the run could not even begin: its input does not fit the graph
            return failed_call(str(error), run_id)
        if result.status == "done":
            return _done(result, ways["workspace"])
        if result.questions and is_askable and not live:
            return self._asked(tool, arguments, run_id, journal, result.questions)
        if result.questions and channel is not None:
            return failed_call(
                f"AX938 the question was not answered ({channel.action}): "
                f"{question_text(result.questions[0])}",
                run_id,
            )
        if result.questions:
            self._keep(tool, paused.call if paused else digest_of(arguments), run_id, journal)
        return failed_call(failure(result), run_id)

    async def _driven(self, tool: Served, given: Any, ctx: Any, ways: Mapping[str, Any]) -> Result:
        """Return the run, in a task of its own: what cancels the call is not to break into how the
        run puts itself away.
        """
        import anyio

        progress = _Progress()
        workflow = tool.workflow
        run = workflow.start(given, observers=[progress], **ways)

        async def whole() -> Result:
            async with workflow:
                return await run.result()

        job = asyncio.create_task(whole(), name=f"axil-mcp {tool.name}")
        report = asyncio.create_task(progress.send(ctx.session))
        try:
            await asyncio.wait({job})
        finally:
            with anyio.CancelScope(shield=True):
                if not job.done():
                    run.cancel("the call was cancelled")
                    await asyncio.wait({job})
                progress.end()
                await asyncio.wait({report}, timeout=_LAST_WORDS)
                report.cancel()  # of a client that does not read
        return job.result()

    def _folder(self, run_id: str) -> Path | None:
        if self.serving.workspace is None:
            return None
        folder = Path(self.serving.workspace, run_id)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    # -- runs that wait

    def _asked(
        self,
        tool: Served,
        arguments: Mapping[str, Any],
        run_id: str,
        journal: Any,
        questions: Sequence[Question],
    ) -> Any:
        state = self._keep(tool, digest_of(arguments), run_id, journal, secrets.token_urlsafe(32))
        return asking_call(questions, state)

    def _keep(self, tool: Served, call: str, run_id: str, journal: Any, state: str = "") -> str:
        """Keep a run that waits, and return what it is taken by: a secret, or its id."""
        paused = Paused(tool=tool.name, call=call, run_id=run_id)
        if self.serving.journal is None:
            self._journals[run_id] = journal
            while len(self._journals) > self.serving.most_paused:
                del self._journals[next(iter(self._journals))]
        return self._waiting.put(paused, state or run_id)


class _Live:
    """A channel to the person behind a client, over a connection that carries questions back."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self.action = ""
        """The action of the person instead of an answer."""

    async def ask(self, question: Question) -> Any:
        """Return the answer; ``MISSING``: the person gave none."""
        schema = form_of(question)
        given = await self._ctx.session.elicit_form(
            question_text(question), schema, related_request_id=self._ctx.request_id
        )
        if given.action != "accept" or misfit(given.content or {}, schema):
            self.action = given.action
            return MISSING
        return reply_of(question, given.content or {})


class _Progress:
    """Firings as progress notifications."""

    def __init__(self) -> None:
        self._nodes: asyncio.Queue[str | None] = asyncio.Queue(_BACKLOG)
        self._count = 0

    def firing_finished(self, activation: Any, kind: str, output: Any) -> None:
        """React to a node, a cycle or a graph that has ended well."""
        with suppress(asyncio.QueueFull):
            self._nodes.put_nowait(str(activation.path))

    def end(self) -> None:
        """No more will come."""
        if self._nodes.full():
            self._nodes.get_nowait()
        self._nodes.put_nowait(None)

    async def send(self, session: Any) -> None:
        """Send what comes, to the end; a client that has gone misses nothing it would read."""
        while (node := await self._nodes.get()) is not None:
            self._count += 1
            try:
                await session.report_progress(float(self._count), None, node)
            except Exception:  # noqa: BLE001
                # whatever a transport raises: progress is for listeners, and changes
                # nothing
                return


def _done(result: Result, folder: Path | None) -> Any:
    from mcp_types import CallToolResult, TextContent

    data = structured(result)
    content = [TextContent(type="text", text=text_of(data["output"]))]
    return CallToolResult(
        content=[*content, *links_of(result.run_id, folder)], structured_content=data
    )


__all__: Sequence[str] = ["Serving", "WorkflowServer"]

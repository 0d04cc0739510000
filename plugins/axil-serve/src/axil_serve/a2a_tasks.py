"""Runs as tasks of A2A, by the types and the JSON-RPC dispatcher of the protocol's own SDK.

The SDK's store of tasks, queues and executors are not used: the journal has the tasks, the engine
executes them, and a stream is that of the run.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn, cast

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import RequestHandler
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes import (
    DefaultServerCallContextBuilder,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    HTTPAuthSecurityScheme,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SecurityRequirement,
    SecurityScheme,
    SendMessageRequest,
    StringList,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from axil import AxilError
from axil_serve.a2a_push import Push
from axil_serve.access import Caller, Right
from axil_serve.conversation import (
    Words,
    answer_open,
    earlier_messages,
    input_from,
    last_nodes,
    output_text,
    question_text,
    stopped,
    takes_messages,
    until_stopped,
)
from axil_serve.errors import NotFound
from axil_serve.failures import public_message, status_of
from axil_serve.files import RunFile
from axil_serve.request import caller_of, number_in
from axil_serve.service import OVER, RunService
from axil_serve.streams import StreamPermit

log = logging.getLogger("axil_serve")

_STATES: Final = {
    "queued": TaskState.TASK_STATE_SUBMITTED,
    "done": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "limited": TaskState.TASK_STATE_FAILED,
    "parked": TaskState.TASK_STATE_FAILED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
}
"""From the status of a run to the state of its task; of all others it is at work."""
_PAGE: Final = 50
_LATEST: Final = 10_000
"""The latest runs, which are the tasks that are listed."""
_MODES: Final = ("text/plain", "application/json")
Event = Message | Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent


def card_of(service: RunService, name: str, base: str) -> dict[str, Any]:
    """Return the agent card of a workflow. ``base``: the address of the server."""
    graph = service.workflows[name].plan.graph
    described = graph.spec.description or f"The workflow {name}."
    url = f"{base.rstrip('/')}/a2a/{name}"
    card = AgentCard(
        name=name,
        description=described,
        version=graph.digest[:12],
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=version)
            for version in ("1.0", "0.3")
        ]
        + [AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True, push_notifications=bool(service.push_urls)),
        security_schemes={
            "token": SecurityScheme(
                http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer")
            )
        },
        security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
        default_input_modes=_MODES,
        default_output_modes=_MODES,
        skills=[AgentSkill(id=name, name=name, description=described, tags=["workflow"])],
    )
    return agent_card_to_dict(card)


def endpoints_of(service: RunService, path: str) -> list[Route]:
    """Return the routes for JSON-RPC, of version 1.0 of the protocol and of 0.3, and for REST."""
    logging.getLogger("a2a.server.routes.jsonrpc_dispatcher").addFilter(_has_no_body)
    tasks, contexts = _Tasks(service), _Contexts()
    rpc = create_jsonrpc_routes(tasks, path, context_builder=contexts, enable_v0_3_compat=True)
    rest = create_rest_routes(tasks, contexts, path_prefix=path)
    return [
        Route(route.path, _refusing(route.endpoint), methods=list(route.methods or ()))
        for route in (*rpc, *rest)
        if isinstance(route, Route)  # others are of tenants
    ]


_refused: ContextVar[HTTPException | None] = ContextVar("refused", default=None)
"""The refusal of the request that is handled, which errors of the protocol have no status for."""


def _refusing(endpoint: Any) -> Callable[[Request], Awaitable[Response]]:
    async def call(request: Request) -> Response:
        _refused.set(None)
        response = await endpoint(request)
        if (refusal := _refused.get()) is not None:
            raise refusal
        return response

    return call


def _has_no_body(record: logging.LogRecord) -> bool:
    """Return whether a line of the SDK may be logged: bodies of requests hold secrets."""
    return not str(record.msg).startswith("Request body")


class _Contexts(DefaultServerCallContextBuilder):
    """The data of a request that the handler needs: caller, workflow, address of the server."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state["call"] = _Call(
            caller=caller_of(request),
            workflow=str(request.path_params["workflow"]),
            base=str(request.base_url).rstrip("/"),
        )
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    caller: Caller
    workflow: str
    base: str

    @staticmethod
    def of(context: ServerCallContext) -> _Call:
        return cast("_Call", context.state["call"])


class _Tasks(RequestHandler):
    """The runs of a service as tasks."""

    def __init__(self, service: RunService) -> None:
        self._service, self._push = service, Push(service)

    async def on_message_send(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Task | Message:
        """Start a run or answer one; return its task when it has ended or asks."""
        async with _errors():
            call = _Call.of(context)
            with self._service.permit(call.caller) as permit:
                run_id, after = await self._asked(call, params)
                if not params.configuration.return_immediately:
                    given: dict[str, Any] = {"after": after, "permit": permit}
                    await stopped(self._service, call.caller, run_id, **given)
            return await self._task(call, run_id)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Start a run or answer one, and yield what happens until it has ended or asks."""
        async with _errors():
            call = _Call.of(context)
            with self._service.permit(call.caller) as permit:
                run_id, after = await self._asked(call, params)
                begun = await self._task(call, run_id, is_whole=False)
                begun.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_WORKING))
                yield begun
                async with aclosing(self._events(call, run_id, after, permit)) as events:
                    async for event in events:
                        yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Yield what happens to a run from now on."""
        async with _errors():
            call = _Call.of(context)
            run = await self._run(call, params.id)
            if run["status"] in OVER:
                raise UnsupportedOperationError("the task has ended.")
            with self._service.permit(call.caller) as permit:
                steps = await self._service.read(self._service.steps, call.caller, params.id)
                yield await self._task(call, params.id)
                after = str(steps[-1]["id"])
                async with aclosing(self._events(call, params.id, after, permit)) as events:
                    async for event in events:
                        yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """Return the task of a run."""
        async with _errors():
            return await self._task(_Call.of(context), params.id)

    async def on_cancel_task(
        self, params: CancelTaskRequest, context: ServerCallContext
    ) -> Task | None:
        """Cancel a run."""
        async with _errors():
            call = _Call.of(context)
            call.caller.check("run")
            if (await self._run(call, params.id))["status"] in OVER:
                raise TaskNotCancelableError("the task has ended.")
            await self._service.cancel(call.caller, params.id)
            return await self._task(call, params.id)

    async def on_list_tasks(
        self, params: ListTasksRequest, context: ServerCallContext
    ) -> ListTasksResponse:
        """Return the runs of the workflow that the caller sees, the last changed first."""
        async with _errors():
            call = _Call.of(context)
            found = partial(
                self._service.list,
                call.caller,
                among=_LATEST,
                workflow=call.workflow,
                session=params.context_id,
            )
            runs = await self._service.read(lambda: list(found()))
            since = params.status_timestamp_after.ToNanoseconds() / 1e9
            if params.HasField("status_timestamp_after"):
                runs = [run for run in runs if run["touched"] >= since]
            if params.status:  # whether a run asks is in its record alone
                runs = [run for run in runs if _state(run) == params.status or _may_ask(run)]
                looked = [await self._run(call, run["run_id"]) for run in runs if _may_ask(run)]
                states = {run["run_id"]: _state(run) for run in (*runs, *looked)}
                runs = [run for run in runs if states[run["run_id"]] == params.status]
            size = min(params.page_size or _PAGE, 100)
            first = number_in(params.page_token or "0")
            page = [
                await self._task(call, run["run_id"], is_whole=params.include_artifacts)
                for run in runs[first : first + size]
            ]
            is_last = first + size >= len(runs)
            return ListTasksResponse(
                tasks=page,
                next_page_token="" if is_last else str(first + size),
                page_size=size,
                total_size=len(runs),
            )

    async def on_get_extended_agent_card(self, params: Any, context: ServerCallContext) -> NoReturn:
        """Refuse: the card says the same with a token."""
        raise ExtendedAgentCardNotConfiguredError

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Store an address to which the task is sent when it has ended or asks."""
        async with _errors():
            call = await self._notified(context, params.task_id, "run")
            return self._add_push(call, params.task_id, params)

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Return an address of a task."""
        async with _errors():
            call = await self._notified(context, params.task_id)
            for config in self._push.listed(params.task_id, call.caller.name):
                if config.id == params.id:
                    return config
            raise TaskNotFoundError("the task has no such notification.")

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return the addresses of a task that the caller stored."""
        async with _errors():
            call = await self._notified(context, params.task_id)
            configs = self._push.listed(params.task_id, call.caller.name)
            return ListTaskPushNotificationConfigsResponse(configs=configs)

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Forget an address of a task."""
        async with _errors():
            call = await self._notified(context, params.task_id, "run")
            self._push.remove(params.task_id, call.caller.name, params.id)

    async def _notified(
        self, context: ServerCallContext, run_id: str, right: Right = "look"
    ) -> _Call:
        """Return the call, if notifications are sent and the caller sees the task."""
        call = _Call.of(context)
        call.caller.check(right)
        if not self._push.is_on:
            raise PushNotificationNotSupportedError
        await self._run(call, run_id)
        return call

    def _add_push(
        self, call: _Call, run_id: str, config: TaskPushNotificationConfig
    ) -> TaskPushNotificationConfig:
        make_task = partial(self._task, call, run_id)
        return self._push.add(run_id, call.caller.name, config, make_task)

    # ---------------------------------------------------------------------------- messages in

    async def _asked(self, call: _Call, params: SendMessageRequest) -> tuple[str, str]:
        """Start a run, or answer one; return its id and that of its last known step."""
        config = params.configuration.task_push_notification_config
        if not config.url:
            return await self._begun(call, params.message)
        if not self._push.is_on:
            raise PushNotificationNotSupportedError
        self._push.check(config)
        run_id, after = await self._begun(call, params.message)
        self._add_push(call, run_id, config)
        return run_id, after

    async def _begun(self, call: _Call, message: Message) -> tuple[str, str]:
        service, caller = self._service, call.caller
        caller.check("look")
        if message.task_id:
            run = await self._run(call, message.task_id)
            if message.context_id not in ("", run["session"]):
                raise InvalidParamsError("the task is not in this context.")
            if run["status"] in OVER:
                raise UnsupportedOperationError("the task has ended; send a message without it.")
            metadata = MessageToDict(message.metadata)
            question = str(metadata.get("question", ""))
            answer = _value(message)
            return message.task_id, await answer_open(
                service, caller, message.task_id, answer, question=question
            )
        session = message.context_id or f"a2a-{secrets.token_hex(8)}"
        given = _value(message)
        if isinstance(given, str) and takes_messages(service, call.workflow):
            earlier = await earlier_messages(service, caller, session)
            messages = [*earlier, {"role": "user", "content": given}]
            given = input_from(service, call.workflow, messages)
        files = list[str]()
        try:
            await self._receive(call, message, files)
            run_id = await service.start(caller, call.workflow, given, session=session, files=files)
        finally:
            for each in files:  # the run has copies of them
                await service.remove_upload(caller, each)
        return run_id, ""

    async def _receive(self, call: _Call, message: Message, files: list[str]) -> None:
        """Store the files of a message, and add the ids of the uploads to ``files``."""
        for part in message.parts:
            if part.HasField("raw"):
                upload = await self._service.upload(
                    call.caller, part.filename, part.media_type, _once(part.raw)
                )
                files.append(upload.file_id)

    # ------------------------------------------------------------------------------- tasks out

    async def _run(self, call: _Call, run_id: str) -> dict[str, Any]:
        """Return a run of the workflow. Raises: NotFound (AX965): there is none."""
        run = await self._service.result(call.caller, run_id)
        if run["workflow"] != call.workflow:
            message = f'the workflow "{call.workflow}" has no run "{run_id:.100}".'
            raise NotFound("AX965", message, "Ask the agent that has the task.")
        return run

    async def _task(self, call: _Call, run_id: str, *, is_whole: bool = True) -> Task:
        run = await self._run(call, run_id)
        artifacts: list[Artifact] = []
        if is_whole and run["status"] == "done":
            artifacts = [
                _output(output_text(run), run["output"]),
                *await self._artifacts(call, run_id),
            ]
        return Task(id=run_id, context_id=run["session"], status=_status(run), artifacts=artifacts)

    async def _artifacts(self, call: _Call, run_id: str) -> list[Artifact]:
        """Return the files that a run wrote; each is had at its address, with the same token."""
        try:
            files, _ = await self._service.run_files(call.caller, run_id)
        except NotFound:  # the server keeps none
            return []
        return [_file(call.base, run_id, each) for each in files if each.kind == "artifact"]

    async def _events(
        self, call: _Call, run_id: str, after: str, permit: StreamPermit
    ) -> AsyncGenerator[Event]:
        service, caller = self._service, call.caller
        context_id = str((await self._run(call, run_id))["session"])

        def made(artifact: Artifact, append: bool, last: bool) -> TaskArtifactUpdateEvent:
            return TaskArtifactUpdateEvent(
                task_id=run_id,
                context_id=context_id,
                artifact=artifact,
                append=append,
                last_chunk=last,
            )

        words, is_begun = Words(last_nodes(service, call.workflow)), False
        stream = until_stopped(service, caller, run_id, after=after, permit=permit)
        async with aclosing(stream) as batches:
            async for event in (event async for batch in batches for event in batch):
                known, text = words.fields, words.add(event)
                if text:
                    part = Artifact(artifact_id="output", name="output", parts=[Part(text=text)])
                    yield made(part, is_begun, last=False)
                    is_begun = True
                if words.fields not in (None, {}, known):  # these replace what was sent before
                    yield made(_output("", words.fields), append=False, last=False)
        run = await self._run(call, run_id)
        if run["status"] == "done":
            whole = output_text(run)
            is_begun = is_begun and not words.is_superseded(whole)  # else this replaces it
            rest = _output(words.rest(whole) if is_begun else whole, run["output"])
            yield made(rest, is_begun, last=True)
            for each in await self._artifacts(call, run_id):
                yield made(each, append=False, last=True)
        yield TaskStatusUpdateEvent(task_id=run_id, context_id=context_id, status=_status(run))


@asynccontextmanager
async def _errors() -> AsyncGenerator[None]:
    """Raise errors of axil as those of the protocol; of others nothing is said but that."""
    try:
        yield
    except (A2AError, HTTPException):
        raise
    except AxilError as error:
        status = status_of(error)
        if status in (403, 503):
            _refused.set(HTTPException(status, public_message(error)))
            raise InvalidParamsError(public_message(error)) from error
        if status == 404:
            raise TaskNotFoundError(str(error)) from error
        if status < 500:
            raise InvalidParamsError(str(error)) from error
        log.error("a request of a2a failed: %s", error)
        raise InternalError("the server failed to handle the request.") from error
    except Exception as error:
        log.exception("a request of a2a failed")
        raise InternalError("the server failed to handle the request.") from error


def _value(message: Message) -> Any:
    """Return what a message says: its texts, or its data.

    Raises: InvalidParamsError: both; ContentTypeNotSupportedError: an address of a file.
    """
    texts = [part.text for part in message.parts if part.HasField("text")]
    data = [_whole(MessageToDict(part.data)) for part in message.parts if part.HasField("data")]
    if any(part.HasField("url") for part in message.parts):
        raise ContentTypeNotSupportedError("files are sent as bytes; no address is fetched.")
    if data and (texts or len(data) > 1):
        raise InvalidParamsError("send texts, or one part of data.")
    return data[0] if data else "".join(texts)


def _whole(value: Any) -> Any:
    """Return data with integers where the protocol, which has no other numbers, made floats.

    >>> _whole({"a": [1.0, 1.5, True]})
    {'a': [1, 1.5, True]}
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_whole(each) for each in cast("list[Any]", value)]
    return value


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _may_ask(run: Mapping[str, Any]) -> bool:
    return run["status"] not in OVER and run["status"] != "queued"


def _state(run: Mapping[str, Any]) -> TaskState:
    if run.get("questions"):
        return TaskState.TASK_STATE_INPUT_REQUIRED
    return _STATES.get(run["status"], TaskState.TASK_STATE_WORKING)


def _status(run: Mapping[str, Any]) -> TaskStatus:
    parts: list[Part] = []
    if run["questions"]:
        shown = ("id", "text", "kind", "options", "default")
        every = [{name: each[name] for name in shown} for each in run["questions"]]
        parts = [
            Part(text=question_text(run["questions"][0])),
            Part(data=_data({"questions": every})),
        ]
    elif run["error"] and run["status"] in OVER:
        parts = [Part(text=run["error"])]
    message = None
    if parts:
        id = f"{run['run_id']}-{run['steps']}"
        message = Message(message_id=id, role=Role.ROLE_AGENT, parts=parts, task_id=run["run_id"])
    return TaskStatus(state=_state(run), message=message, timestamp=_time(run["touched"]))


def _output(text: str, output: Any) -> Artifact:
    """Return the output of a run: as a text, and what is no text also as data."""
    parts = [Part(text=text)] if text else []
    if output is not None and not isinstance(output, str):
        parts.append(Part(data=_data(output)))
    return Artifact(artifact_id="output", name="output", parts=parts or [Part(text="")])


def _file(base: str, run_id: str, file: RunFile) -> Artifact:
    url = f"{base}/v1/runs/{run_id}/files/{file.file_id}"
    part = Part(url=url, filename=file.path.rpartition("/")[2], media_type=file.media_type)
    return Artifact(artifact_id=file.file_id, name=file.path, parts=[part])


def _data(value: Any) -> Value:
    return ParseDict(value, Value())


def _time(seconds: float) -> Timestamp:
    stamp = Timestamp()
    stamp.FromNanoseconds(int(seconds * 1e9))
    return stamp


__all__ = ["card_of", "endpoints_of"]

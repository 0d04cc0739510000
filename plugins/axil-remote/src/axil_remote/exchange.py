"""One message to an agent that speaks A2A, and what came of it, as plain data.

The SDK of the protocol, an extra of this distribution, is imported here and when it is used.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from axil.plugin import NotInstalled, install_advice
from axil_models import Part, ToolError, audio, file, image, is_part, text_part
from axil_remote.sending import certificates

if TYPE_CHECKING:
    from axil_remote.config import A2AConfig

_POLL: Final = 0.5
"""The most seconds between questions for a task that goes on without a stream; the first come
sooner.
"""
_TRIES: Final = 6
"""The number of such questions in a row that may fail, twice as long after each other each time:
a server may be started again.
"""
_CANCEL: Final = 5.0
"""Seconds for saying that a task is not waited for any more."""
_OVER: Final = {"completed", "failed", "canceled", "rejected", "input_required", "auth_required"}
_LARGEST: Final = 4_000_000
"""Characters and bytes of an answer."""


async def said_by(
    config: A2AConfig,
    headers: Mapping[str, str],
    parts: Sequence[Part],
    message_id: str,
    before: Mapping[str, str],
) -> dict[str, Any]:
    """Return the state of the task and the parts of the answer: ``{state, parts, task, context}``.

    Args:
        before: the ``task`` that the message continues, and the ``context`` that it belongs to.
    A task that is not waited for any more, since the run was cancelled or it took too long, is
    cancelled.

    Raises: ToolError (AX984): the agent cannot be asked; NotInstalled (AX306).
    """
    try:
        import httpx
        from a2a.client import A2ACardResolver, ClientConfig, create_client
        from a2a.client.errors import A2AClientError
        from a2a.types import Message, Role
        from a2a.utils.errors import A2AError
    except ImportError as error:
        message = "agents that speak A2A need the protocol's SDK, which is not installed."
        raise NotInstalled(message, hint=install_advice("axil-remote[a2a]")) from error
    place = f"the agent at {config.url}"
    try:
        async with (
            asyncio.timeout(config.timeout_seconds),
            httpx.AsyncClient(
                headers=dict(headers), timeout=config.timeout_seconds, verify=certificates()
            ) as http,
        ):
            card = await A2ACardResolver(http, config.url).get_agent_card()
            _check_hosts(card, config.url, place)
            # without a stream its id is known at once, by which it can be cancelled
            is_asked = not card.capabilities.streaming
            client = await create_client(card, ClientConfig(httpx_client=http, polling=is_asked))
            sent = Message(
                message_id=message_id,
                role=Role.ROLE_USER,
                parts=[_sent(part) for part in parts],
                context_id=before.get("context", ""),
                task_id=before.get("task", ""),
            )
            answer = _Answer()
            try:
                await _follow(client, sent, answer)
            except asyncio.CancelledError:
                await _cancel(client, answer)
                raise
            return answer.plain()
    except TimeoutError as error:
        message = f"{place} took longer than {config.timeout_seconds:g} seconds."
        hint = "It was to be cancelled. Raise timeout_seconds if it may take longer."
        raise ToolError("AX984", message, hint) from error
    except (A2AClientError, A2AError, httpx.HTTPError) as error:
        message = f"{place} cannot be asked: {str(error)[:500] or type(error).__name__}"
        raise ToolError("AX984", message.rstrip(".") + ".", "Is the agent there?") from error


async def _follow(client: Any, sent: Any, answer: _Answer) -> None:
    """Send the message, and take in what comes of it until it is over."""
    import httpx
    from a2a.client.errors import A2AClientError
    from a2a.types import GetTaskRequest, SendMessageRequest

    try:
        async for event in client.send_message(SendMessageRequest(message=sent)):
            answer.take(event)
    except (A2AClientError, httpx.HTTPError):
        if not answer.is_open:  # else the task may go on, though its stream broke off
            raise
    wait, failed = _POLL / 16, 0
    while answer.is_open:
        await asyncio.sleep(wait * 2**failed)
        try:
            answer.take_task(await client.get_task(GetTaskRequest(id=answer.task)))
        except (A2AClientError, httpx.HTTPError):
            wait, failed = _POLL, failed + 1
            if failed == _TRIES:
                raise
        else:
            wait, failed = min(wait * 2, _POLL), 0


async def _cancel(client: Any, answer: _Answer) -> None:
    """Cancel the task if it goes on; that the agent cannot be reached changes nothing here."""
    import httpx
    from a2a.client.errors import A2AClientError
    from a2a.types import CancelTaskRequest
    from a2a.utils.errors import A2AError

    if answer.is_open:
        with contextlib.suppress(TimeoutError, A2AClientError, A2AError, httpx.HTTPError):
            async with asyncio.timeout(_CANCEL):
                await client.cancel_task(CancelTaskRequest(id=answer.task))


def _check_hosts(card: Any, url: str, place: str) -> None:
    """Raises: ToolError (AX984): its card leads to another host than the settings."""
    for each in card.supported_interfaces:
        leads_to = str(each.url)
        if urlsplit(leads_to).hostname != urlsplit(url).hostname:
            message = f"the card of {place} sends messages to {leads_to[:200]}."
            raise ToolError("AX984", message, "Set url to that host, if you trust it.")


class _Answer:
    """The answer of an agent, as far as it has come."""

    def __init__(self) -> None:
        self.state, self.task, self.context = "completed", "", ""
        self._artifacts: dict[str, list[Any]] = {}
        self._said: list[Any] = []

    @property
    def is_open(self) -> bool:
        """True if there is a task that is at work."""
        return bool(self.task) and self.state not in _OVER

    def take(self, event: Any) -> None:
        """Take in an event of the stream."""
        kind = event.WhichOneof("payload")
        if kind == "message":
            self._said, self.context = list(event.message.parts), event.message.context_id
        elif kind == "task":
            self.take_task(event.task)
        elif kind == "status_update":
            update = event.status_update
            self.task, self.context = update.task_id, update.context_id
            self._status(update.status)
        elif kind == "artifact_update":
            update = event.artifact_update
            self.task, self.context = update.task_id, update.context_id
            parts = self._artifacts.setdefault(update.artifact.artifact_id, [])
            if not update.append:
                parts.clear()
            parts += update.artifact.parts

    def take_task(self, task: Any) -> None:
        """Take in a whole task."""
        self.task, self.context = task.id, task.context_id
        for artifact in task.artifacts:
            self._artifacts[artifact.artifact_id] = list(artifact.parts)
        self._status(task.status)

    def _status(self, status: Any) -> None:
        from a2a.types import TaskState

        self.state = TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()
        self._said = list(status.message.parts) if status.HasField("message") else []

    def plain(self) -> dict[str, Any]:
        """Return it as plain data. Raises: ToolError (AX984): it is too large."""
        made = [part for parts in self._artifacts.values() for part in parts]
        chosen = made if made and self.state == "completed" else self._said
        if sum(part.ByteSize() for part in chosen) > _LARGEST:
            raise ToolError("AX984", f"the answer is longer than {_LARGEST} bytes.")
        parts = _joined([_received(part) for part in chosen])
        return {"state": self.state, "parts": parts, "task": self.task, "context": self.context}


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Return parts with neighbouring texts as one: they may be pieces of a stream."""
    made: list[Part] = []
    for part in parts:
        if made and part["type"] == made[-1]["type"] == "text":
            made[-1] = text_part(made[-1]["text"] + part["text"])
        else:
            made.append(part)
    return made


def _sent(part: Part) -> Any:
    from a2a.types import Part as Sent

    if part["type"] == "text":
        return Sent(text=part["text"])
    name, media = str(part.get("name") or ""), str(part.get("media_type") or "")
    if part.get("data"):
        raw = base64.b64decode(part["data"])
        return Sent(raw=raw, filename=name, media_type=media)
    if part.get("url"):
        return Sent(url=part["url"], filename=name, media_type=media)
    raise ToolError("AX984", "a file that only a provider has cannot be sent to another agent.")


def _received(part: Any) -> Part:
    from a2a.helpers import get_data_parts

    kind, media = part.WhichOneof("content"), str(part.media_type)
    if kind == "data":
        return text_part(json.dumps(get_data_parts([part])[0], ensure_ascii=False))
    if kind == "text":
        return text_part(part.text)
    source: Any = bytes(part.raw) if kind == "raw" else str(part.url)
    made = {"image": image, "audio": audio}.get(media.partition("/")[0], file)
    given = made(source, media_type=media, name=str(part.filename))
    return given if is_part(given) else text_part(str(cast("Any", given)))

"""Push notifications of A2A: tasks are sent to addresses of clients when they have stopped.

A client names an address for a task; when the run has ended, or asks, the task is sent there. Only
addresses below those that the server was started with are taken, so no client makes the server send
requests to where it likes. Redirects are not followed, and nothing of an address or a secret is
logged. Addresses are in memory: they are set again at a server that was started again.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpx
from a2a.server.tasks.push_notification_config_store import normalize_push_notification_config
from a2a.types import Task, TaskPushNotificationConfig, TaskState
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict

from axil import AxilError
from axil_serve.errors import Busy, NotFound
from axil_serve.service import OVER, RunService

log = logging.getLogger("axil_serve")

MOST_EACH: Final = 10
"""Addresses of one task."""
MOST: Final = 10_000
"""Tasks with addresses."""
_SECONDS: Final = 10.0
"""The time in which an address has to answer."""
_PAUSES: Final = (1.0, 10.0)
"""Seconds before the second try and before the third one."""
_PORTS: Final = {"http": 80, "https": 443}
_STOPPED: Final = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_INPUT_REQUIRED,
    }
)
MakeTask = Callable[[], Awaitable[Task]]


@dataclass(slots=True)
class _Watched:
    """A run with addresses, by the name of the caller and the id of the address."""

    task: MakeTask
    configs: dict[tuple[str, str], TaskPushNotificationConfig] = field(
        default_factory=dict[tuple[str, str], TaskPushNotificationConfig]
    )
    seen: tuple[str, float, int] | None = None
    """The revision of the run when its task was sent last."""
    sending: asyncio.Task[None] | None = None


class Push:
    """The addresses of tasks, and what is sent there."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._watched: dict[str, _Watched] = {}
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_on(self) -> bool:
        """True if the server was started with addresses."""
        return bool(self._service.push_urls)

    def check(self, config: TaskPushNotificationConfig) -> None:
        """Raises: InvalidParamsError: the address is not below one that is allowed."""
        if not any(is_below(config.url, allowed) for allowed in self._service.push_urls):
            raise InvalidParamsError("this server sends no notifications to that address.")

    def add(
        self, run_id: str, owner: str, config: TaskPushNotificationConfig, task: MakeTask
    ) -> TaskPushNotificationConfig:
        """Store an address of a run, watch the run, and return the address with its id.

        Args:
            task: returns the task as it is.
        Raises: InvalidParamsError: the address is not allowed; Busy (AX964): there are too many.
        """
        self.check(config)
        stored = normalize_push_notification_config(run_id, config)
        watched = self._watched.get(run_id) or _Watched(task)
        known = watched.configs.keys() | {(owner, stored.id)}
        if len(known) > MOST_EACH or len(self._watched.keys() | {run_id}) > MOST:
            raise Busy("AX964", "there are too many notifications.", "Delete one.")
        watched.configs[owner, stored.id] = stored
        self._watched[run_id] = watched
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return stored

    def listed(self, run_id: str, owner: str) -> list[TaskPushNotificationConfig]:
        """Return the addresses that a caller stored for a run."""
        watched = self._watched.get(run_id)
        configs = watched.configs.items() if watched is not None else ()
        return [config for (of, _), config in configs if of == owner]

    def remove(self, run_id: str, owner: str, config_id: str) -> None:
        """Forget an address. Raises: NotFound (AX965)."""
        watched = self._watched.get(run_id)
        if watched is None or watched.configs.pop((owner, config_id), None) is None:
            message = f'the task has no notification "{config_id:.100}".'
            raise NotFound("AX965", message, "List the notifications of the task.")
        if not watched.configs:
            del self._watched[run_id]

    async def _watch(self) -> None:
        """Look at the runs, in whatever process they are executed, until none is left."""
        service = self._service
        while self._watched:
            with suppress(AxilError):  # the journal cannot be read now
                for info in await service.read(service.journal.infos, list(self._watched)):
                    watched, seen = self._watched.get(info.run_id), info.revision
                    if watched is None or watched.sending is not None or watched.seen == seen:
                        continue
                    watched.seen = seen
                    if info.status in (*OVER, "paused"):
                        is_last = info.status in OVER
                        watched.sending = asyncio.create_task(
                            self._send(info.run_id, watched, is_last=is_last)
                        )
            await asyncio.sleep(service.poll_seconds)

    async def _send(self, run_id: str, watched: _Watched, *, is_last: bool) -> None:
        configs = [*watched.configs.items()]
        try:
            task = await watched.task()
            if task.status.state in _STOPPED:  # else its bodies sleep
                body = MessageToDict(to_stream_response(task))
                sent = (self._deliver(run_id, each, body) for _, each in configs)
                await asyncio.gather(*sent)
        except AxilError as error:
            log.error("the task %s could not be sent: %s", run_id, error)
        finally:
            watched.sending = None
            if is_last:
                for key, each in configs:
                    if watched.configs.get(key) is each:
                        del watched.configs[key]
                watched.seen = None  # those that were added meanwhile are sent it, too
                if not watched.configs and self._watched.get(run_id) is watched:
                    del self._watched[run_id]

    async def _deliver(self, run_id: str, config: TaskPushNotificationConfig, body: Any) -> None:
        """Send a task to one address, again if it fails."""
        for pause in (*_PAUSES, None):
            try:
                async with asyncio.timeout(_SECONDS):
                    if (status := await _post(config, body)) < 300:
                        return
                reason = f"the status {status}"
            # what these say may hold the address or a secret
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
                reason = type(error).__name__
            if pause is None:
                log.warning("a notification of the task %s was not taken: %s", run_id, reason)
                return
            await asyncio.sleep(pause)


async def _post(config: TaskPushNotificationConfig, body: Any) -> int:
    """Send a request; return the status of its answer, of which nothing is read.

    A client of httpx would log the address, and read proxies and secrets from the environment.
    """
    headers = {"X-A2A-Notification-Token": config.token} if config.token else {}
    own = config.authentication
    if own.scheme and own.credentials:
        headers["Authorization"] = f"{own.scheme} {own.credentials}"
    seconds = dict.fromkeys(("connect", "read", "write", "pool"), _SECONDS)
    more = {"timeout": seconds}
    request = httpx.Request("POST", config.url, json=body, headers=headers, extensions=more)
    async with httpx.AsyncHTTPTransport(verify=_authorities(), trust_env=False) as transport:
        response = await transport.handle_async_request(request)
        await response.aclose()
        return response.status_code


@cache
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


def is_below(url: str, allowed: str) -> bool:
    """Return whether an address is one that is allowed, or lies below it.

    >>> is_below("https://a.example/hooks/1", "https://a.example/hooks")
    True
    >>> is_below("https://a.example/hooks/../x", "https://a.example/hooks")
    False
    >>> is_below("https://a.example.evil/hooks", "https://a.example/")
    False
    """
    try:
        given, base = urlsplit(url), urlsplit(allowed)
        ports = [each.port or _PORTS[each.scheme] for each in (given, base)]
    except (ValueError, KeyError):
        return False
    path, root = unquote(given.path), base.path.rstrip("/")
    is_plain = url.isprintable() and not any(char in url for char in " \\@#")
    return (
        is_plain
        and (given.scheme, given.hostname, ports[0]) == (base.scheme, base.hostname, ports[1])
        and not {".", ".."} & set(path.split("/"))
        and (not root or path == root or path.startswith(f"{root}/"))
    )


__all__ = ["MOST", "MOST_EACH", "Push", "is_below"]

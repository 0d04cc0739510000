"""Calls of models through the batch APIs of their services: at half the price, within a day.

Within ``use_batches`` the adapters do not ask their service at once: ``ModelBatches`` collects what
they would have sent. When nothing more has come for a while, what waits is submitted, one batch for
each service (and model, where a service wants that); the reply to each request goes to the call
that waits for it.

A call is known by its run, firing, step and request, and its batch is kept in a file, before it is
submitted. So a process that was killed is followed by one whose runs ask for the same again, and
are given the replies of the batches that the first one submitted. The file holds ids and no texts:
replies are read from the service.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Final, Protocol, cast

from axil import ConfigError, Problem
from axil_models.askers import asker
from axil_models.batch_file import BatchFile, Submitted
from axil_models.errors import ModelError
from axil_models.requests import Emit, Reply
from axil_models.retries import Showing, persevere
from axil_models.service_errors import BrokenOff, Malformed, reading_reply
from axil_models.services import Service

Outcome = Mapping[str, object] | ModelError
"""The reply of a service to one request, in one piece, or what it failed with."""

_LONGEST_SECONDS: Final = 30 * 86_400.0
_MOST_FAILURES: Final = 10
"""In a row, of asking after a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A batch that has ended."""

    outcomes: Mapping[str, Outcome]
    """By the id of the request."""
    rest: ModelError
    """The error of a request that is not among them."""


class BatchApi(Protocol):
    """The batch API of a service. What its methods raise, ``service.meaning_of`` understands."""

    @property
    def service(self) -> Service[Any]:
        """The way to the service."""
        ...

    @property
    def place(self) -> str:
        """The service, its account and its API, which all requests of one batch share."""
        ...

    @property
    def most_requests(self) -> int:
        """The requests that one batch may have."""
        ...

    @property
    def most_bytes(self) -> int:
        """The size that one batch may have."""
        ...

    @property
    def discount(self) -> float:
        """The share of the usual price that is not asked for."""
        ...

    def line(self, id: str, body: Mapping[str, object]) -> bytes:
        """Return a request as a batch holds it."""
        ...

    async def submit(self, token: str, lines: Sequence[bytes]) -> str:
        """Submit a batch, and return the id that the service gave it; ``token``: an id of ours."""
        ...

    async def find(self, batch: Submitted) -> str:
        """Return the id of a batch that may have been submitted; empty: it was not."""
        ...

    async def ended(self, id: str) -> Ended | None:
        """Return what came of a batch; None: it has not ended."""
        ...


@dataclass(slots=True)
class _Asked:
    """A call that waits for its reply."""

    api: BatchApi
    line: bytes
    run: str
    answer: asyncio.Future[Outcome]


@dataclass(slots=True)
class _Open:
    """Calls that are submitted next, together."""

    api: BatchApi
    keys: list[str] = field(default_factory=list[str])
    size: int = 0
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True, kw_only=True)
class ModelBatches:
    """The model calls of many runs, collected in batches; for one event loop."""

    file: BatchFile
    quiet_seconds: float = 1.0
    """A batch is submitted when nothing has been added to it for so long."""
    first_wait_seconds: float = 1.0
    """Before a batch is asked after for the second time; it doubles with each time."""
    longest_wait_seconds: float = 60.0
    changed: Callable[[], None] | None = None
    """Called when a batch was submitted or has ended."""
    sent: dict[str, int] = field(default_factory=dict[str, int], init=False)
    """The batches that were submitted here, and the number of requests in each."""
    taken_on: dict[str, None] = field(default_factory=dict[str, None], init=False)
    """The batches that another process submitted, and whose replies were awaited here."""
    discount: float = field(default=0.0, init=False)
    """The share of the usual price that is not asked for."""
    refusal: ConfigError | None = field(default=None, init=False)
    """The error of the first model that has no batch API."""
    _open: dict[str, _Open] = field(default_factory=dict[str, _Open], init=False)
    _asked: dict[str, _Asked] = field(default_factory=dict[str, _Asked], init=False)
    _ended: dict[int, Ended] = field(default_factory=dict[int, Ended], init=False)
    _tasks: dict[int, asyncio.Task[None]] = field(
        default_factory=dict[int, "asyncio.Task[None]"], init=False
    )

    # ------------------------------------------------------------------------------- the calls

    async def reply(
        self,
        api: BatchApi,
        asked: Mapping[str, object],
        emit: Emit,
        read: Callable[[Mapping[str, object], Showing], Reply],
    ) -> Reply:
        """Return the reply to a request, tried as the service's config says.

        ``read``: makes it from what the service sent, priced as usual. Raises: ModelError.
        """
        body = _body(asked)
        # a batch may take a day, and each further try another one
        retry = api.service.config.retry.model_copy(update={"total_seconds": _LONGEST_SECONDS})

        async def attempt(show: Showing) -> Reply:
            key = self._key(api, body)
            whole = await self._whole(api, key, body)
            try:
                with reading_reply():
                    return _discounted(read(whole, show), api.discount)
            except (ModelError, Malformed, BrokenOff):
                self.file.forget(key)
                raise

        return await persevere(attempt, retry, emit, api.service.meaning_of)

    def check(self, model: object) -> None:
        """Check that a model has a batch API. Raises: ConfigError (AX981)."""
        if reason := without_batches(model):
            raise self._refused(reason, "Choose another model, or ask it without batches.")

    def refuse_elsewhere(self, path: str, kind: str) -> None:
        """Refuse a model that a node asks in another process: its calls are not collected here.

        Raises: ConfigError (AX981).
        """
        if kind == "model":
            reason = (
                f'node "{path}" asks a model in another process, where calls are not collected.'
            )
            raise self._refused(reason, "Run this node without that executor or wrapper.")

    def _refused(self, reason: str, hint: str) -> ConfigError:
        error = ConfigError(Problem("AX981", "--batch-api", reason, hint))
        self.refusal = self.refusal or error
        return error

    def check_all(self, components: Iterable[object]) -> None:
        """Check the models that components of a workflow have, as their ``models()`` says; those
        that they choose later are checked when they are asked. Raises: ConfigError (AX981).
        """
        for each in components:
            if callable(getattr(each, "models", None)):
                self.check(each)

    def settle(self, run: str) -> None:
        """Forget the calls of a run that has ended, as far as it has their replies."""
        self.file.settle(run)

    @property
    def waiting(self) -> int:
        """The number of calls that wait for their replies."""
        return len(self._asked)

    def left(self) -> list[str]:
        """Return the ids of the batches that have not ended, as far as it is known here."""
        found = self.file.ids()
        return [id for number, id in found.items() if id and number not in self._ended]

    async def close(self) -> None:
        """Leave the batches at the services, and close the file."""
        for group in self._open.values():
            if group.timer is not None:
                group.timer.cancel()
        self._open.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.file.close()

    def _key(self, api: BatchApi, body: Mapping[str, object]) -> str:
        """Return the id of a request: the same one in every process that asks it at this point."""
        text = json.dumps(body, sort_keys=True)
        for number in count():
            named = json.dumps([*asker(), api.place, text, number]).encode()
            key = hashlib.sha256(named).hexdigest()[:48]
            if key not in self._asked and not self.file.is_taken(key):
                return key
        raise AssertionError("expected a free id")

    async def _whole(
        self, api: BatchApi, key: str, body: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return what the service sent for a request. Raises: ModelError."""
        line = api.line(key, body)
        if len(line) >= api.most_bytes:
            message = f"a request of {len(line)} bytes is too large for a batch ({api.most_bytes})."
            raise ModelError(message, transient=False, hint="Make it smaller.")
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._asked[key] = _Asked(api, line, asker().run, answer)
        try:
            batch = self.file.batch_of(key)
            if batch is None:
                self._add(api, key, line)
            elif (ended := self._ended.get(batch.number)) is not None:
                self._hand_out([key], ended)
            elif batch.number not in self._tasks:
                self._start(batch.number, self._awaited(api, batch))
            outcome = await answer
        finally:
            del self._asked[key]
        if isinstance(outcome, ModelError):
            self.file.forget(key)
            raise outcome
        self.file.take(key)
        return outcome

    # ----------------------------------------------------------------------------- the batches

    def _add(self, api: BatchApi, key: str, line: bytes) -> None:
        """Add a call to those that are submitted next."""
        group = self._open.setdefault(api.place, _Open(api))
        size = len(line) + 1
        if len(group.keys) >= api.most_requests or group.size + size > api.most_bytes:
            self._submit(api.place)
            group = self._open.setdefault(api.place, _Open(api))
        group.keys.append(key)
        group.size += size
        if group.timer is not None:
            group.timer.cancel()
        later = asyncio.get_running_loop().call_later
        group.timer = later(self.quiet_seconds, self._submit, api.place)

    def _submit(self, place: str) -> None:
        """Submit what waits for a service."""
        group = self._open.pop(place)
        if group.timer is not None:
            group.timer.cancel()
        calls = {key: self._asked[key] for key in group.keys if key in self._asked}
        if calls:
            runs = {key: call.run for key, call in calls.items()}
            try:
                batch = self.file.begin(place, secrets.token_hex(16), runs, time.time())
            except Exception as error:  # noqa: BLE001  # the calls that wait raise it
                self._fail(calls, error)
                return
            lines = [call.line for call in calls.values()]
            self._start(batch.number, self._submitted(group.api, batch, lines))

    def _start(self, number: int, work: Coroutine[object, object, None]) -> None:
        task = self._tasks[number] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(partial(self._broken, number))

    def _broken(self, number: int, task: asyncio.Task[None]) -> None:
        """Raise what a task broke with: the file cannot be used, so no call can be answered."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._tasks.pop(number, None)
            self._fail(list(self._asked), error)

    async def _submitted(self, api: BatchApi, batch: Submitted, lines: Sequence[bytes]) -> None:
        """Submit a batch and wait for its end."""
        self.discount = api.discount
        try:
            id = await api.submit(batch.token, lines)
        except Exception as error:  # noqa: BLE001  # the calls that wait raise it
            meaning = api.service.meaning_of(error)
            calls = self.file.calls_of(batch.number)
            if meaning is None or not meaning.transient or (meaning.status or 500) < 500:
                self.file.drop(batch.number)
            # else the service may have it: another attempt looks for it first
            del self._tasks[batch.number]
            self._fail(calls, meaning or error)
            return
        self.file.name(batch.number, id)
        self.sent[id] = len(lines)
        self._tell()
        await self._awaited(api, replace(batch, id=id))

    async def _awaited(self, api: BatchApi, batch: Submitted) -> None:
        """Wait for the end of a batch and hand out what came of it."""
        number, id = batch.number, batch.id
        self.discount = api.discount
        calls = self.file.calls_of(number)
        try:
            if not id:
                id = await api.find(batch)
            if not id:
                self.file.drop(number)
                del self._tasks[number]
                for key in calls:
                    if (call := self._asked.get(key)) is not None:
                        self._add(call.api, key, call.line)
                return
            if not batch.id:
                self.file.name(number, id)
            if id not in self.sent:
                self.taken_on[id] = None
            ended = await self._end_of(api, id)
        except Exception as error:  # noqa: BLE001  # the calls that wait raise it
            meaning = api.service.meaning_of(error)
            if meaning is not None and meaning.status in (404, 410):
                self.file.drop(number)
                message = f"{api.service.address} no longer has the batch {id}."
                meaning = ModelError(message, status=meaning.status, transient=True)
            del self._tasks[number]
            self._fail(calls, meaning or error)
            return
        self._ended[number] = ended
        del self._tasks[number]
        self._hand_out(calls, ended)
        self._tell()

    async def _end_of(self, api: BatchApi, id: str) -> Ended:
        """Ask after a batch until it has ended. Raises: what asking raises, if it goes on so."""
        wait, failures = self.first_wait_seconds, 0
        while True:
            try:
                ended = await api.ended(id)
                failures = 0
            except Exception as error:
                meaning = api.service.meaning_of(error)
                failures += 1
                if meaning is None or not meaning.transient or failures >= _MOST_FAILURES:
                    raise
                ended = None
            if ended is not None:
                return ended
            await asyncio.sleep(wait)
            wait = min(wait * 2, self.longest_wait_seconds)

    def _hand_out(self, calls: Sequence[str], ended: Ended) -> None:
        for key in calls:
            call = self._asked.get(key)
            if call is not None and not call.answer.done():
                outcome = ended.outcomes.get(key, ended.rest)
                given = _like(outcome) if isinstance(outcome, ModelError) else outcome
                call.answer.set_result(given)

    def _fail(self, calls: Iterable[str], error: Exception) -> None:
        """Raise an error in all calls that wait for a batch."""
        for key in calls:
            call = self._asked.get(key)
            if call is not None and not call.answer.done():
                call.answer.set_exception(_like(error) if isinstance(error, ModelError) else error)

    def _tell(self) -> None:
        if self.changed is not None:
            self.changed()


def _like(error: ModelError) -> ModelError:
    """Return an equal error: each call raises its own."""
    return ModelError(
        error.message,
        status=error.status,
        retry_after_seconds=error.retry_after_seconds,
        transient=error.transient,
        hint=error.hint,
    )


def _body(asked: Mapping[str, object]) -> dict[str, object]:
    """Return a request as it is sent in a batch: the arguments of a call as one object.

    Raises: ModelError: it has headers of its own, which a batch cannot hold.
    """
    body = {name: value for name, value in asked.items() if value is not None}
    for name in ("timeout", "stream_options"):
        body.pop(name, None)
    for name in ("extra_headers", "extra_query"):
        if body.pop(name, None):
            message = f"a batch cannot hold a request with {name}."
            hint = "Leave out the setting or the tool that needs it, or ask without batches."
            raise ModelError(message, transient=False, hint=hint)
    return {**body, **cast("dict[str, Any]", body.pop("extra_body", None) or {})}


def _discounted(reply: Reply, discount: float) -> Reply:
    """Return a reply with the usage of a batch: ``cost``, where it is known, and ``discount``."""
    used = reply.usage
    return replace(reply, usage=replace(used, cost=used.cost * (1 - discount), discount=discount))


def without_batches(model: object) -> str:
    """Return the reason why a model cannot be asked in batches; empty: it can.

    A model of models can if all of them can.
    """
    inner = getattr(model, "models", None)
    if callable(inner):
        reasons = [without_batches(each) for each in cast("Sequence[Any]", inner())]
        return next(filter(None, reasons), "")
    own = getattr(model, "without_batches", None)
    if callable(own):
        return str(own())
    inner = getattr(model, "model", None)
    if callable(getattr(inner, "reply", None)):
        return without_batches(inner)
    name = getattr(model, "name", "")
    named = f' "{name}"' if isinstance(name, str) and name else ""
    return f"the model{named} ({type(model).__name__}) has no batch API."


__all__ = [
    "BatchApi",
    "Ended",
    "ModelBatches",
    "Outcome",
    "without_batches",
]

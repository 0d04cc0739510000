"""Processes of a cluster, which are kept and used again, by their resources."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import logging
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from axil import Context, NodeSpec, Out, Problem, Schema, SpecError
from axil.plugin import LoopLocal, Task, install_advice
from axil_process import Conversation, Job, ProcessError, WorkerDied, firing_of, outcome_of
from axil_ray.config import RayConfig

T = TypeVar("T")
Resources = tuple[tuple[str, float], ...]
_RAYS_NAMES: Final = {"cpus": "CPU", "gpus": "GPU"}
_OPTIONS: Final = {"cpus": "num_cpus", "gpus": "num_gpus", "memory": "memory"}
_LOOK: Final = 5.0  # seconds between two looks for a process that is not there yet
_SILENCE: Final = 30.0  # seconds; after 60, Ray ends a program that cannot reach the head
_NODE_DIED: Final = "node has died"  # in Ray's message about an actor
_CALLS: Final = 4  # of an actor at the same time: it waits in one while others bring messages


class Cluster:
    """A number of processes per set of resources, with one body at a time each."""

    def __init__(self, config: RayConfig) -> None:
        self._config = config
        self._pools = LoopLocal(dict[Resources, _Pool])
        self.started = 0
        """The number of processes so far, for tests and measurements."""

    @functools.cached_property
    def ray(self) -> Any:
        """Ray, connected. Raises: ProcessError (AX559)."""
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            hint = f"{install_advice('axil-ray[ray]')}, in the version of the cluster."
            raise ProcessError("AX559", "Ray is not installed.", hint) from None
        if not ray.is_initialized():
            try:
                ray.init(
                    address=self._config.address or None,
                    log_to_driver=False,
                    logging_level=logging.WARNING,
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                message = f"the Ray cluster cannot be reached: {error}."
                hint = "Set address, or RAY_ADDRESS, to a cluster of this version of Ray."
                raise ProcessError("AX559", message, hint) from None
        return ray

    def place(self, spec: NodeSpec) -> None:
        """Refuse a node whose resources no node of the cluster has. Raises: SpecError (AX558)."""
        lack = self._lack({**self._config.resources, **spec.extras.get("resources", {})})
        if lack is not None:
            raise SpecError(Problem("AX558", spec.where, *lack))

    def _lack(self, wanted: Mapping[str, float]) -> tuple[str, str] | None:
        """Return why no node of the cluster has these resources, and what to do; None: one has."""
        if self._config.autoscaling:
            return None
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        hint = "Correct resources, add such a node to the cluster, or set autoscaling."
        for name, amount in wanted.items():
            most = max((_amount(node, name) for node in alive), default=0.0)
            if most < amount:
                has = f"the largest has {most:g}" if most else "none has any"
                needs = f"its body needs {name}: {amount:g}"
                return f"{needs}, and {has}, of {len(alive)} nodes.", hint
        if any(all(_amount(node, n) >= a for n, a in wanted.items()) for node in alive):
            return None
        listed = ", ".join(f"{name}: {amount:g}" for name, amount in sorted(wanted.items()))
        return f"its body needs {listed}, and no node of the cluster has all of it.", hint

    async def run(self, job: Job, task: Task, ctx: Context, schema: Schema) -> Out:
        """Return one firing of a body.

        Raises: WorkerDied, BodyRaised, ProcessError; JournalError: a value cannot be sent; Pause.
        """
        given = firing_of(job, task, ctx, schema)
        wanted = {**self._config.resources, **job.get("resources", {})}
        key: Resources = tuple(sorted(wanted.items()))
        pools = self._pools.get()
        pool = pools.setdefault(key, _Pool(self._config, wanted))
        async with pool.room:
            worker = await self._ready(pool)
            pool.busy.add(worker)
            try:
                answer = await worker.execute(job, given, ctx)
            except BaseException:
                worker.kill()
                raise
            finally:
                pool.busy.discard(worker)
            pool.keep(worker, pools.values())
        return outcome_of(answer, schema)

    async def _ready(self, pool: _Pool) -> _Worker:
        """Return an idle process or a new one, which may wait for what busy ones hold."""
        while not pool.idle.empty():
            worker = pool.idle.get_nowait()
            if await worker.is_there():
                return worker
        ways = [asyncio.ensure_future(each) for each in (pool.idle.get(), self._started(pool))]
        is_wanted = False
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            is_wanted = True
        finally:
            for way in ways:
                way.cancel()
            freed, started = await asyncio.gather(*ways, return_exceptions=True)
            there = [each for each in (freed, started) if isinstance(each, _Worker)]
            for worker in there[is_wanted:]:
                pool.keep(worker, self._pools.get().values())
        if isinstance(started, BaseException) and not there:
            raise started
        there[0].wake()
        return there[0]

    async def _started(self, pool: _Pool) -> _Worker:
        """Return a process on a node that has the resources free, once there is one.

        Raises: WorkerDied; ProcessError: AX553 it cannot be started, AX558 no node has them, AX559
        the cluster does not answer.
        """
        from axil_ray.actor import BodyActor

        ray, wanted = await asyncio.to_thread(lambda: self.ray), pool.wanted
        own = {name: amount for name, amount in wanted.items() if name not in _OPTIONS}
        options: dict[str, Any] = {
            option: wanted.get(name, 0) for name, option in _OPTIONS.items() if name in wanted
        }
        actor = ray.remote(BodyActor).options(
            num_cpus=options.pop("num_cpus", 0),
            **options,
            resources=own,
            max_restarts=0,
            max_concurrency=_CALLS,
            runtime_env=dict(self._config.runtime_env),
        )
        self.started += 1
        worker = _Worker(ray, actor.remote(list(sys.path)))
        found = asyncio.ensure_future(worker.found())
        looks = 0
        try:
            while not (await asyncio.wait({found}, timeout=_LOOK))[0]:
                lack = await self._answered(lambda: self._lack(wanted))
                if lack is not None:
                    raise ProcessError("AX558", *lack)
                looks += 1
                pool.late += looks == 1
                for other in self._pools.get().values():
                    if other is not pool and pool.shares(other):
                        other.end_idle()
            await found
        except BaseException:
            found.cancel()
            worker.kill()
            raise
        finally:
            pool.late -= looks > 0
        return worker

    async def _answered(self, ask: Callable[[], T]) -> T:
        """Return what ``ask`` returns. Raises: ProcessError (AX559): the cluster is silent."""
        try:
            async with asyncio.timeout(_SILENCE):
                return await asyncio.to_thread(ask)
        except (TimeoutError, self.ray.exceptions.RayError) as error:
            message = f"the Ray cluster does not answer: {_last_line(error)}."
            hint = "Is its head there? Start it, and resume what has failed."
            raise ProcessError("AX559", message, hint) from None

    async def close(self) -> None:
        """End the processes of this event loop; the next use starts others."""
        for pool in (self._pools.pop() or {}).values():
            for worker in pool.busy:
                worker.kill()
            pool.end_idle()


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [f"no answer for {_SILENCE:g} seconds"]
    return lines[-1].strip()


def _amount(node: Mapping[str, Any], name: str) -> float:
    return float(node["Resources"].get(_RAYS_NAMES.get(name, name), 0.0))


class _Pool:
    """The processes of one event loop with the same resources."""

    def __init__(self, config: RayConfig, wanted: Mapping[str, float]) -> None:
        self.wanted, self._idle_seconds = wanted, config.idle_seconds
        self.room = asyncio.Semaphore(config.workers)
        self.idle: asyncio.LifoQueue[_Worker] = asyncio.LifoQueue()
        self.busy: set[_Worker] = set()
        self.late = 0
        """The number of processes that were not there when they were last looked for."""

    def keep(self, worker: _Worker, pools: Iterable[_Pool]) -> None:
        """Keep a process for the next firing, unless another pool waits for what it holds."""
        if any(pool.late and pool.shares(self) for pool in pools if pool is not self):
            worker.kill()
        else:
            worker.end_after(self._idle_seconds)
            self.idle.put_nowait(worker)

    def end_idle(self) -> None:
        while not self.idle.empty():
            self.idle.get_nowait().kill()

    def shares(self, other: _Pool) -> bool:
        """Return whether both take some of the same resource."""
        return not self.wanted.keys().isdisjoint(other.wanted)


class _Worker:
    """One process of the cluster; a ``Link`` while a firing lasts."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self._jobs: set[str] = set()
        self._place, self._node = "", ""
        self._end: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self._unsent: list[Mapping[str, Any]] = []
        self._received: deque[dict[str, Any]] = deque()
        self._is_receiving = False

    async def found(self) -> None:
        """Wait until it is there, and note where. Raises: WorkerDied; ProcessError (AX553)."""
        try:
            host, pid, self._node = await self._actor.where.remote()
        except self._ray.exceptions.RayError as error:
            if _NODE_DIED in str(error):
                raise WorkerDied(None, await self._ended(error)) from None
            message = f"a process for bodies could not be started: {_last_line(error)}"
            hint = "Has each node what bodies import, by its image or by runtime_env?"
            raise ProcessError("AX553", message, hint) from None
        self._place = f"process {pid} on {host}"

    def end_after(self, seconds: float) -> None:
        """End it after so many seconds, unless it is woken: others may need what it holds."""
        self._end = asyncio.get_running_loop().call_later(seconds, self.kill)

    def wake(self) -> None:
        if self._end is not None:
            self._end.cancel()

    async def is_there(self) -> bool:
        """Wake it, and return whether it still answers; one that does not is ended."""
        self.wake()
        try:
            async with asyncio.timeout(_LOOK):
                await self._actor.where.remote()
        except (self._ray.exceptions.RayError, TimeoutError):
            self.kill()
            return False
        except BaseException:
            self.kill()
            raise
        return True

    async def execute(self, job: Job, given: dict[str, Any], ctx: Context) -> Mapping[str, Any]:
        """Return the last message of a firing. The job is sent with its first firing."""
        self._begin()
        if given["job"] not in self._jobs:
            self._jobs.add(given["job"])
            given["define"] = job
        return await Conversation(self, ctx).run(given)

    def send(self, message: Mapping[str, Any], /) -> None:
        """Send a message, with the next ``receive`` unless one is waiting."""
        self._unsent.append(message)
        if self._is_receiving:
            self._actor.tell.remote(self._take_unsent())

    async def receive(self) -> Mapping[str, Any]:
        """Return the next message of the body. Raises: WorkerDied."""
        if not self._received:
            self._is_receiving, call = True, self._actor.exchange.remote(self._take_unsent())
            try:
                self._received.extend(json.loads(await call))
            except self._ray.exceptions.RayError as error:  # also a result that was lost on its way
                raise WorkerDied(None, await self._ended(error)) from None
            finally:
                self._is_receiving = False
        return self._received.popleft()

    def _take_unsent(self) -> bytes:
        sent, self._unsent = self._unsent, []
        return json.dumps(sent).encode()

    async def _ended(self, error: Exception) -> str:
        """Return why it does not answer."""
        try:
            async with asyncio.timeout(_SILENCE):
                listed = await asyncio.to_thread(self._ray.nodes)
        except (TimeoutError, self._ray.exceptions.RayError) as silent:
            return f"the cluster does not answer: {_last_line(silent)}"
        if not self._node:
            return "the node that it was to start on was lost"
        nodes = {each["NodeID"]: each for each in listed}
        node = nodes.get(self._node, {})
        if not node.get("Alive") or _NODE_DIED in str(error):
            name = node.get("NodeName") or node.get("NodeManagerAddress") or "of the cluster"
            return f"its node {name} ({self._node[:12]}) was lost"
        if isinstance(error, self._ray.exceptions.ActorDiedError):
            return f"{self._place} ended, and its node is there"
        return f"{self._place} does not answer: {_last_line(error)}"

    def kill(self) -> None:
        self._ray.kill(self._actor)

"""The run's side: processes of a cluster that are kept and used again, by what they need."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import logging
import sys
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from axil import Context, NodeSpec, Out, Problem, Schema, SpecError
from axil.driver import (
    Conversation,
    Job,
    ProcessError,
    WorkerDied,
    firing_of,
    outcome_of,
)
from axil.plugin import LoopLocal, Task, install_advice
from axil_ray.config import RayConfig

Resources = tuple[tuple[str, float], ...]
_RAYS_NAMES: Final = {"cpus": "CPU", "gpus": "GPU"}
_CALLS: Final = 4  # of an actor at the same time: it waits in one while it is told things


class Cluster:
    """A number of processes per set of resources, with one body at a time each."""

    def __init__(self, config: RayConfig) -> None:
        self._config = config
        self._pools = LoopLocal(dict[Resources, _Pool])
        self.started = 0
        """Processes so far: for tests and measurements."""

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
        if self._config.autoscaling:
            return
        wanted = {**self._config.resources, **spec.extras.get("resources", {})}
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        for name, amount in wanted.items():
            most = max((_amount(node, name) for node in alive), default=0.0)
            if most < amount:
                has = f"the largest has {most:g}" if most else "none has any"
                message = f"its body needs {name}: {amount:g}, and {has}, of {len(alive)} nodes."
                hint = "Correct resources, add such a node to the cluster, or set autoscaling."
                raise SpecError(Problem("AX558", spec.where, message, hint))
        if not any(all(_amount(node, n) >= a for n, a in wanted.items()) for node in alive):
            listed = ", ".join(f"{name}: {amount:g}" for name, amount in sorted(wanted.items()))
            message = f"its body needs {listed}, and no node of the cluster has all of it."
            hint = "Correct resources, or add such a node to the cluster."
            raise SpecError(Problem("AX558", spec.where, message, hint))

    async def run(self, job: Job, task: Task, ctx: Context, schema: Schema) -> Out:
        """Return one firing of a body.

        Raises: WorkerDied, BodyRaised, ProcessError; JournalError: a value cannot be sent; Pause.
        """
        given = firing_of(job, task, ctx, schema)
        wanted = {**self._config.resources, **job.get("resources", {})}
        key: Resources = tuple(sorted(wanted.items()))
        pools = self._pools.get()
        pool = pools.setdefault(key, _Pool(self._config.workers))
        async with pool.room:
            worker = pool.idle.pop() if pool.idle else await self._started(wanted)
            pool.busy.add(worker)
            try:
                answer = await worker.talk(job, given, ctx)
            except BaseException:
                worker.kill()
                raise
            finally:
                pool.busy.discard(worker)
            pool.idle.append(worker)
        return outcome_of(answer, schema)

    async def _started(self, wanted: Mapping[str, float]) -> _Worker:
        """Return a process on a node that has these resources free, once there is one."""
        from axil_ray.actor import BodyActor

        ray = await asyncio.to_thread(lambda: self.ray)
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
        try:
            await worker.found()
        except BaseException:
            worker.kill()
            raise
        return worker

    async def close(self) -> None:
        """End the processes of this event loop; the next use starts others."""
        for pool in (self._pools.pop() or {}).values():
            for worker in (*pool.busy, *pool.idle):
                worker.kill()


_OPTIONS: Final = {"cpus": "num_cpus", "gpus": "num_gpus", "memory": "memory"}


def _amount(node: Mapping[str, Any], name: str) -> float:
    return float(node["Resources"].get(_RAYS_NAMES.get(name, name), 0.0))


class _Pool:
    """The processes of one event loop with the same resources."""

    def __init__(self, most: int) -> None:
        self.room = asyncio.Semaphore(most)
        self.idle: list[_Worker] = []
        self.busy: set[_Worker] = set()


class _Worker:
    """One process of the cluster; a ``Link`` while a firing lasts."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self._jobs: set[str] = set()
        self._place, self._node = "", ""
        self._begin()

    def _begin(self) -> None:
        self._unsaid: list[Mapping[str, Any]] = []
        self._heard: deque[dict[str, Any]] = deque()
        self._is_hearing = False

    async def found(self) -> None:
        """Wait until it is there, and note where."""
        host, pid, self._node = await self._awaited(self._actor.where.remote())
        self._place = f"process {pid} on {host}"

    async def talk(self, job: Job, given: dict[str, Any], ctx: Context) -> Mapping[str, Any]:
        """Return the last message of a firing. The job is sent with its first firing."""
        self._begin()
        if given["job"] not in self._jobs:
            self._jobs.add(given["job"])
            given["define"] = job
        return await Conversation(self, ctx).run(given)

    def tell(self, message: Mapping[str, Any], /) -> None:
        """See ``Link``: at once while messages are awaited, else with the next wait."""
        self._unsaid.append(message)
        if self._is_hearing:
            self._actor.tell.remote(self._packed())

    async def hear(self) -> Mapping[str, Any]:
        """See ``Link``. Raises: WorkerDied."""
        if not self._heard:
            self._is_hearing, call = True, self._actor.exchange.remote(self._packed())
            try:
                self._heard.extend(json.loads(await self._awaited(call)))
            finally:
                self._is_hearing = False
        return self._heard.popleft()

    def _packed(self) -> bytes:
        said, self._unsaid = self._unsaid, []
        return json.dumps(said).encode()

    async def _awaited(self, call: Any) -> Any:
        try:
            return await call
        except self._ray.exceptions.RayActorError as error:
            raise WorkerDied(None, await asyncio.to_thread(self._ended, error)) from None

    def _ended(self, error: Exception) -> str:
        """Return why it ended: its node was lost, or its process ended."""
        nodes = {each["NodeID"]: each for each in self._ray.nodes()}
        node = nodes.get(self._node, {})
        if not node.get("Alive") or "its node has died" in str(error):
            name = node.get("NodeName") or node.get("NodeManagerAddress") or "of the cluster"
            return f"its node {name} ({self._node[:12]}) was lost"
        return f"{self._place} ended, and its node is there"

    def kill(self) -> None:
        """End it at once, with the body that it runs."""
        self._ray.kill(self._actor)

"""Bodies in a real cluster on this machine: skipped where Ray is not installed.

One cluster serves all tests of this file: a head with one processor and no GPU. It says that it has
a GPU only where a test adds a node that says so.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axil import NodeFailed, RootGraph, SpecError
from axil_journals import LocalEngine, MemoryJournal
from axil_process import BodyRaised, ProcessError, WorkerDied
from axil_ray import RayExecutor
from axil_ray.actor import BodyActor
from axil_wrappers import Retry

sys.path.insert(0, str(Path(__file__).parent))
import far

has_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="Ray is not installed: pip install axil-ray[ray]",
)
# Ray leaves sockets and files to the garbage collector, and warns of its own plans.
pytestmark = pytest.mark.filterwarnings("default")


def make(body: Any, keys: tuple[str, ...] = ("n",), exits: Any = None, **more: Any) -> RootGraph:
    graph = RootGraph("t", attributes={"total": 3, "large": "x" * 1000})
    graph.create_node(body, name="work", **more)
    graph.edge_from_entry("work", dict.fromkeys(keys, ""))
    graph.edge_to_exit("work", exits)
    return graph.build()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ |= {
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        # a machine that is busy with other tests takes its time
        "RAY_agent_register_timeout_ms": "180000",
        "RAY_raylet_start_wait_time_s": "180",
    }
    import ray
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": 80 << 20}
    found = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    ray.init(address=found.address, log_to_driver=False, logging_level="ERROR")
    yield found
    ray.shutdown()
    found.shutdown()


# ---------------------------------------------------------------------------- without a cluster


def test_a_job_and_the_fields_that_a_node_pulls_travel_once(monkeypatch):
    """The actor, without Ray around it: what it is sent, and what it says."""
    graph = make(far.sees, pull_keys={"total": ""}, exits=["sees", "whole"])
    executor, sent = RayExecutor(), list[dict[str, Any]]()
    actor = BodyActor([])

    class Cluster:
        started, idle = 0, None

        async def run(self, job: Any, task: Any, ctx: Any, schema: Any) -> Any:
            from axil_process import Conversation, firing_of, outcome_of

            given = firing_of(job, task, ctx, schema)
            if not sent:
                given["define"] = job
            sent.append(given)
            return outcome_of(await Conversation(self, ctx).run(given), schema)

        def send(self, message: Any) -> None:
            self.said = json.dumps([message]).encode()

        async def receive(self) -> Any:
            (message,) = json.loads(await asyncio.to_thread(actor.exchange, self.said))
            return message

        def place(self, spec: Any) -> None: ...

        async def close(self) -> None: ...

    monkeypatch.setattr(executor, "cluster", Cluster())

    async def go() -> list[Any]:
        async with graph:
            return [await graph.run({"n": n}, executor=executor) for n in range(2)]

    for result in asyncio.run(go()):
        assert result.output == {"sees": ["total"], "whole": ["total"]}
    assert [set(each["task"]["state"]) for each in sent] == [{"total"}] * 2
    assert sent[0]["job"] == sent[1]["job"] == sent[0]["define"]["digest"]


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    graph = make(far.where, resources={"gpus": 1})
    with pytest.raises(ProcessError, match=r"AX559.*axil.ray.*\[ray\]"):
        asyncio.run(graph.run({"n": 1}, executor=RayExecutor()))


# ------------------------------------------------------------------------------- with a cluster


@has_ray
def test_bodies_run_in_the_cluster_in_processes_that_live_as_long_as_the_engine(cluster):
    executor = RayExecutor(workers=1)
    graph = make(far.where, exits=["n", "pid"])

    async def go() -> set[int]:
        async with LocalEngine(MemoryJournal(), [graph], executor=executor) as engine:
            ids = [await engine.start(graph, {"n": n}) for n in range(3)]
            results = [await engine.result(run_id) for run_id in ids]
        assert [result.output["n"] for result in results] == [0, 2, 4]
        return {result.output["pid"] for result in results}

    (pid,) = asyncio.run(go())
    assert pid != os.getpid()
    assert executor.cluster.started == 1


@has_ray
def test_a_body_there_has_its_run_and_its_errors_come_back(cluster):
    executor = RayExecutor(lanes=["far"])
    graph = make(far.talks, lane="far", exits=["n", "pid", "key"])

    async def go() -> Any:
        journal = MemoryJournal()
        async with LocalEngine(journal, [graph], executor=executor) as engine:
            run_id = await engine.start(graph, {"n": 1})
            await engine.idle()
            (step,) = [each for each in journal.entries(run_id) if each.kind == "step"]
            await engine.answer(run_id, {"work?m": 41})
            return await engine.result(run_id), step.data["value"]

    result, recorded = asyncio.run(go())
    assert result.status == "done", result.error
    assert result.output["n"] == 42
    # the step was not taken again by the second process, after the pause
    assert result.output["pid"] == recorded != os.getpid()

    with pytest.raises(NodeFailed) as caught:
        asyncio.run(make(far.fails).run({"n": 1}, executor=RayExecutor()))
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert isinstance(cause, BodyRaised)


@has_ray
def test_resources_that_no_node_has_are_refused_before_anything_runs(cluster):
    for resources, said in (
        ({"gpus": 1}, r'AX558 node "work": its body needs gpus: 1, and none has any, of 1 nodes'),
        ({"cpus": 64}, r"needs cpus: 64, and the largest has 1"),
        ({"scanner": 2}, r"needs scanner: 2, and none has any"),
    ):
        graph = make(far.where, resources=resources)
        with pytest.raises(SpecError, match=said):
            graph.start({"n": 1}, executor=RayExecutor())
    with pytest.raises(SpecError, match="AX544"):
        make(lambda inputs: {}, resources={"cpus": 1}).start({"n": 1}, executor=RayExecutor())


@has_ray
def test_a_firing_that_waits_for_a_process_takes_the_one_that_another_leaves(cluster):
    """The node has room for one process: the others would be waited for without end."""
    graph = make(far.where, exits=["n", "pid"])

    async def go() -> list[Any]:
        executor = RayExecutor(workers=3)
        async with (
            asyncio.timeout(120),
            LocalEngine(MemoryJournal(), [graph], executor=executor) as engine,
        ):
            ids = [await engine.start(graph, {"n": n}) for n in range(3)]
            return [await engine.result(run_id) for run_id in ids]

    results = asyncio.run(go())
    assert [each.output["n"] for each in results] == [0, 2, 4]
    assert len({each.output["pid"] for each in results}) == 1


@has_ray
def test_a_process_without_work_makes_room_for_one_with_other_resources(cluster, monkeypatch):
    monkeypatch.setattr("axil_ray.cluster._LOOK", 0.5)
    graph = RootGraph("t")
    graph.create_node(far.where, name="one", resources={"cpus": 1})
    graph.create_node(far.where, name="two", resources={"cpus": 1, "memory": 1 << 20})
    graph.edge_from_entry("one", {"n": ""})
    graph.create_edge("one", "two", {"n": ""})
    graph.edge_to_exit("two", ["n"])
    graph.build()

    async def go() -> list[Any]:
        executor = RayExecutor()
        async with (
            asyncio.timeout(120),
            LocalEngine(MemoryJournal(), [graph], executor=executor) as engine,
        ):
            ids = [await engine.start(graph, {"n": n}) for n in range(3)]
            return [await engine.result(run_id) for run_id in ids]

    assert [each.output["n"] for each in asyncio.run(go())] == [0, 4, 8]


@has_ray
def test_a_process_without_work_ends_after_a_time_and_another_program_has_its_place(cluster):
    graph = make(far.where, exits=["n"])

    async def go() -> Any:
        first = LocalEngine(MemoryJournal(), [graph], executor=RayExecutor(idle_seconds=0.2))
        second = LocalEngine(MemoryJournal(), [graph], executor=RayExecutor())
        async with asyncio.timeout(120), first, second:
            await first.result(await first.start(graph, {"n": 1}))
            return await second.result(await second.start(graph, {"n": 2}))

    assert asyncio.run(go()).output == {"n": 4}


@has_ray
def test_a_process_that_ended_while_it_had_no_work_is_replaced(cluster):
    graph = make(far.where, exits=["n", "pid"])

    async def go() -> tuple[Any, Any]:
        async with LocalEngine(MemoryJournal(), [graph], executor=RayExecutor()) as engine:
            first = await engine.result(await engine.start(graph, {"n": 1}))
            os.kill(first.output["pid"], signal.SIGKILL)
            return first, await engine.result(await engine.start(graph, {"n": 2}))

    first, second = asyncio.run(go())
    assert second.status == "done", second.error
    assert second.output["pid"] != first.output["pid"]


@has_ray
def test_a_cluster_that_does_not_answer_is_an_error_and_no_waiting(cluster, tmp_path, monkeypatch):
    """Its one place is taken, and what is asked of its head comes back never."""
    monkeypatch.setattr("axil_ray.cluster._LOOK", 0.2)
    monkeypatch.setattr("axil_ray.cluster._SILENCE", 0.2)
    file, silence = tmp_path / "file", threading.Event()
    first, second = RayExecutor(), RayExecutor()
    graph = make(far.waits, ("file",), ["pid"])

    async def go() -> tuple[Any, Any]:
        one = LocalEngine(MemoryJournal(), [graph], executor=first)
        other = LocalEngine(MemoryJournal(), [graph], executor=second)
        async with asyncio.timeout(120), one, other:
            at_work = await one.start(graph, {"file": str(file)})
            while not file.exists():  # noqa: ASYNC110  # another process writes it
                await asyncio.sleep(0.01)
            waiting = await other.start(graph, {"file": str(file)})
            monkeypatch.setattr(second.cluster, "_lack", lambda wanted: silence.wait())
            failed = await other.result(waiting)
            silence.set()
            (tmp_path / "file.go").touch()
            return failed, await one.result(at_work)

    failed, done = asyncio.run(go())
    assert "AX559 the Ray cluster does not answer" in str(failed.error)
    assert done.status == "done"


@has_ray
def test_a_lost_node_that_nothing_replaces_is_an_error_and_no_waiting(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr("axil_ray.cluster._LOOK", 0.5)
    scanning = {"num_cpus": 1, "resources": {"scanner": 1}, "object_store_memory": 80 << 20}
    node, file = cluster.add_node(**scanning), tmp_path / "file"
    again = Retry(tries=5, wait_seconds=0, on=["*.WorkerDied"])
    graph = make(far.waits, ("file",), ["pid"], resources={"scanner": 1}, wrappers=[again])

    async def go() -> Any:
        engine = LocalEngine(MemoryJournal(), [graph], executor=RayExecutor())
        async with asyncio.timeout(200), engine:
            run_id = await engine.start(graph, {"file": str(file)})
            while not file.exists():  # noqa: ASYNC110  # another process writes it
                await asyncio.sleep(0.01)
            cluster.remove_node(node)
            return await engine.result(run_id)

    failed = asyncio.run(go())
    assert failed.status == "failed"
    assert "AX558" in str(failed.error)
    assert "scanner: 1, and none has any" in str(failed.error)


@has_ray
def test_a_lost_process_and_a_lost_node_are_named_and_the_firing_can_be_repeated(cluster, tmp_path):
    with pytest.raises(NodeFailed) as caught:
        asyncio.run(make(far.ends).run({"n": 1}, executor=RayExecutor()))
    assert isinstance(caught.value.__cause__, WorkerDied)
    assert "its node is there" in str(caught.value)

    with_gpu = {"num_cpus": 1, "num_gpus": 1, "object_store_memory": 80 << 20}
    node, file = cluster.add_node(**with_gpu), tmp_path / "file"
    graph = make(far.waits, ("file",), exits=["pid"], resources={"gpus": 1})

    async def go() -> tuple[Any, Any]:
        engine = LocalEngine(MemoryJournal(), [graph], executor=RayExecutor())
        async with asyncio.timeout(200), engine:
            run_id = await engine.start(graph, {"file": str(file)})
            while not file.exists():  # noqa: ASYNC110  # another process writes it
                await asyncio.sleep(0.01)
            cluster.remove_node(node)
            failed = await engine.result(run_id)
            (tmp_path / "file.go").touch()
            cluster.add_node(**with_gpu)
            await engine.resume(run_id)
            return failed, await engine.result(run_id)

    failed, done = asyncio.run(go())
    assert re.search(r"AX550 .* its node \S+ \(\w+\) was lost", str(failed.error))
    assert done.status == "done"
    first, second = map(int, file.read_text().split())
    assert done.output["pid"] == second != first

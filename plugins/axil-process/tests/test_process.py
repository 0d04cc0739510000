"""Promises of bodies in processes: they run as anywhere, and what happens to their process
happens to nothing else.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from axil import (
    ComponentRef,
    CustomNode,
    LimitReached,
    Limits,
    NodeFailed,
    NodeSpec,
    RootGraph,
    Schema,
    SpecError,
)
from axil.driver import LocalExecutor
from axil.plugin import Grants
from axil_journals import MemoryJournal
from axil_process import (
    BodyRaised,
    ProcessError,
    ProcessExecutor,
    ProcessWrapper,
    WorkerDied,
    workers,
)
from axil_process.conversation import Conversation
from axil_process.host import BodyHost
from axil_process.jobs import job_of, plan_of_job
from axil_process.wire import packed
from axil_process.worker import Worker
from axil_testing import VirtualClock
from axil_testing.members import is_gone
from axil_wrappers import Retry, Timeout

sys.path.insert(0, str(Path(__file__).parent))
import bodies

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="signals and groups of processes are not there"
)


def run(graph: RootGraph, *inputs: Any, **options: Any) -> list[Any]:
    """Return the results of runs, one after the other, with the components held between them."""

    async def go() -> list[Any]:
        async with graph:
            return [await graph.start(given, **options).result() for given in inputs]

    return asyncio.run(go())


# ------------------------------------------------------------------------------------------------ t


def test_a_job_of_a_file_may_import_what_the_file_may_and_no_more():
    node = NodeSpec(id="n", use=ComponentRef(type="bodies:Plain"))

    def made(*words: str) -> Any:
        return plan_of_job(job_of(node, "messages", Schema(), grants=Grants.of(words)))

    with pytest.raises(SpecError, match="AX148"):
        made()
    with pytest.raises(SpecError, match="AX148"):
        made("import:json", "network")
    assert made("import:bodies").nodes
    assert made("code").nodes


def test_bodies_run_in_other_processes_which_are_used_again():
    process = ProcessWrapper(workers=1)
    graph = RootGraph("t", attributes={})
    graph.create_node(bodies.double, name="work", wrappers=[process])
    graph.edge_from_entry("work", {"n": ""})
    graph.edge_to_exit("work", ["n", "pid"])
    graph.build()
    results = run(graph, {"n": 1}, {"n": 2}, {"n": 3})
    assert [result.output["n"] for result in results] == [2, 4, 6]
    pids = {result.output["pid"] for result in results}
    assert len(pids) == process.workers.started == 1
    assert os.getpid() not in pids


def make(
    body: Any,
    *wrappers: Any,
    keys: tuple[str, ...] = ("n",),
    exits: tuple[str, ...] = ("n",),
    **more: Any,
) -> RootGraph:
    graph = RootGraph("t", attributes={"total": 0, "seen": 0})
    graph.create_node(body, name="work", wrappers=wrappers, **more)
    graph.edge_from_entry("work", dict.fromkeys(keys, ""))
    graph.edge_to_exit("work", dict.fromkeys(exits, ""))
    return graph.build()


def test_attributes_and_what_a_node_keeps_are_written_as_anywhere():
    graph = make(
        bodies.counting,
        ProcessWrapper(workers=1),
        exits=("n", "times"),
        pull_keys={"total": ""},
        push_keys={"total": ""},
    )
    (result,) = run(graph, {"n": 5})
    assert (result.output, result.attributes["total"]) == ({"n": 5, "times": 1}, 5)


def test_a_custom_node_is_called_by_position_there_too():
    (result,) = run(
        make(
            CustomNode, ProcessWrapper(workers=1), forward=bodies.positional, push_keys={"seen": ""}
        ),
        {"n": 4},
    )
    assert (result.output, result.attributes["seen"]) == ({"n": 4}, 4)


def test_what_a_body_prints_does_not_disturb(capfd):
    (result,) = run(make(bodies.loud, ProcessWrapper(workers=1)), {"n": 1})
    assert result.output == {"n": 1}
    assert "not for the pipe" in capfd.readouterr().err


def test_typed_state_is_seen_as_its_class():
    graph = RootGraph("typed", state=bodies.Talk)
    graph.create_node(
        bodies.says, name="says", wrappers=[ProcessWrapper(workers=1, state="bodies:Talk")]
    )
    graph.edge_from_entry("says")
    graph.edge_to_exit("says")
    (result,) = run(graph.build(), {"topic": "axils"})
    assert result.attributes["lines"][0].startswith("on axils in ")


def test_an_executor_takes_plain_functions_and_leaves_the_rest():
    async def here(inputs: Any) -> dict[str, Any]:
        return {"pid": os.getpid(), "n": inputs["n"]}

    graph = RootGraph("t", attributes={})
    graph.create_node(here, name="here")
    graph.create_node(bodies.double, name="there")
    graph.edge_from_entry("here", {"n": ""})
    graph.create_edge("here", "there", {"n": ""})
    graph.edge_to_exit("there", ["n", "pid"])
    graph.build()
    executor = ProcessExecutor(workers=1)
    results = run(graph, {"n": 1}, {"n": 2}, executor=executor)
    assert [result.output["n"] for result in results] == [2, 4]
    assert all(result.output["pid"] != os.getpid() for result in results)


def test_an_executor_of_lanes_takes_those_nodes_alone_inside_what_is_wrapped_around_them():
    for lane, is_here in (("cores", False), (None, True)):
        graph = make(bodies.double, Retry(tries=2), exits=("pid",), lane=lane)
        (result,) = run(graph, {"n": 1}, executor=ProcessExecutor(workers=1, lanes=["cores"]))
        assert (result.output["pid"] == os.getpid()) is is_here


def test_no_more_bodies_are_at_work_than_there_are_workers():
    process = ProcessWrapper(workers=2)
    graph = make(bodies.double, process, exits=("n",))

    async def go() -> list[Any]:
        async with graph:
            return await asyncio.gather(*(graph.start({"n": n}).result() for n in range(8)))

    assert [result.output["n"] for result in asyncio.run(go())] == [2 * n for n in range(8)]
    assert process.workers.started <= 2


def test_a_process_that_died_while_it_rested_does_not_hide_another_that_did_not():
    process = ProcessWrapper(workers=2)
    graph = make(bodies.double, process, exits=("n",))

    async def go() -> None:
        async with graph:
            for started in (2, 3):
                await asyncio.gather(*(graph.start({"n": n}).result() for n in range(2)))
                assert process.workers.started == started
                place = process.workers._places.get()
                place.idle[-1].child.signal(signal.SIGKILL)
                await place.idle[-1].process.wait()

    asyncio.run(go())


# ------------------------------------------------------------------------------------------------ c


def test_a_question_of_a_body_elsewhere_has_its_deadline():
    graph = make(bodies.asks_for_a_minute, ProcessWrapper(workers=1), exits=("n",))
    clock = VirtualClock()

    async def go() -> Any:
        async with graph:
            return await graph.start({"n": 1}, clock=clock).result()

    (question,) = asyncio.run(go()).questions
    assert (question.default, question.within_seconds) == (4, 60)
    assert question.due == clock.wall() + 60


def test_questions_steps_sleeps_and_chunks_go_to_the_run_and_are_recorded(tmp_path):
    file = tmp_path / "told"
    graph = make(
        bodies.asks,
        ProcessWrapper(workers=1),
        keys=("file",),
        exits=("page", "many", "key", "slept", "who"),
    )
    journal, clock, chunks = MemoryJournal(), VirtualClock(), list[Any]()

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            chunks.append(chunk)

    async def go() -> Any:
        async with graph:
            options = {"journal": journal, "clock": clock, "run_id": "r", "observers": [Watch()]}
            first = await graph.start({"file": str(file)}, **options).result()
            assert [question.id for question in first.questions] == ["work?page"]
            second = await graph.start(**options, resuming=True, answers={"work?page": 7}).result()
            assert [question.id for question in second.questions] == ["work?many"]
            return await graph.start(**options, resuming=True, answers={"work?many": 3}).result()

    result = asyncio.run(go())
    assert result.status == "done"
    assert {**result.output, "key": ""} == {
        "page": 7,
        "many": 3,
        "key": "",
        "slept": 100.0,
        "who": "work",
    }
    # the first try ended at the question inside the step; the second was recorded
    assert file.read_text("utf-8") == "fetched\n" * 2
    assert chunks == ["inside", "inside", "behind", "behind"]
    assert result.usage.cost == 1.0


def test_several_questions_at_once_are_all_open():
    graph = make(bodies.asks_two, ProcessWrapper(workers=1))
    (result,) = run(graph, {"n": 1}, journal=MemoryJournal())
    assert {question.id for question in result.questions} == {"work?a", "work?b"}


def test_questions_of_a_body_that_has_ended_already_are_all_open(monkeypatch):
    receive = workers._Worker.receive

    # both questions and the end lie in the pipe when the first is heard
    async def late(worker: Any) -> Any:
        message = await receive(worker)
        if message.get("ask") == "ask":
            await asyncio.sleep(0.5)
        return message

    monkeypatch.setattr(workers._Worker, "receive", late)
    (result,) = run(
        make(bodies.asks_two, ProcessWrapper(workers=1)), {"n": 1}, journal=MemoryJournal()
    )
    assert {question.id for question in result.questions} == {"work?a", "work?b"}


def test_what_a_body_leaves_behind_is_not_heard_in_the_next_firing():
    chunks: list[Any] = []

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            chunks.append(chunk)

    first, second = run(
        make(bodies.leaves_a_task, ProcessWrapper(workers=1)),
        {"n": 1},
        {"n": 2},
        observers=[Watch()],
        journal=MemoryJournal(),
    )
    assert first.output == {"n": 0}
    assert "AX552" in second.output["n"]
    assert (chunks, second.questions, second.usage.cost) == ([], (), 0.0)


def test_an_abandoned_call_is_forgotten():
    results = run(make(bodies.sleeps_on, ProcessWrapper(workers=1)), {"n": 1}, {"n": 2}, {"n": 3})
    assert [result.output for result in results] == [{"n": 0}] * 3


def test_a_step_that_fails_raises_its_own_error_to_the_body():
    (result,) = run(
        make(bodies.fails_inside, ProcessWrapper(workers=1)), {"n": 1}, journal=MemoryJournal()
    )
    assert result.output == {"n": "inside"}


def test_what_cannot_be_had_there_says_so():
    (result,) = run(make(bodies.refused, ProcessWrapper(workers=1)), {"n": 1}, deps=object())
    assert "AX552" in str(result.error)
    assert "ctx.deps" in str(result.error)


# ------------------------------------------------------------------------------------------------ c


@pytest.mark.parametrize(
    ("n", "how"), [(-1, "with exit code 7"), (-2, "by signal SIGSEGV"), (-3, "by signal SIGKILL")]
)
def test_a_body_that_takes_its_process_with_it_fails_its_firing_alone(n, how):
    process = ProcessWrapper(workers=1)
    dead, alive = run(make(bodies.dies, process), {"n": n}, {"n": 1})
    assert isinstance(dead.error, NodeFailed)
    cause = dead.error.__cause__
    assert isinstance(cause, WorkerDied)
    assert how in str(cause)
    assert alive.output == {"n": 1}
    assert process.workers.started == 2


@pytest.mark.parametrize("is_daemon", [False, True])
def test_a_body_that_dies_is_reported_although_a_process_that_it_forked_lives(tmp_path, is_daemon):
    file = tmp_path / "pid"
    graph = make(bodies.forks, ProcessWrapper(workers=1), keys=("file", "is_daemon"), exits=())

    async def go() -> Any:
        async with graph:
            return await asyncio.wait_for(
                graph.start({"file": str(file), "is_daemon": is_daemon}).result(), 60
            )

    try:
        result = asyncio.run(go())
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text("utf-8")), signal.SIGKILL)
    assert isinstance(result.error.__cause__ or result.error, WorkerDied)


def test_a_copy_of_a_body_says_nothing_to_the_run():
    results = run(make(bodies.forks_by_mistake, ProcessWrapper(workers=1)), {"n": 1}, {"n": 2})
    assert [result.output for result in results] == [{"n": 0}, {"n": 0}]


def test_a_crash_can_be_tried_again():
    chunks: list[Any] = []

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            chunks.append(chunk)

    graph = make(
        bodies.dies, Retry(tries=2, wait_seconds=0, on=["*.WorkerDied"]), ProcessWrapper(workers=1)
    )
    (result,) = run(graph, {"n": -1}, observers=[Watch()])
    assert result.status == "failed"
    assert [chunk["kind"] for chunk in chunks] == ["retry"]


def test_memory_that_is_not_given_is_an_error_of_the_body():
    (small, large) = run(
        make(bodies.greedy, ProcessWrapper(workers=1, memory_megabytes=1024)), {"n": 1}, {"n": 4096}
    )
    assert small.status == "done"
    assert isinstance(large.error.__cause__, (MemoryError, WorkerDied))


@pytest.mark.parametrize(
    ("kind", "means", "reported"),
    [
        ("value", ValueError, "no such thing"),
        ("exit", BodyRaised, "builtins.SystemExit: no such thing"),
        ("own", BodyRaised, "bodies.Own: no such thing"),
        ("unicode", BodyRaised, "invalid start byte"),
    ],
)
def test_what_a_body_raises_comes_back_with_its_class_its_message_and_its_traceback(
    kind, means, reported
):
    (result,) = run(make(bodies.raises, ProcessWrapper(workers=1), keys=("kind",)), {"kind": kind})
    cause = result.error.__cause__
    assert isinstance(cause, means)
    assert isinstance(cause, BodyRaised)
    assert reported in str(cause)
    assert "bodies.py" in cause.traceback
    assert "in raises" in cause.traceback


def test_an_error_that_cannot_be_shown_remains_an_error():
    (result,) = run(make(bodies.unspeakable, ProcessWrapper(workers=1)), {"n": 1})
    assert "bodies.Unspeakable" in str(result.error.__cause__)


def until(is_so: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not is_so() and time.monotonic() - begin < 120:
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look at")
@pytest.mark.parametrize("how", ["timeout", "limit", "cancel"])
def test_a_cancelled_caller_kills_the_process_and_what_it_started(tmp_path, how):
    file = tmp_path / "pids"

    class Begun:
        """A clock that is late as soon as the body is at work."""

        def now(self) -> float:
            return 100.0 if file.exists() else 0.0

        async def sleep(self, seconds: float) -> None:
            await asyncio.to_thread(until, file.exists)

    wrappers = [Timeout(seconds=5)] if how == "timeout" else []
    graph = make(bodies.busy, *wrappers, ProcessWrapper(workers=1), keys=("file",), exits=())

    async def go() -> Any:
        async with graph:
            run = graph.start(
                {"file": str(file)},
                clock=Begun(),
                limits=Limits(seconds=5) if how == "limit" else None,
            )
            job = asyncio.ensure_future(run.result())
            if how == "cancel":
                await Begun().sleep(0)
                run.cancel("enough")
            return await job

    result = asyncio.run(go())
    assert result.status == {"timeout": "failed", "limit": "limited", "cancel": "cancelled"}[how]
    if how == "limit":
        assert isinstance(result.error, LimitReached)
    worker, child = map(int, file.read_text("utf-8").split())
    assert is_gone(worker)
    # it was killed with the worker, and nobody here waits for its end
    until(lambda: is_gone(child))
    assert is_gone(child)


@pytest.mark.parametrize("said", [0, 2, 9, 30])
def test_a_process_whose_parent_is_gone_in_the_middle_of_a_message_ends(said):
    command = [sys.executable, str(workers._BOOT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(packed({"path": sys.path, "memory_bytes": None, "grace_seconds": 60}))
        process.stdin.flush()
        assert b"ready" in process.stdout.read(4 + len(b'{"ready":true}'))
        process.stdin.write(packed({"job": "x" * 100})[:said])
        process.stdin.close()
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.fixture
def exits(monkeypatch) -> list[int]:
    """An exception that would have ended this process."""
    reported: list[int] = []
    monkeypatch.setattr(os, "_exit", reported.append)
    return reported


def test_a_process_whose_parent_is_gone_before_it_has_begun_a_body_ends(exits):
    with open(os.devnull, "wb") as sink:
        Worker(io.BytesIO(packed({"job": {}})), sink.fileno())._listen()
    assert exits == [0]


def test_a_process_that_has_reported_its_bodys_result_closes_what_it_opened(exits):
    """However late it goes on behind that: the parent hears of it, and has no more use for the
    process.
    """

    class Late(BodyHost):
        def _done(self, given: Any, runner: Any) -> dict[str, Any]:
            return {"end": given}

        def send(self, message: Any, firing: int | None = None) -> None:
            super().send(message, firing)
            if "end" in message:
                parent.close()
                until(lambda: exits or not worker._tasks.empty())

    asked, asks = os.pipe()
    with (
        open(os.devnull, "wb") as sink,
        os.fdopen(asked, "rb") as source,
        os.fdopen(asks, "wb") as parent,
    ):
        parent.write(packed({"job": {}}))
        parent.flush()
        worker = Worker(source, sink.fileno())
        worker._host = Late(worker._write)
        worker.serve()
    assert exits == []


def test_a_process_that_cannot_close_what_it_opened_ends_with_its_parent(exits):
    """Nor can one in which a body left a thread that is no daemon."""
    with open(os.devnull, "wb") as sink:
        worker = Worker(io.BytesIO(b""), sink.fileno(), grace=0.0)
        worker._listen()
    assert (worker._tasks.get_nowait(), exits) == (None, [0])


def test_a_process_is_closed_though_another_holds_its_pipe_open():
    """As one does that was forked from this one meanwhile."""
    process = ProcessWrapper(workers=1)
    graph = make(bodies.double, process)

    async def go() -> Any:
        async with graph:
            await graph.start({"n": 1}).result()
            place = process.workers._places.get()
            (worker,) = place.idle
            pipe = os.dup(worker.process.stdin.get_extra_info("pipe").fileno())
        os.close(pipe)
        return worker.process.returncode

    assert asyncio.run(go()) == 0


def test_the_processes_of_an_event_loop_end_with_its_run_whatever_is_at_work_on_others():
    begun, goes_on = threading.Event(), threading.Event()

    def waits(inputs: Any) -> dict[str, Any]:
        begun.set()
        goes_on.wait(60)
        return {"n": inputs["n"]}

    executor = ProcessExecutor(workers=1, lanes=["cores"])
    busy, other = make(waits), make(bodies.double, lane="cores", exits=("pid",))
    beside = threading.Thread(
        target=lambda: asyncio.run(busy.start({"n": 1}, executor=executor).result())
    )
    beside.start()
    try:
        begun.wait(60)
        result = asyncio.run(other.start({"n": 2}, executor=executor).result())
        assert is_gone(result.output["pid"])
    finally:
        goes_on.set()
        beside.join()


def test_a_run_that_ends_leaves_the_threads_of_others_alone():
    begun, goes_on = threading.Event(), threading.Event()

    def waits(inputs: Any) -> dict[str, Any]:
        begun.set()
        goes_on.wait(60)
        return {"n": inputs["n"]}

    executor = ProcessExecutor(workers=1, lanes=["cores"])
    executor._local = LocalExecutor(1, "process")  # one is at work, the other waits for its thread
    busy = RootGraph("busy")
    for name in "ab":
        busy.create_node(waits, name=name)
        busy.edge_from_entry(name, {"n": ""})
        busy.edge_to_exit(name, {"n": ""})
    busy.build()

    async def go() -> Any:
        job = asyncio.ensure_future(busy.start({"n": 1}, executor=executor).result())
        await asyncio.to_thread(begun.wait, 60)
        result = await make(bodies.double, lane="cores").start({"n": 2}, executor=executor).result()
        assert result.output == {"n": 4}
        goes_on.set()
        return await job

    assert asyncio.run(go()).status == "done"


# ------------------------------------------------------------------------------------------------ w


def test_what_cannot_be_named_is_refused_when_the_plan_is_made():
    for body, why in (
        (lambda inputs: {}, "no function of a module"),
        (local_function(), "no function of a module"),
    ):
        with pytest.raises(SpecError, match="AX544") as error:
            make(body, ProcessWrapper()).plan  # noqa: B018  # compiled when it is first asked for
        assert why in str(error.value)


def local_function() -> Any:
    def body(inputs: Any) -> dict[str, Any]:
        return {}

    return body


def test_process_stands_innermost():
    with pytest.raises(SpecError, match="AX545"):
        # compiled when it is first asked for
        make(bodies.double, ProcessWrapper(), Retry(tries=2)).plan  # noqa: B018


def test_a_value_that_is_no_plain_data_is_refused_before_it_is_sent():
    process = ProcessWrapper(workers=1)
    (result,) = run(make(bodies.double, process), {"n": object()})
    assert "AX501" in str(result.error)


def test_a_process_that_cannot_begin_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (result,) = run(make(bodies.double, ProcessWrapper(workers=1)), {"n": 1})
    assert isinstance(result.error.__cause__, ProcessError)
    assert "AX553" in str(result.error)


def test_a_process_sees_only_the_variables_that_are_named(monkeypatch):
    monkeypatch.setenv("AXIL_T_SEEN", "1")
    monkeypatch.setenv("AXIL_T_SECRET", "2")
    names = [name for name in os.environ if name != "AXIL_T_SECRET"]
    (result,) = run(
        make(bodies.environment, ProcessWrapper(workers=1, environment=names), exits=("seen",)),
        {"n": 1},
    )
    assert result.output == {"seen": ["AXIL_T_SEEN"]}


def test_a_model_that_another_process_asks_is_refused_where_calls_are_collected(tmp_path):
    from axil_models import BatchFile, ModelBatches, use_batches

    graph = RootGraph("t")
    graph.create_node(bodies.asks_a_model, name="work", wrappers=[ProcessWrapper(workers=1)])
    graph.edge_from_entry("work", ["seen"])
    graph.edge_to_exit("work", ["text"])
    graph.build()
    seen, batches = tmp_path / "seen", ModelBatches(file=BatchFile(None))
    with closing(batches.file), use_batches(batches):
        [refused] = run(graph, {"seen": str(seen)})
    assert "AX981" in str(refused.error)
    assert 'node "work" asks a model in another process' in str(refused.error)
    assert batches.refusal is not None
    assert not seen.exists()
    [asked] = run(graph, {"seen": str(seen)})
    assert asked.output == {"text": "hello"}


def test_a_step_that_ends_twice_is_no_message_of_a_body():
    class Hostile:
        said = (
            {"ask": "step", "n": 1, "given": ["s", None, "idempotent", ""]},
            {"stepped": 1, "value": 1},
            {"stepped": 1, "value": 2},
        )

        def __init__(self):
            self.left = iter(self.said)

        def send(self, message):
            pass

        async def receive(self):
            for _ in range(3):  # the step has begun meanwhile
                await asyncio.sleep(0)
            return next(self.left)

    class Run:
        async def step(self, name, call, **_):
            return await call()

    with pytest.raises(ProcessError, match="AX555"):
        asyncio.run(Conversation(Hostile(), Run(), is_trusted=False).run({}))

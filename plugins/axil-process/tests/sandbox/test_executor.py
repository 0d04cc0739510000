"""Bodies in a sandbox: what they find, what they get from their run, and what harm they can do."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from axil import RootGraph, SpecError
from axil.plugin import ComponentBlocked
from axil_control import Python
from axil_process import (
    Bubblewrap,
    Docker,
    Podman,
    ProcessError,
    SandboxExecutor,
    SandboxWrapper,
    WorkerDied,
)
from axil_process.workers import _shown
from axil_testing.kit import Kit, NodeKit

sys.path.insert(0, str(Path(__file__).parent))
import guarded

WHY_NOT = Bubblewrap().problem()
THOROUGH = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
thorough = pytest.mark.skipif(not THOROUGH, reason="make thorough")
needs_it = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it works")


class TestSandboxExecutor(Kit):
    kind = "executors"
    component = SandboxExecutor


class TestSandboxWrapper(Kit):
    kind = "wrappers"
    component = SandboxWrapper


class TestBubblewrap(Kit):
    kind = "sandboxes"
    component = Bubblewrap


class TestDocker(Kit):
    kind = "sandboxes"
    component = Docker


class TestPodman(Kit):
    kind = "sandboxes"
    component = Podman


@needs_it
@thorough
class TestPythonInASandbox(NodeKit):
    component = Python
    config: ClassVar = {"code": "print(1)", "sandbox": "required"}
    runs_code = True


def make(body: Any, *wrappers: Any, exits: tuple[str, ...] = ("n",), **more: Any) -> RootGraph:
    graph = RootGraph("t", attributes={})
    graph.create_node(body, name="work", wrappers=wrappers, **more)
    graph.edge_from_entry("work", {"n": "", "home": "", "text": "", "file": ""})
    graph.edge_to_exit("work", dict.fromkeys(exits, ""))
    return graph.build()


GIVEN = {"n": 2, "home": "", "text": "", "file": ""}


def ran(graph: RootGraph, *more: dict[str, Any], **options: Any) -> list[Any]:
    async def go() -> list[Any]:
        async with graph:
            return [await graph.start({**GIVEN, **each}, **options).result() for each in more]

    return asyncio.run(go())


LOOKED = ("uid", "kept", "variables", "home", "n")


@needs_it
@pytest.mark.parametrize("way", ["wrapper", "executor"])
def test_a_body_sees_no_variables_no_home_and_nothing_of_the_firing_before(
    way, tmp_path, monkeypatch
):
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("SHARED", "word")
    settings = {"environment": ["SHARED"]}
    wrappers = [SandboxWrapper(settings)] if way == "wrapper" else []
    executor = {"executor": SandboxExecutor(settings)} if way == "executor" else {}
    graph = make(guarded.looks, *wrappers, exits=LOOKED)
    for result in ran(graph, *[{"home": str(tmp_path)}] * 2, **executor):
        assert result.status == "done", result.error
        assert {**result.output, "variables": []} == {
            "uid": 65534,
            "kept": 1,
            "variables": [],
            "home": False,
            "n": 2,
        }
        seen = set(result.output["variables"])
        assert "SHARED" in seen
        assert "API_KEY" not in seen


@needs_it
def test_an_executor_takes_async_functions_too_and_leaves_components(tmp_path):
    workspace = tmp_path / "w"
    graph = make(guarded.writes, exits=("n", "uid", "there"))
    (result,) = ran(graph, {}, executor=SandboxExecutor(), workspace=workspace)
    assert result.output == {"n": 1, "uid": 65534, "there": ["w"]}
    assert (workspace / "made.txt").read_text() == "made"


def test_a_body_that_cannot_be_named_is_an_error_and_runs_nowhere():
    begun: list[int] = []
    graph = make(lambda inputs: begun.append(1))
    with pytest.raises(SpecError, match="AX544"):
        ran(graph, {}, executor=SandboxExecutor())
    assert begun == []


def test_without_a_sandbox_a_body_does_not_run(monkeypatch):
    for kind in (Bubblewrap, Docker, Podman):
        monkeypatch.setattr(kind, "problem", lambda self: "it is switched off")
    (result,) = ran(make(guarded.looks, SandboxWrapper()), {})
    assert isinstance(result.error.__cause__, ComponentBlocked)
    assert "AX621" in str(result.error)
    assert "it is switched off" in str(result.error)


def test_a_home_as_a_whole_is_no_part_of_the_import_path(monkeypatch, tmp_path):
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", ["", "/", str(tmp_path), str(tmp_path / "project")])
    monkeypatch.chdir(tmp_path)
    assert _shown() == [str(tmp_path / "project")]


# ----------------------------------------------------------------------------------------- harm


@needs_it
@pytest.mark.parametrize(
    ("body", "given", "settings", "error"),
    [
        ("sends", {}, {"output_bytes": 1 << 20}, "AX556"),
        ("spends", {"n": -1.0}, {}, "AX555"),
        ("stays", {"file": "/tmp/begun"}, {"timeout_seconds": 1}, "AX554"),
        ("forges", {"text": '{"emit": {"$": "log"}, "in": []}'}, {}, "AX555"),
        *(
            pytest.param("forges", {"text": text}, {}, "AX555", marks=thorough)
            for text in (
                "[1]",
                "no JSON",
                "[" * 200_000,
                '{"ask": "ask", "n": 1, "given": [{"options": 1}, ""]}',
                '{"end": {"output": 1}}',
                '{"failed": []}',
            )
        ),
    ],
)
def test_what_a_body_does_to_its_run_is_the_failure_of_its_firing(body, given, settings, error):
    (result,) = ran(make(getattr(guarded, body), SandboxWrapper(settings)), given)
    cause = result.error.__cause__
    assert isinstance(cause, ProcessError), cause
    assert error in str(cause)


@needs_it
def test_what_a_body_prints_is_kept_from_the_terminal(caplog, capfd):
    caplog.set_level(logging.INFO, "axil.sandbox")
    (result,) = ran(make(guarded.prints, SandboxWrapper()), {})
    assert result.output == {"n": 0}
    assert capfd.readouterr() == ("", "")
    assert "a body printed: [31mred" in caplog.text
    assert len(caplog.text) < 10_000


@needs_it
def test_a_cancelled_run_kills_the_body_and_all_that_it_started(tmp_path):
    begun = tmp_path / "begun"
    graph = make(guarded.stays, SandboxWrapper(reads=[str(tmp_path / f"mark-{tmp_path.name}")]))

    def there() -> list[Path]:
        found: list[Path] = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                found += [path] if f"mark-{tmp_path.name}".encode() in path.read_bytes() else []
            except OSError:
                continue
        return found

    async def go() -> Any:
        async with graph:
            run = graph.start({**GIVEN, "file": str(begun)}, workspace=tmp_path)
            job = asyncio.ensure_future(run.result())
            # the body is in another process: there is no event to wait for
            while not begun.exists() and not job.done():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert there()
            run.cancel("enough")
            return await job

    assert asyncio.run(go()).status == "cancelled"
    begin = time.monotonic()
    while there() and time.monotonic() - begin < 60:
        time.sleep(0.01)
    assert not there()


@needs_it
def test_a_body_that_passes_a_limit_of_its_sandbox_fails_with_that_limit():
    (result,) = ran(make(guarded.swells, SandboxWrapper(memory_megabytes=128)), {})
    cause = result.error.__cause__
    # it is ended from outside, unless the system refuses it the memory before
    assert isinstance(cause, (WorkerDied, MemoryError))
    if isinstance(cause, WorkerDied):
        assert "ended: it used more than 134217728 bytes of memory" in str(cause)


def test_its_settings_are_those_of_process():
    assert json.loads(json.dumps(SandboxWrapper(workers=1).use().config)) == {"workers": 1}
    assert SandboxWrapper(workers=1).config.sandbox == "required"

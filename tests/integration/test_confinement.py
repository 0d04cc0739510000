"""Components that forget to declare what their settings name are stopped below them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import importlib
import json
import os
import runpy
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from axil import AxilError, run_sync
from axil.plugin import Registry, use_registry
from axil_files import load
from axil_sqlite import SqliteJournal

Act = Callable[[str], Any]


def _connect(text: str) -> Any:
    with socket.socket() as given:
        given.connect((text, 9))


def _asks(text: str) -> Any:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # a loop of its own
        return pool.submit(lambda: asyncio.run(asyncio.open_connection(text, 9))).result()


ACTS: dict[str, tuple[str, Act]] = {
    "read": ("{outside}/secret", lambda text: Path(text).read_text()),
    "write": ("{outside}/new", lambda text: Path(text).write_text("x")),
    "write beside the file": ("{flows}/new", lambda text: Path(text).write_text("x")),
    "append": ("{outside}/secret", lambda text: open(text, "a").close()),
    "list": ("{outside}", os.listdir),
    "walk": ("{outside}", lambda text: list(os.scandir(text))),
    "make a folder": ("{outside}/new", os.mkdir),
    "remove": ("{outside}/secret", os.remove),
    "rename": ("{outside}/secret", lambda text: os.rename(text, "new")),
    "copy": ("{outside}/secret", lambda text: shutil.copy(text, ".axil")),
    "link": ("{outside}/new", lambda text: os.symlink("/etc", text)),
    "database": ("{outside}/new.db", lambda text: sqlite3.connect(text)),
    "variables": ("/proc/self/environ", lambda text: Path(text).read_bytes()),
    "program": ("touch", lambda text: subprocess.run([text, "new"], check=True)),
    "shell": ("touch new", os.system),
    "another program": ("touch", lambda text: os.posix_spawn("/bin/" + text, ["x"], {})),
    "resolve": ("intern.example", lambda text: socket.getaddrinfo(text, 80)),
    "connect": ("127.0.0.1", _connect),
    "connect on a loop": ("127.0.0.1", _asks),
    "url": ("http://127.0.0.1:9/", urllib.request.urlopen),
    "import": ("strange_module", importlib.import_module),
    "import by name": ("strange_module", __import__),
    "run a file": ("{outside}/strange_module.py", runpy.run_path),
    "library": ("{outside}/secret", ctypes.CDLL),
}  # fmt: skip
"""Careless acts: the text that a hostile file gives, and what is done with it."""


class CarelessConfig(BaseModel, extra="forbid", frozen=True):
    """Texts that say nothing about themselves."""

    text: str
    act: str = "read"
    way: str = "body"


class Careless:
    """A node that does with its setting what it should have asked for, in one of many ways."""

    Config = CarelessConfig
    seen: ClassVar[list[Any]] = []

    def __init__(self, config: CarelessConfig) -> None:
        self.config = config
        self._do("made")

    def _do(self, way: str) -> None:
        if self.config.way == way:
            self.seen.append(ACTS[self.config.act][1](self.config.text))

    async def provision(self) -> None:
        """Act when the run is prepared."""
        self._do("provisioned")

    async def close(self) -> None:
        """Act when the run is over."""
        self._do("closed")

    async def run(self, task: Any, ctx: Any) -> Any:
        """Act in a body."""
        way, loop = self.config.way, asyncio.get_running_loop()
        self._do("body")
        if way == "to_thread":
            await asyncio.to_thread(self._do, way)
        elif way == "executor":
            await loop.run_in_executor(None, self._do, way)
        elif way == "pool":
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pool.submit(self._do, way).result()
        elif way == "task":
            await asyncio.create_task(self._later(way))
        elif way in ("thread", "callback"):
            done: concurrent.futures.Future[None] = concurrent.futures.Future()

            def act() -> None:
                try:
                    done.set_result(self._do(way))
                except BaseException as error:  # noqa: BLE001
                    done.set_exception(error)

            if way == "thread":
                threading.Thread(target=act).start()
            else:
                loop.call_soon(act)
            await asyncio.wrap_future(done)
        return {"message": "done"}

    async def _later(self, way: str) -> None:
        self._do(way)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs a file with a careless node, and gives what is said of it."""
    flows, outside = tmp_path / "flows", tmp_path / "outside"
    (flows / ".axil").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("canary-5521")
    (outside / "strange_module.py").write_text("open('imported', 'w').close()\n")
    monkeypatch.syspath_prepend(outside)
    monkeypatch.chdir(flows)
    monkeypatch.setattr(Careless, "seen", [])
    monkeypatch.delitem(sys.modules, "strange_module", raising=False)  # of other tests
    registry = Registry()
    registry.register("nodes", "careless", Careless)

    def ran(act: str, way: str = "body", allow: set[str] | None = None, **options: Any) -> str:
        text = ACTS[act][0].format(outside=outside, flows=flows)
        config = {"text": text, "act": act, "way": way}
        nodes = [{"id": "a", "type": "careless", "config": config}]
        graph = {"id": "g", "nodes": nodes, "start": ["a"]}
        (flows / "flow.json").write_text(json.dumps({"graph": graph}))
        words = {word.format(outside=outside) for word in allow or ()}
        try:
            run_sync(load(flows / "flow.json", allow=words).run("x", **options))
        except AxilError as error:
            return str(error)
        return "done"

    with use_registry(registry):
        yield ran
    assert (outside / "secret").read_text() == "canary-5521"


@pytest.mark.parametrize("act", ACTS)
def test_what_a_careless_component_does_is_stopped_and_said(hostile, act, tmp_path):
    said = hostile(act)
    assert "the workflow file tries to" in said
    assert "--allow" in said
    assert {each.name for each in (tmp_path / "outside").iterdir()} <= {
        "secret", "strange_module.py", "__pycache__",
    }  # fmt: skip
    assert {each.name for each in (tmp_path / "flows").iterdir()} == {"flow.json", ".axil"}
    assert not Careless.seen


@pytest.mark.parametrize(
    "way",
    ["made", "provisioned", "body", "to_thread", "executor", "pool", "thread", "task", "callback"],
)
@pytest.mark.parametrize("act", ["read", "program", "connect"])
def test_wherever_it_acts_it_is_confined(hostile, act, way):
    assert "the workflow file tries to" in hostile(act, way)
    assert not Careless.seen


def _chosen(text: str) -> Any:
    assert text
    return importlib.import_module("strange_module")


def test_a_module_that_code_names_is_imported_though_a_setting_has_its_name(hostile, monkeypatch):
    """As of a store ``lancedb``, whose library is called so, too."""
    monkeypatch.setitem(ACTS, "import", ("strange_module", _chosen))
    assert hostile("import") == "done"
    assert Careless.seen


def test_what_it_does_at_its_end_is_confined(hostile):
    hostile("read", "closed")
    assert not Careless.seen


@pytest.mark.parametrize(
    ("act", "word"),
    [
        ("read", "read:{outside}/secret"),
        ("read", "code"),
        ("list", "read"),
        ("write", "write:{outside}"),
        ("program", "program:touch"),
        ("connect", "net:127.0.0.1"),
        ("import", "import:strange_module"),
    ],
)
def test_what_was_granted_is_done(hostile, act, word, tmp_path):
    said = hostile(act, allow={word})
    assert "the workflow file tries to" not in said
    for made in ("new", "imported"):
        (tmp_path / "flows" / made).unlink(missing_ok=True)


def test_a_program_that_was_granted_is_the_one_on_the_path(hostile, tmp_path, monkeypatch):
    other = tmp_path / "flows/.axil/touch"
    monkeypatch.setitem(ACTS, "program", (str(other), ACTS["program"][1]))
    other.write_text("#!/bin/sh\necho > ../stolen\n")
    other.chmod(0o755)
    assert f"start the program {other}" in hostile("program", allow={"program:touch"})
    assert not Careless.seen


def test_the_journal_the_observers_and_the_caller_are_not_confined(hostile, tmp_path):
    heard: list[str] = []

    class Observer:
        def firing_started(self, activation: Any, kind: str) -> None:
            heard.append((tmp_path / "outside/secret").read_text())

    journal = SqliteJournal(tmp_path / "elsewhere")
    assert hostile("read", "nowhere", journal=journal, observers=[Observer()]) == "done"
    assert heard == ["canary-5521"]
    assert (tmp_path / "elsewhere/runs.db").exists()


def test_a_run_beside_it_is_not_confined(hostile, tmp_path):
    async def both() -> str:
        def read() -> str:
            return (tmp_path / "outside/secret").read_text()

        return await asyncio.to_thread(read)

    hostile("read", "executor")
    assert asyncio.run(both()) == "canary-5521"

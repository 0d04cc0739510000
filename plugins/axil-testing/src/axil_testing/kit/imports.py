"""The effects of importing modules beside definitions, and what it loads, seen in a process that
has imported nothing but the kernel and pydantic.

Each process is a fork of one that waits, which imports those once; where there is no fork, each
process imports for itself. Modules of the kernel are imported where nothing of it is.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from axil_testing.kit import watch

_SERVER: Final = """
import asyncio, importlib, importlib.util, json, os, pydantic, signal, sys, threading
spec = importlib.util.spec_from_file_location("_kit_watch", sys.argv[1])
watch = sys.modules["_kit_watch"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(watch)
for name in sys.argv[2:]:
    door = importlib.import_module(name)
    [getattr(door, each) for each in door.__all__]


def answer(modules, path, folder, environment, printed, answered):
    for number, file in enumerate((os.devnull, printed, printed)):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:] = ["", *path]
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    importlib.invalidate_caches()
    before = dict(os.environ), os.getcwd(), threading.active_count()
    with watch.watched() as seen:
        for module in modules:
            importlib.import_module(module)
    faults = [f"has effects ({each})" for each in seen.effects]
    faults += ["changes the environment"] if dict(os.environ) != before[0] else []
    faults += ["changes the working directory"] if os.getcwd() != before[1] else []
    faults += ["starts a thread"] if threading.active_count() != before[2] else []
    sys.stdout.flush()
    sys.stderr.flush()
    with open(answered, "w") as file:
        json.dump([faults, list(sys.modules)], file)


for line in sys.stdin:
    child = os.fork() if hasattr(os, "fork") else 0
    if not child:
        if hasattr(signal, "alarm"):
            signal.alarm(120)
        answer(*json.loads(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """The outcome of importing modules, one after the other."""

    faults: tuple[str, ...] = ()
    """The effects beside definitions."""
    failure: str = ""
    """The reason why they cannot be imported; empty: they can."""
    loaded: frozenset[str] = frozenset()
    """The names of all modules that are loaded then."""


def imported(*modules: str) -> Imported:
    """Import modules in a process of their own."""
    return _imported(modules, tuple(path for path in sys.path if path))


@functools.cache  # a module often has several components
def _imported(modules: tuple[str, ...], path: tuple[str, ...]) -> Imported:
    is_of_kernel = any(each.partition(".")[0] == "axil" for each in modules)
    server = (_kept if hasattr(os, "fork") else _begun)(is_of_kernel)
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        printed, answered = Path(folder, "printed"), Path(folder, "answered")
        asked = (modules, path, os.getcwd(), dict(os.environ), str(printed), str(answered))
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        code = server.stdout.readline().strip() or server.wait()  # it has ended: there is no fork
        said = printed.read_text("utf-8", "replace").strip() if printed.exists() else ""
        if not answered.exists():
            return Imported(failure=(said.splitlines() or [f"exit code {code}"])[-1])
        faults, loaded = json.loads(answered.read_text("utf-8"))
    faults += ["prints"] if said else []
    return Imported(faults=tuple(faults), loaded=frozenset(loaded))


@functools.cache
def _kept(is_of_kernel: bool) -> subprocess.Popen[str]:
    server = _begun(is_of_kernel)
    atexit.register(server.communicate)
    return server


def _begun(is_of_kernel: bool) -> subprocess.Popen[str]:
    doors = () if is_of_kernel else ("axil", "axil.plugin", "axil.driver")
    return subprocess.Popen(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", _SERVER, watch.__file__, *doors],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )

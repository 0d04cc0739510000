"""Programs in a sandbox that mean harm: each finding of an attack on it, with what stops it.

No program here starts more processes than a machine bears, or writes what it found open.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from axil_process import Bubblewrap, Docker, Ended, Launch, Place, Podman, run_program, sandboxed
from axil_workspace import Bounds, run_bounded

KINDS = ["bubblewrap", "docker", "podman"]
MADE: dict[str, Any] = {"bubblewrap": Bubblewrap, "docker": Docker, "podman": Podman}


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    """A sandbox that works here."""
    why = MADE[request.param]().problem()
    if why:
        pytest.skip(why)
    return request.param


def launch(kind: str, code: str, *words: str, **more: Any) -> Launch:
    place = Place(**{"folder": None, "variables": {"PLAIN": "x"}, **more})
    return MADE[kind]().launch([sys.executable, "-c", code, *words], place)


def ran(kind: str, code: str, *words: str, **more: Any) -> Ended:
    started = launch(kind, code, *words, **more)

    async def go() -> Ended:
        return await run_program(
            started.command,
            timeout_seconds=60,
            output_bytes=10_000,
            env=started.variables,
            ends=started.ends,
        )

    return asyncio.run(go())


_LOOK = """
import ctypes, json, os, pathlib, socket, sys
libc = ctypes.CDLL(None, use_errno=True)

def called(name, *given):
    if getattr(libc, name)(*given) == -1:
        raise OSError(ctypes.get_errno(), name)

home, test = sys.argv[1:]
keyctl = {"x86_64": 250}.get(os.uname().machine, 219)
found = {}
for name, act in {
    "the network": lambda: socket.create_connection(("1.1.1.1", 53), timeout=2),
    "this machine": lambda: socket.create_connection(("127.0.0.1", 22), timeout=2),
    "the host of a virtual machine": lambda: socket.socket(40, socket.SOCK_STREAM),
    "ciphers of the kernel": lambda: socket.socket(38, socket.SOCK_SEQPACKET),
    "the service of containers": lambda: os.stat("/var/run/docker.sock"),
    "a home": lambda: os.listdir(home),
    "passwords": lambda: open("/etc/shadow").read(),
    "a link that leads out": lambda: (os.symlink(home, "out"), os.listdir("out")),
    "the system": lambda: pathlib.Path("/usr/made.txt").write_text("made"),
    "the root": lambda: pathlib.Path("/made.txt").write_text("made"),
    "the Python": lambda: pathlib.Path(sys.prefix, "made.txt").write_text("made"),
    # opened only: what is written there would be the machine's
    "settings of the kernel": lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
    "names of the machine": lambda: os.open("/proc/sys/kernel/hostname", os.O_WRONLY),
    "keys of the kernel": lambda: os.open("/proc/sysrq-trigger", os.O_WRONLY),
    "memory of the machine": lambda: os.open("/proc/kcore", os.O_RDONLY),
    "messages of the kernel": lambda: os.open("/proc/kmsg", os.O_RDONLY),
    "devices": lambda: os.mknod("disk", 0o60600, os.makedev(8, 0)),
    "another process's memory": lambda: os.open("/proc/1/mem", os.O_RDWR),
    "another process's variables": lambda: open("/proc/1/environ").read(),
    "the test": lambda: os.kill(int(test), 15),
    "to trace": lambda: called("ptrace", 16, 1, 0, 0),
    "users of its own": lambda: called("unshare", 0x10000000),
    "another root": lambda: os.chroot("/tmp"),
    "to mount": lambda: called("mount", b"none", b"/tmp", b"tmpfs", 0, None),
    "memory that is no process's": lambda: os.memfd_create("x"),
    "shared memory without a limit": lambda: called("shmget", 0, 1 << 40, 0o1600),
    "keys of the session": lambda: called("syscall", keyctl, 1, 0),
    "another user": lambda: os.setuid(1),
    "more memory": lambda: bytearray(4 << 30),
}.items():
    try:
        act()
        found[name] = True
    except (OSError, MemoryError):
        found[name] = False
for number in (9, 15):  # nothing: signals from inside do not reach the first process
    os.kill(1, number)
    os.kill(os.getppid(), number)
print(json.dumps({
    "open": [name for name in found if found[name]],
    "uid": os.getuid(),
    "processes": len([name for name in os.listdir("/proc") if name.isdecimal()]),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "variables": sorted(os.environ),
    "capabilities": [l.split()[1] for l in open("/proc/self/status") if l.startswith("Cap")],
}))
"""


def test_what_is_not_the_programs_is_closed_to_it(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "key")
    home, folder = tmp_path / "home", tmp_path / "w"
    home.mkdir()
    folder.mkdir()
    ended = ran(kind, _LOOK, str(home), str(os.getpid()), folder=folder)
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["open"] == []
    assert found["interfaces"] == ["lo"]
    assert found["processes"] == 2
    assert set(found["capabilities"]) == {"0" * 16}
    assert "SECRET" not in found["variables"]
    assert "PLAIN" in found["variables"]
    if kind == "bubblewrap":
        assert found["uid"] == 65534


def test_what_is_the_programs_is_open_to_it(kind, tmp_path):
    folder = tmp_path / "w, of mine"
    folder.mkdir()
    code = (
        "import multiprocessing as m, os, subprocess, threading\n"
        "open('made.txt', 'w').write('made'); open('/tmp/made.txt', 'w').write('made')\n"
        "t = threading.Thread(target=print, args=['thread']); t.start(); t.join()\n"
        "print(subprocess.run(['cat', 'made.txt'], capture_output=True).stdout)\n"
        "print(m.Pool(2).map(abs, [-1, 2]), os.getcwd() == os.environ['HOME'])"
    )
    ended = ran(kind, code, folder=folder, variables={"HOME": str(folder), "PATH": "/usr/bin"})
    assert (ended.exit_code, ended.stdout) == (0, b"thread\nb'made'\n[1, 2] True\n"), ended.stderr
    assert (folder / "made.txt").stat().st_uid == os.getuid()


@pytest.mark.parametrize(
    ("code", "more", "why"),
    [
        (  # at most 512 of them
            "import os, time\nfor _ in range(9): os.fork()\ntime.sleep(30)",
            {"processes": 40},
            "processes",
        ),
        (  # each within its own limit
            "import os, time\nfor _ in range(6):\n  if not os.fork(): break\n"
            "kept = bytearray(50 << 20); time.sleep(30)",
            {"memory_bytes": 200 << 20},
            "bytes of memory",
        ),
        (
            "import mmap, os, time\nfor _ in range(6):\n  if not os.fork(): break\n"
            "kept = mmap.mmap(-1, 50 << 20)\n"
            "for at in range(0, 50 << 20, 4096): kept[at] = 1\n"
            "time.sleep(30)",
            {"memory_bytes": 200 << 20},
            "bytes of memory",
        ),
        ("import time\nwhile True: time.sleep(1)", {"seconds": 0.5}, "seconds"),
    ],
    ids=["processes", "memory", "shared", "time"],
)
def test_what_its_processes_use_together_is_bounded(code, more, why):
    if Bubblewrap().problem():
        pytest.skip(Bubblewrap().problem())
    ended = ran("bubblewrap", code, **more)
    last = ended.stderr.decode().splitlines()[-1]
    assert ended.exit_code == 137
    assert last.startswith("axil-process: stopped: it ")
    assert why in last


def marked(text: str) -> list[int]:
    """Return the processes of the machine that have ``text`` among their words."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if text.encode() in _read(path)
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def until(is_so: Callable[[], bool]) -> bool:
    begin = time.monotonic()
    while not is_so() and time.monotonic() - begin < 60:
        time.sleep(0.01)
    return is_so()


_LEAVES = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if not os.fork():
    os.setsid()
    os.fork()
open("begun", "w").close()
if sys.argv[2] == "writes":
    while True: os.write(1, b"x" * 65536)
time.sleep(600)
"""


async def cancelled(doing: Coroutine[Any, Any, Any], begun: Path) -> None:
    """Cancel what was started when its program has begun."""
    job = asyncio.ensure_future(doing)
    # the program is another process: there is no event to wait for
    while not begun.exists() and not job.done():  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.01)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job


@pytest.mark.parametrize("how", ["waits", "writes"])
def test_what_is_cancelled_is_killed_with_all_that_left_its_group(kind, tmp_path, how):
    mark = f"mark-{tmp_path.name}-{kind}"
    started = launch(kind, _LEAVES, mark, how, folder=tmp_path)
    doing = run_program(
        started.command,
        timeout_seconds=60,
        output_bytes=10_000,
        env=started.variables,
        ends=started.ends,
    )
    asyncio.run(cancelled(doing, tmp_path / "begun"))
    assert until(lambda: not marked(mark))


def test_tools_leave_nothing_behind_either(kind, tmp_path):
    mark = f"mark-{tmp_path.name}-{kind}"
    command = [sys.executable, "-c", _LEAVES, mark, "waits"]
    doing = run_bounded(command, tmp_path, Bounds(), sandbox=kind)
    asyncio.run(cancelled(doing, tmp_path / "begun"))
    assert until(lambda: not marked(mark))


def test_nothing_outlives_an_axil_that_was_killed(tmp_path):
    if Bubblewrap().problem():
        pytest.skip(Bubblewrap().problem())
    mark = f"mark-{tmp_path.name}"
    command = launch("bubblewrap", _LEAVES, mark, "waits", folder=tmp_path).command
    code = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    axil = subprocess.Popen([sys.executable, "-c", code, *command])
    try:
        assert until((tmp_path / "begun").exists)
        axil.send_signal(signal.SIGKILL)
        axil.wait()
        assert until(lambda: not marked(mark))
    finally:
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)


def test_a_program_does_not_choose_what_starts_its_sandbox(tmp_path):
    if Bubblewrap().problem():
        pytest.skip(Bubblewrap().problem())
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho own\n")
    (tmp_path / "bwrap").chmod(0o755)
    variables = {"PATH": str(tmp_path), "LD_PRELOAD": str(tmp_path / "own.so")}

    async def go() -> Ended:
        place = Place(folder=tmp_path, variables=variables)
        started = await sandboxed([sys.executable, "-c", "print('its')"], place, "bubblewrap")
        assert "LD_PRELOAD" not in started.variables
        return await run_program(
            started.command,
            timeout_seconds=60,
            output_bytes=1000,
            cwd=tmp_path,
            env=started.variables,
        )

    assert asyncio.run(go()).stdout == b"its\n"

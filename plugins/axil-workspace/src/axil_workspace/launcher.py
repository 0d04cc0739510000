"""Starts one program, within limits, and sees to it that nothing of it is left.

A script of its own; it imports the standard library only.

    python -I -S launcher.py SETTINGS PROGRAM [ARGUMENT …]

It stands between axil and the program. Its standard input is a line to axil: when that closes (the
time is up, the run is cancelled, axil is gone), the program is killed. The program gets limits that
the kernel enforces on each process (processor time, address space, file size); what no such limit
covers, the number of processes and the memory of all of them, is looked at a few times a second. On
Linux it adopts orphans (it is a "subreaper"), so that a program that sends itself to the background
is still among its descendants; elsewhere what leaves the program's process group is out of reach.
The end of the program is reported through the pipe ``SETTINGS["status"]``, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

_SUBREAPER = 36
_SHORT, _LONG = 0.002, 0.05
"""Seconds between two looks, at first and later."""
_ROUNDS = 200
_PAGE = os.sysconf("SC_PAGE_SIZE")


def main(settings: Mapping[str, Any], command: Sequence[str]) -> None:
    """Run ``command`` to its end, or to that of its time."""
    status = int(settings["status"])
    os.set_inheritable(status, False)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    # what starts a container is no part of it: the container has limits of its own
    limits = [] if settings.get("ends") else _limits(settings)
    child = os.fork()
    if child == 0:
        _begin(settings, command, limits, status)
    os.close(int(settings["stdin"]))
    report = _watch(child, settings)
    _end(child)
    if settings.get("ends") and (report["code"] is None or report["code"] < 0):
        _end_elsewhere(settings["ends"])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report["cpu_seconds"] = round(used.ru_utime + used.ru_stime, 3)
    os.write(status, (json.dumps(report) + "\n").encode())


def _limits(settings: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Return the limits that the kernel enforces: kind, soft and hard limit."""
    seconds = int(settings["cpu_seconds"])
    limits = [
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_AS, settings["memory_bytes"], settings["memory_bytes"]),
        (resource.RLIMIT_FSIZE, settings["file_bytes"], settings["file_bytes"]),
        (resource.RLIMIT_CORE, 0, 0),
    ]
    # counts all threads of the user, so it only slows a fork bomb until it is seen
    if hasattr(resource, "RLIMIT_NPROC"):
        most = _threads_of(os.getuid()) + 8 * int(settings["processes"])
        limits.append((resource.RLIMIT_NPROC, most, most))
    return limits


def _begin(
    settings: Mapping[str, Any],
    command: Sequence[str],
    limits: Sequence[tuple[int, int, int]],
    status: int,
) -> None:
    """In the child: become the program."""
    try:
        os.setsid()
        os.dup2(int(settings["stdin"]), 0)
        for kind, soft, hard in limits:
            most = resource.getrlimit(kind)[1]
            allowed = [
                value if most == resource.RLIM_INFINITY else min(value, most)
                for value in (soft, hard)
            ]
            with suppress(OSError, ValueError):  # macOS knows limits that it does not take
                resource.setrlimit(kind, (allowed[0], allowed[1]))
        os.execvp(command[0], list(command))
    except OSError as error:
        os.write(status, (json.dumps({"error": error.strerror or str(error)}) + "\n").encode())
    finally:
        os._exit(127)


def _watch(child: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Wait for the program's end, or for a reason to end it."""
    pause = _SHORT
    while True:
        code = _reaped(child)
        if code is not None and settings.get("is_sandboxed") and 128 < code <= 192:
            code = 128 - code  # by which signal the program ended, as the sandbox says it
        if code is not None:
            return {"code": code, "stopped": "cpu" if code == -signal.SIGXCPU else ""}
        if select.select([0], [], [], pause)[0] and not os.read(0, 1):
            return {"code": None, "stopped": "gone"}
        pause = min(pause * 1.5, _LONG)
        found = descendants(os.getpid())
        if len(found) > settings["processes"]:
            return {"code": None, "stopped": "processes"}
        if sum(_memory(pid) for pid in found) > settings["memory_bytes"]:
            return {"code": None, "stopped": "memory"}


def _reaped(child: int) -> int | None:
    """Reap ended processes, orphans included; return the program's exit code, if it has ended."""
    code = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
    return code


def _end(child: int) -> None:
    """Kill what is left until nothing is: a killed process may have just started another."""
    for _ in range(_ROUNDS):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        left = descendants(os.getpid())
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reaped(child)
        if not left:
            return
        time.sleep(_SHORT)


def _end_elsewhere(command: Sequence[str]) -> None:
    """Run the command that ends a program which is no descendant, as one in a container."""
    with suppress(OSError), open(os.devnull, "r+b") as nothing:
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), each) for each in (0, 1, 2)]
        os.waitpid(os.posix_spawnp(command[0], list(command), os.environ, file_actions=actions), 0)


def descendants(pid: int) -> list[int]:
    """Return all processes that come from ``pid``, where the system says so."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        children: list[int] = []
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{thread}/children") as file:
                    children += map(int, file.read().split())
        found += children
        waiting += children
    return found


def _memory(pid: int) -> int:
    """Return bytes of memory that a process holds by itself."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm") as file:
        words = file.read().split()
        return (int(words[1]) - int(words[2])) * _PAGE
    return 0


def _threads_of(user: int) -> int:
    count = 0
    with suppress(OSError):
        for name in os.listdir("/proc"):
            with suppress(OSError):
                if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count or 4096


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])

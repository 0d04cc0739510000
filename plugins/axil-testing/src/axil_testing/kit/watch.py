"""The observation of code's effects: connections, processes, threads, written files, blocked
threads.

The interpreter's own audit events say it; a hook for them cannot be taken away again, so there is
one, and it listens only while somebody watches.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

_EFFECTS: Final = {
    "socket.connect": "connects to a socket",
    "socket.getaddrinfo": "looks up a host",
    "socket.bind": "binds a socket",
    "subprocess.Popen": "starts a process",
    "os.system": "runs a shell",
    "os.posix_spawn": "starts a process",
    "os.fork": "forks",
    "os.mkdir": "makes a folder",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.putenv": "changes the environment",
    "os.chdir": "changes the working directory",
    "sqlite3.connect": "opens a database",
    "urllib.Request": "asks a URL",
}
_BLOCKING: Final = {
    # raised by Python itself from 3.13 on; before that by us, see _sleeping
    "time.sleep": "time.sleep",
    "os.system": "os.system",
    "builtins.input": "input",
    "urllib.Request": "urllib",
}


@dataclass
class Watch:
    """The observed effects, in order and each once."""

    effects: list[str] = field(default_factory=list[str])
    """Effects on the world outside the process, by this thread and by those begun since."""
    blocked: list[str] = field(default_factory=list[str])
    """Calls that stop the thread that is watching."""
    thread: int = field(default_factory=threading.get_ident)
    before: tuple[threading.Thread, ...] = field(
        default_factory=lambda: tuple(threading.enumerate())
    )
    """The threads that ran already; what they do has other reasons."""

    def see(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take note of an audit event."""
        by = threading.get_ident()
        if by != self.thread and any(each.ident == by for each in self.before if each.is_alive()):
            return
        if _is_bytecode(arguments):
            return
        report = _EFFECTS.get(event) or _writes(event, arguments)
        if report and report not in self.effects:
            self.effects.append(report)
        if event in _BLOCKING and by == self.thread and _BLOCKING[event] not in self.blocked:
            self.blocked.append(_BLOCKING[event])


def _writes(event: str, arguments: tuple[Any, ...]) -> str:
    if event != "open" or len(arguments) < 2 or not isinstance(arguments[0], str):
        return ""
    path, mode, *flags = arguments
    opened = (
        set(mode) & set("wax+")
        if isinstance(mode, str)
        else flags and flags[0] & (os.O_WRONLY | os.O_RDWR)
    )
    return f"writes {path}" if opened and path != os.devnull else ""


def _is_bytecode(arguments: tuple[Any, ...]) -> bool:
    """Return whether a file is Python's compiled cache, which any first import writes."""
    return any(
        isinstance(each, str) and ("__pycache__" in each or each.endswith(".pyc"))
        for each in arguments[:2]
    )


_watching: list[Watch] = []
_is_hooked = False
_sleep = time.sleep


def _sleeping(seconds: float) -> None:
    _hook("time.sleep", (seconds,))
    _sleep(seconds)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    for watch in tuple(_watching):
        watch.see(event, arguments)


@contextmanager
def watched() -> Generator[Watch]:
    """Record the effects within the ``with``; a thread that is started is one, too.

    Garbage is not collected meanwhile: the finalizers of what is older have effects of their own.
    """
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_hook)
        _is_hooked = True
    watch = Watch()
    collects = gc.isenabled()
    gc.disable()
    _watching.append(watch)
    time.sleep = _sleeping
    try:
        yield watch
    finally:
        _watching.remove(watch)
        if not _watching:
            time.sleep = _sleep
        if collects:
            gc.enable()
        if any(each not in watch.before for each in threading.enumerate()):
            watch.effects.append("starts a thread")

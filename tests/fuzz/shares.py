"""Shares of a case: of the processor and of memory, and how long it may do nothing but wait.

No share is a time on the clock, so a busy machine changes nothing. A case that takes more ends the
process, which says on standard error where it was.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 10
"""Of the processor, for one case; a usual one takes a hundredth of one."""
MEMORY = 4 << 30
WAITS = 30
"""Seconds in which the process has work for no processor, whatever the machine does."""


def limit() -> None:
    """Limit this process, and keep the files of its cases in memory where the system can."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    if os.access("/dev/shm", os.W_OK):
        tempfile.tempdir = "/dev/shm"  # a disk makes a case wait ten times as long as it works
    watched = os.getpid()
    if Path("/proc/self/stat").exists() and not os.fork():
        os.closerange(0, 3)
        _watch(watched)


def begin(kind: str, number: int | str) -> None:
    """Begin a case."""
    sys.stderr.write(f"{kind} {number}\n")
    signal.setitimer(signal.ITIMER_PROF, SECONDS)


def _watch(process: int) -> None:
    """End a process that waits, and this one when the process has ended."""
    waits, used = 0, 0
    while os.getppid() == process:
        time.sleep(1)
        now, is_at_rest = _look(process)
        waits = waits + 1 if is_at_rest and now - used < 5 else 0
        used = now
        if waits >= WAITS:
            os.kill(process, signal.SIGABRT)  # faulthandler says where each thread is
    os._exit(0)


def _look(process: int) -> tuple[int, bool]:
    """Return what a process has used, in hundredths of a second, and whether all of it sleeps:
    nothing of it waits for a processor or a disk.
    """
    used, states = 0, set[str]()
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            fields = (thread / "stat").read_text().rpartition(")")[2].split()
            states.add(fields[0])
            used += int(fields[11]) + int(fields[12])
    except OSError:  # one of them has ended
        return used, False
    return used, states == {"S"}

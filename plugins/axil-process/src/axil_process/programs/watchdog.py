"""Watchdog of a process: when that is gone, however it ended, its programs are killed.

A script of its own; it imports the standard library only.

    python -I -S watchdog.py

Its standard input is a line to the process, on which each number is a process group to be killed,
or, where it is negative, one that has ended. When the line closes, the process is gone.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Wait until the process is gone, and kill what it left."""
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line)
        if number > 0:
            groups.add(number)
        else:
            groups.discard(-number)
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()

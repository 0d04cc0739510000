"""``bubblewrap``: programs in namespaces of their own, by the program ``bwrap`` of Linux.

A program sees the system's programs and libraries and the Python that runs axil, all read only; an
empty ``/tmp``; and its own folder, which it writes. There is no home, no network, and no process of
others.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from axil.plugin import granted
from axil_process.programs.sandbox import Launch, Place
from axil_process.sandboxes.system import (
    STEERING,
    SYSTEM,
    TEMPORARY,
    Settings,
    readable,
    supervised,
    writable,
)

_NOBODY: Final = "65534"
_WRITES: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_NESTED: Final = (0, 8)
"""The version of bwrap from which on it forbids further user namespaces inside."""


class Bubblewrap:
    """A sandbox of bubblewrap: no network, a read-only system, a user of its own."""

    Config = Settings

    def __init__(self, config: Settings | None = None) -> None:
        self.config = config or Settings()

    def problem(self) -> str:
        """See ``axil_process.Sandbox``. Cost: two programs; the answer is kept."""
        return _problem(self.config)

    def launch(self, command: Sequence[str], place: Place) -> Launch:
        """See ``axil_process.Sandbox``."""
        steering = {n: value for n, value in place.variables.items() if _steers(n)}
        return Launch(
            command=[
                *_bwrap(self.config, readable(command, place), writable(place), steering),
                *_start(place),
                *supervised(self.config, command, place, counts_user=True),
            ],
            variables={n: value for n, value in place.variables.items() if not _steers(n)},
        )

    def __repr__(self) -> str:
        return f"Bubblewrap({self.config!r})"


def _steers(name: str) -> bool:
    return STEERING.fullmatch(name) is not None


def _bwrap(
    config: Settings, reads: Sequence[str], writes: Sequence[str], variables: Mapping[str, str]
) -> list[str]:
    """Return the command ``bwrap`` up to the folder in which a program starts."""
    size = str(config.temporary_bytes)
    made = [
        _program(),
        *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--as-pid-1"),
        *("--cap-drop", "ALL", "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox"),
        *(["--disable-userns"] if _version() >= _NESTED else []),
        *("--proc", "/proc", *_guarded(), "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm"),
        *("--size", size, "--tmpfs", TEMPORARY),
    ]
    for path in (path for path in SYSTEM if os.path.lexists(path)):
        made += ["--symlink", os.readlink(path), path] if os.path.islink(path) else _bound(path)
    # a Python that lies in the program's folder is bound behind it, so that it stays as it is
    inside = [path for path in reads if any(path.startswith(f"{each}/") for each in writes)]
    for path in reads:
        made += [] if path in inside else _bound(path)
    for path in writes:
        made += ["--bind", path, path]
    for path in inside:
        made += _bound(path)
    for name, value in variables.items():
        made += ["--setenv", name, value]
    return [*made, "--remount-ro", "/"]


def _start(place: Place) -> list[str]:
    folder = TEMPORARY if place.folder is None else os.path.realpath(place.folder)
    return ["--chdir", folder, "--"]


def _bound(path: str) -> list[str]:
    return ["--ro-bind-try", os.path.realpath(path), path]


@cache
def _guarded() -> list[str]:
    """Return the options by which nothing of the machine itself is written through ``/proc``, and
    what only its owner may read is not read.

    A user without rights can do neither; root can, in a sandbox, too, since the files are root's.
    """
    made: list[str] = []
    for entry in sorted(os.scandir("/proc"), key=lambda entry: entry.name):
        if entry.name.isdecimal() or entry.is_symlink():
            continue
        mode = entry.stat().st_mode
        is_hidden = not stat.S_ISDIR(mode) and not mode & stat.S_IROTH
        if not (is_hidden or stat.S_ISDIR(mode) or mode & _WRITES):
            continue
        made += ["--ro-bind-try", "/dev/null" if is_hidden else entry.path, entry.path]
    return made


def _program() -> str:
    return shutil.which("bwrap") or "bwrap"


@cache
def _version() -> tuple[int, ...]:
    """Return the version of bwrap; empty: it does not say it."""
    try:
        with granted(None):
            reported = subprocess.run(
                [_program(), "--version"], capture_output=True, timeout=20, check=False, text=True
            ).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"(\d+)\.(\d+)", reported)
    return () if found is None else (int(found[1]), int(found[2]))


@cache
def _problem(config: Settings) -> str:
    if not sys.platform.startswith("linux"):
        return "bubblewrap is for Linux"
    if shutil.which("bwrap") is None:
        return "the program bwrap is not installed (Debian: apt install bubblewrap)"
    launch = Bubblewrap(config).launch([sys.executable, "-I", "-c", ""], Place())
    try:
        with granted(None):
            ended = subprocess.run(
                launch.command,
                env=dict(launch.variables),
                capture_output=True,
                timeout=20,
                check=False,
                text=True,
            )
    except (OSError, subprocess.SubprocessError) as error:
        return f"bwrap cannot be started ({error})"
    if ended.returncode:
        reported = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        return f"bwrap does not work here ({reported[-1]})"
    return ""

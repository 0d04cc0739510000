"""``bubblewrap``: programs in namespaces of their own, by the program ``bwrap`` of Linux.

A program sees a file system that is put together for it: the system's programs and libraries and
the Python that runs axil, all read only; an empty ``/tmp``; and its own folder, which it writes.
Nothing else of the machine is there: no home, no keys, no network, no processes of others.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

from axil_subprocess import Place

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS: Final = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/ssl/certs",
)
"""Settings that programs need and that say nothing of the machine's users."""
_NOBODY: Final = "65534"
_PYTHON: Final = re.compile(r"python[0-9.]*")
_LIMITED: Final = (
    "import os, resource, sys\n"
    "for kind, most in ((resource.RLIMIT_AS, int(sys.argv[1])), "
    "(resource.RLIMIT_NPROC, int(sys.argv[2])), (resource.RLIMIT_CORE, 0)):\n"
    "    allowed = resource.getrlimit(kind)[1]\n"
    "    most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)\n"
    "    resource.setrlimit(kind, (most, most))\n"
    "os.execvp(sys.argv[3], sys.argv[3:])\n"
)
"""Runs a program with less memory and fewer processes; in the sandbox, before the program."""


class Settings(BaseModel, extra="forbid", frozen=True):
    """The settings of the sandbox."""

    memory_bytes: int = Field(
        default=2 << 30, ge=64 << 20, description="Address space of each process."
    )
    processes: int = Field(
        default=256,
        ge=1,
        description="Processes and threads at once. The system does not hold root to it.",
    )
    temporary_bytes: int = Field(
        default=256 << 20, ge=1, description="What `/tmp` and `/dev/shm` hold, each."
    )


class Bubblewrap:
    """A sandbox of bubblewrap: no network, a read-only system, a user of its own."""

    Config = Settings

    def __init__(self, config: Settings | None = None) -> None:
        self.config = config or Settings()

    def problem(self) -> str:
        """See ``axil_subprocess.Sandbox``. Cost: one program; the answer is kept."""
        return _problem(self.config)

    def command(self, command: Sequence[str], place: Place) -> list[str]:
        """See ``axil_subprocess.Sandbox``."""
        folder = os.path.realpath(place.folder)
        command = [_standing_for(command[0]), *command[1:]]
        reads = [*_programs(command[0]), *place.reads]
        writes = [folder, *(os.path.realpath(path) for path in place.writes)]
        limits = [str(self.config.memory_bytes), str(self.config.processes)]
        return [
            *_bwrap(self.config, folder, reads, writes),
            *(sys.executable, "-I", "-S", "-c", _LIMITED, *limits, *command),
        ]

    def __repr__(self) -> str:
        return f"Bubblewrap({self.config!r})"


def _bwrap(
    config: Settings, folder: str, reads: Iterable[str | Path], writes: Sequence[str]
) -> list[str]:
    """Return the command ``bwrap`` up to the program."""
    size = str(config.temporary_bytes)
    made = [
        shutil.which("bwrap") or "bwrap",
        *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox"),
        *("--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm"),
        *("--size", size, "--tmpfs", "/tmp"),
    ]
    for path in _system():
        made += ["--symlink", os.readlink(path), path] if os.path.islink(path) else _bound(path)
    readable = [*_SETTINGS, *_apart([*_python(), *map(str, reads)])]
    # a Python that lies in the program's folder is bound behind it, so that it stays as it is
    inside = [path for path in readable if any(path.startswith(f"{each}/") for each in writes)]
    for path in readable:
        made += [] if path in inside else _bound(path)
    for path in dict.fromkeys(writes):
        made += ["--bind", path, path]
    for path in inside:
        made += _bound(path)
    return [*made, "--remount-ro", "/", "--chdir", folder, "--"]


def _bound(path: str) -> list[str]:
    return ["--ro-bind-try", os.path.realpath(path), path]


def _apart(paths: Iterable[str]) -> list[str]:
    """Return the paths that are in no folder of the system, and in none of those before them."""
    found: list[str] = []
    for path in paths:
        if not any(path == each or path.startswith(f"{each}/") for each in (*_SYSTEM, *found)):
            found.append(path)
    return found


def _system() -> list[str]:
    return [path for path in _SYSTEM if os.path.lexists(path)]


def _python() -> list[str]:
    """Return the folders of the Python that runs axil, outside the system's."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, sysconfig.get_paths()["stdlib"]]
    return [*found, *_programs(sys.executable)]


def _standing_for(name: str) -> str:
    """Return the program to start: where ``python`` is a script of a version manager, which needs
    files of the user, the Python that runs axil.
    """
    path = shutil.which(name)
    if path is None or _PYTHON.fullmatch(os.path.basename(path)) is None or not _apart([path]):
        return name
    with open(path, "rb") as file:
        return sys.executable if file.read(2) == b"#!" else name


def _programs(name: str) -> list[str]:
    """Return the file of a program, and that to which it leads."""
    path = shutil.which(name)
    return [] if path is None else [*dict.fromkeys((path, os.path.realpath(path)))]


@cache
def _problem(config: Settings) -> str:
    if not sys.platform.startswith("linux"):
        return "bubblewrap is for Linux"
    if shutil.which("bwrap") is None:
        return "the program bwrap is not installed (Debian: apt install bubblewrap)"
    tried = Bubblewrap(config).command([sys.executable, "-I", "-c", ""], Place(folder=Path("/usr")))
    bind = tried.index("--bind")
    tried[bind] = "--ro-bind"  # of a trial nothing is written
    try:
        ended = subprocess.run(tried, capture_output=True, timeout=20, check=False, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"bwrap cannot be started ({error})"
    if ended.returncode:
        said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        return f"bwrap does not work here ({said[-1]})"
    return ""

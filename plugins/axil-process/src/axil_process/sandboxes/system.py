"""The files of the machine that programs in a sandbox see, and the limits that hold there."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

from axil_process.programs.sandbox import Place

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS: Final = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/ssl/certs",
)
"""Settings that programs need and that say nothing of the machine's users."""
TEMPORARY: Final = "/tmp"
STEERING: Final = re.compile(r"LD_\w+|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|MALLOC_\w+")
"""Variables by which a program runs other code: never those of what starts the sandbox."""
_PYTHON: Final = re.compile(r"python[0-9.]*")


class Settings(BaseModel, extra="forbid", frozen=True):
    """The limits of a sandbox."""

    memory_bytes: int = Field(
        default=2 << 30,
        ge=64 << 20,
        description="Address space of each process, and memory of all together.",
    )
    processes: int = Field(default=256, ge=1, description="Processes at one time.")
    temporary_bytes: int = Field(
        default=256 << 20, ge=1, description="What `/tmp` and `/dev/shm` hold, each."
    )
    seconds: int = Field(
        default=86_400, ge=1, description="How long a program lives that has no other time limit."
    )


def supervised(
    settings: Settings, command: Sequence[str], place: Place, *, counts_user: bool
) -> list[str]:
    """Return the command of the first process in a sandbox, which runs ``command`` in its limits.

    Args:
        counts_user: the user of the sandbox has no processes outside it, so that the system's limit
            for a user's processes is one for the sandbox.
    """
    processes = place.processes or settings.processes
    limits = {
        "memory_bytes": place.memory_bytes or settings.memory_bytes,
        "processes": processes,
        "user_processes": processes if counts_user else None,
        # root is held to no number of processes: so that the supervisor gets time to look at them
        "nice": 15 if counts_user and os.getuid() == 0 else 0,
        "cpu_seconds": place.cpu_seconds,
        "file_bytes": place.file_bytes,
        "seconds": place.seconds or settings.seconds,
    }
    program = [_standing_for(command[0]), *command[1:]]
    return [sys.executable, "-I", "-S", "-c", _supervisor(), json.dumps(limits), *program]


def readable(command: Sequence[str], place: Place) -> list[str]:
    """Return what a program reads beside the system itself: settings, the Python that runs axil,
    the program, and what its place names; none lies in another.
    """
    program = _programs(_standing_for(command[0]))
    return [*SETTINGS, *_apart([*_python(), *program, *map(str, place.reads)])]


def writable(place: Place) -> list[str]:
    """Return the folders and files that a program writes, the one where it starts first."""
    folder = [] if place.folder is None else [place.folder]
    return list(dict.fromkeys(os.path.realpath(path) for path in (*folder, *place.writes)))


@cache
def _supervisor() -> str:
    return Path(__file__).with_name("inside.py").read_text("utf-8")


def _apart(paths: Iterable[str]) -> list[str]:
    """Return the paths that are in no folder of the system, and in none of those before them."""
    found: list[str] = []
    for path in paths:
        if not any(path == each or path.startswith(f"{each}/") for each in (*SYSTEM, *found)):
            found.append(path)
    return found


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
    try:
        with open(path, "rb") as file:
            return sys.executable if file.read(2) == b"#!" else name
    except OSError:  # a program that can be started, and not be read, is no script
        return name


def _programs(name: str) -> list[str]:
    """Return the file of a program, and that to which it leads."""
    path = shutil.which(name)
    return [] if path is None else [*dict.fromkeys((path, os.path.realpath(path)))]

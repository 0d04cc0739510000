"""``docker`` and ``podman``: programs in containers that show the machine's own system.

The container's image is empty, so none is fetched: the system's programs and libraries and the
Python that runs axil are mounted in it, read only, as bubblewrap does.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, Final

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

_IMAGE: Final = "localhost/axil-sandbox:empty"
_EMPTY: Final = bytes(10_240)
"""An archive without files, of which the image is made."""
_LABEL: Final = "axil-process"
"""Of containers: ``docker ps --filter label=…`` finds those that were left behind."""
_CLIENT: Final = (
    "HOME",
    "PATH",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "TMPDIR",
)
_PREFIXES: Final = ("DOCKER_", "CONTAINER_", "CONTAINERS_", "PODMAN_", "STORAGE_")
"""Variables by which the client finds its service and its settings; none of the program's."""
_LIMIT: Final = 16_384
"""Open files of a process, and processes of a user, in a container of Podman."""
_PATIENCE: Final = 60
"""Seconds for the service to answer."""


class Container:
    """A sandbox of containers: no network, a read-only system, the user of axil without rights."""

    Config = Settings
    client: ClassVar[str]
    """The program that starts containers."""
    options: ClassVar[Sequence[str]] = ()
    """Options of ``run`` that this client alone needs."""

    def __init__(self, config: Settings | None = None) -> None:
        self.config = config or Settings()

    def problem(self) -> str:
        """See ``axil_process.Sandbox``.

        Cost: some calls of the client, one container, and at first an empty image that is kept;
        the answer is kept.
        """
        return _problem(type(self), self.config)

    def launch(self, command: Sequence[str], place: Place) -> Launch:
        """See ``axil_process.Sandbox``."""
        name = f"axil-{secrets.token_hex(8)}"
        client = shutil.which(self.client) or self.client
        variables, stated = _variables(place.variables)
        return Launch(
            command=[
                *(client, "run", "--rm", "--interactive", "--name", name, "--label", _LABEL),
                *("--pull", "never", "--log-driver", "none", "--stop-timeout", "0"),
                *("--network", "none", "--read-only", "--cap-drop", "ALL"),
                *("--security-opt", "no-new-privileges", "--user", self._user(client)),
                *self.options,
                *self._limits(place),
                *_mounts(readable(command, place), writable(place)),
                *("--workdir", TEMPORARY if place.folder is None else writable(place)[0]),
                *(word for each in stated for word in ("--env", each)),
                _IMAGE,
                *supervised(self.config, command, place, counts_user=False),
            ],
            variables=variables,
            ends=[client, "rm", "--force", name],
        )

    def _user(self, client: str) -> str:
        """Return the user inside who is the user of axil outside: the workspace is that user's."""
        return f"{os.getuid()}:{os.getgid()}"

    def _limits(self, place: Place) -> list[str]:
        memory = str(place.memory_bytes or self.config.memory_bytes)
        processes = (place.processes or self.config.processes) + 1  # and the supervisor
        size = str(self.config.temporary_bytes)
        return [
            *("--memory", memory, "--memory-swap", memory, "--pids-limit", str(processes)),
            *("--shm-size", size, "--tmpfs", f"{TEMPORARY}:rw,nosuid,nodev,size={size},mode=1777"),
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config!r})"


class Docker(Container):
    """Containers of Docker."""

    client = "docker"

    def _user(self, client: str) -> str:
        return "0:0" if _is_rootless(client) else super()._user(client)


class Podman(Container):
    """Containers of Podman."""

    client = "podman"
    options = () if os.getuid() == 0 else ("--userns", "keep-id")

    def _limits(self, place: Place) -> list[str]:
        # Podman's own are higher than a machine may allow
        limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
        allowed = {name: resource.getrlimit(kind)[1] for name, kind in limits.items()}
        given = {
            name: _LIMIT if hard == resource.RLIM_INFINITY else min(hard, _LIMIT)
            for name, hard in allowed.items()
        }
        words = (("--ulimit", f"{name}={most}:{most}") for name, most in given.items())
        return [*super()._limits(place), *(word for pair in words for word in pair)]


def _mounts(reads: Sequence[str], writes: Sequence[str]) -> list[str]:
    made: list[str] = []
    for path in (*(path for path in SYSTEM if os.path.lexists(path)), *reads):
        if os.path.exists(path):
            made += ["--mount", _mount(os.path.realpath(path), path, "readonly")]
    for path in writes:
        made += ["--mount", _mount(path, path)]
    return made


def _mount(source: str, target: str, *more: str) -> str:
    """Return a mount as the client reads it: fields of CSV, since paths may hold commas."""
    line = io.StringIO()
    fields = ("type=bind", f"source={source}", f"target={target}", *more)
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def _variables(wanted: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the client's environment, and what it is to say of the program's: only a name where
    it may pass on its own, so that a secret is not seen in a list of processes.
    """
    own = {name: value for name, value in os.environ.items() if _is_of_client(name)}
    apart = [name for name in wanted if _is_of_client(name) or STEERING.fullmatch(name)]
    passed = {name: value for name, value in wanted.items() if name not in apart}
    return {**own, **passed}, [*passed, *(f"{name}={wanted[name]}" for name in apart)]


def _is_of_client(name: str) -> bool:
    return name in _CLIENT or name.startswith(_PREFIXES)


def _called(client: str, *words: str, given: bytes | None = None) -> tuple[int, str]:
    """Return the exit code of a call of a client, and the last line that it reports."""
    try:
        with granted(None):
            ended = subprocess.run(
                [client, *words],
                input=given or b"",
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
    except (OSError, subprocess.SubprocessError) as error:
        return -1, str(error)
    code = ended.returncode
    reported = (ended.stderr if code else ended.stdout).decode("utf-8", "replace")
    return code, (reported.strip().splitlines() or [f"exit code {code}"])[-1]


@cache
def _is_rootless(client: str) -> bool:
    """Return whether root in a container is the user who runs the service, who is no root."""
    return "rootless" in _called(client, "info", "--format", "{{.SecurityOptions}}")[1]


@cache
def _problem(kind: type[Container], config: Settings) -> str:
    if not sys.platform.startswith("linux"):
        return f"the sandbox {kind.client} is for Linux"
    client = shutil.which(kind.client)
    if client is None:
        return f"the program {kind.client} is not installed"
    if _called(client, "image", "inspect", _IMAGE)[0]:
        code, reported = _called(client, "import", "-", _IMAGE, given=_EMPTY)
        if code:
            return f"{kind.client} does not work here ({reported})"
    launch = kind(config).launch([sys.executable, "-I", "-c", ""], Place())
    code, reported = _called(*launch.command)
    return f"{kind.client} does not work here ({reported})" if code else ""

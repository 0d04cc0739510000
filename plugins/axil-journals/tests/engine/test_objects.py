"""Files of runs in an object storage: a folder, and servers that speak S3 and Azure."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from axil import ConfigError, RootGraph
from axil.plugin import JournalError
from axil_journals import (
    Aes,
    Bucket,
    Entry,
    LocalEngine,
    MemoryJournal,
    RunObjects,
    fork,
    list_of,
)

pytest.importorskip("obstore")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """Return a bucket of a server of moto on this machine, which speaks S3 over HTTP."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        host, port = server.get_host_and_port()
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_REGION", "us-east-1")
        import boto3

        boto3.client("s3", endpoint_url=f"http://{host}:{port}").create_bucket(Bucket="axil")
        yield "s3://axil/prefix"
    server.stop()


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return a container of Azurite, whose program ``AXIL_AZURITE`` names."""
    program = os.environ.get("AXIL_AZURITE", "")
    if not Path(program).is_file():
        pytest.skip("AXIL_AZURITE names no program: make thorough")
    words = ["--blobPort", "0", "--disableTelemetry", "--skipApiVersionCheck", "--location"]
    command = [program, *words, str(tmp_path_factory.mktemp("azure"))]
    account, key = "devstoreaccount1", base64.b64encode(b"k" * 64).decode()
    own = {**os.environ, "AZURITE_ACCOUNTS": f"{account}:{key}"}
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=own
        ) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        try:
            assert server.stdout is not None
            line = next(line for line in server.stdout if "listens on" in line)
            url = f"{line.split()[-1]}/{account}"
            patch.setenv("AZURE_STORAGE_ACCOUNT_NAME", account)
            patch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
            patch.setenv("AZURE_STORAGE_ENDPOINT", url)
            patch.setenv("AZURE_ALLOW_HTTP", "true")
            _make_container(url, account, key)
            yield "az://axil/prefix"
        finally:
            server.kill()


def _make_container(url: str, account: str, key: str) -> None:
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
    named = "".join(f"{name}:{value}\n" for name, value in headers.items())
    blank = "\n" * 12
    text = f"PUT{blank}{named}/{account}/{account}/axil\nrestype:container"
    signed = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(signed).decode()}"
    asked = urllib.request.Request(f"{url}/axil?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(asked).close()


@pytest.fixture(params=["folder", "s3", "azure", "sealed"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> RunObjects:
    if request.param in ("s3", "azure"):
        return RunObjects(Bucket(request.getfixturevalue(request.param)))
    cipher = None
    if request.param == "sealed":
        patch = request.getfixturevalue("monkeypatch")
        patch.setenv("AXIL_JOURNAL_KEY", base64.b64encode(b"k" * 32).decode())
        cipher = Aes()
    return RunObjects(Bucket(f"file://{tmp_path}/objects"), cipher=cipher)


def writing() -> RootGraph:
    """Return a graph that writes a file, changes it in a step, asks, and reads it."""

    async def write(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        async def more() -> None:
            (ctx.workspace / "notes" / "a.txt").write_text("second, secret")

        (ctx.workspace / "notes").mkdir(parents=True)
        (ctx.workspace / "notes" / "a.txt").write_text("first")
        (ctx.workspace / "b.txt").write_text("other")
        await ctx.step("more", more)
        return {"n": 1}

    async def read(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        await ctx.ask("go on?", name="q")
        return {"read": (ctx.workspace / "notes" / "a.txt").read_text()}

    graph = RootGraph("writing")
    one, two = graph.create_node(write, name="write"), graph.create_node(read, name="read")
    graph.edge_from_entry(one, {"n": ""})
    graph.create_edge(one, two, {"n": ""})
    graph.edge_to_exit(two, {"read": ""})
    return graph.build()


def test_a_worker_elsewhere_has_the_files_of_a_run_that_it_takes_over(
    objects: RunObjects, tmp_path: Path
) -> None:
    """In each of two folders there is what the record names, and nothing else."""
    journal, graph = MemoryJournal(), writing()

    def on(machine: str) -> LocalEngine:
        def folder(run_id: str) -> Path:
            return tmp_path / machine / run_id

        return LocalEngine(journal, [graph], folder_of=folder, objects=objects)

    async def go() -> None:
        async with on("first") as engine:
            await engine.start(graph, {"n": 1}, run_id="r/1")
            await engine.idle()
        stale = tmp_path / "second" / "r" / "1"
        stale.mkdir(parents=True)
        (stale / "left.txt").write_text("of a body that was at work")
        await fork(journal, "r/1", "forked", at=len(journal.entries("r/1")))
        async with on("second") as engine:
            await engine.answer("r/1", {"read?q": "yes"})
            assert (await engine.result("r/1")).output == {"read": "second, secret"}
            assert {path.name for path in stale.rglob("*")} == {"notes", "a.txt", "b.txt"}
        journal.forget("r/1")
        async with on("third") as engine:
            await engine.answer("forked", {"read?q": "yes"})
            assert (await engine.result("forked")).output == {"read": "second, secret"}

    asyncio.run(go())
    assert list_of(journal.entries("forked")).startswith("forked/")
    assert set(objects.runs()) == {"r/1", "forked"}
    objects.put("a", b"of a run that never began", set())
    suspected = objects.sweep(journal, ())
    assert sorted(suspected) == ["a", "r/1"]
    objects.sweep(journal, suspected)
    assert objects.runs() == ["forked"]
    kept = [objects.store.get(name) for name in objects.store.names("runs/")]
    assert any(b"secret" in each for each in kept) == (objects.cipher is None)


def test_an_object_that_was_changed_or_is_gone_is_refused(tmp_path: Path) -> None:
    objects = RunObjects(Bucket(f"file://{tmp_path}"))
    digest = objects.put("r", b"text", set())
    objects.store.put(f"runs/r/{digest}", b"other")
    with pytest.raises(JournalError, match="AX511"):
        objects.get("r", digest)
    objects.forget(["r"])
    with pytest.raises(JournalError, match="AX511"):
        objects.get("r", digest)


def test_files_that_are_not_the_runs_own_are_neither_read_nor_written(tmp_path: Path) -> None:
    objects, outside = RunObjects(Bucket(f"file://{tmp_path}/o")), tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    files = objects.files("r", folder)
    assert files.store() == ""
    beside = tmp_path / "run-2"  # its name begins as that of the run's folder
    beside.mkdir()
    text = objects.put("r", b"theirs", set())
    for name in ("../outside", "../run-2/file"):
        named = objects.put("r", json.dumps({name: [text, 384]}).encode(), set())
        with pytest.raises(JournalError, match="AX511"):
            objects.files("r", folder).restore(f"r/{named}")
    assert outside.read_text() == "mine"
    assert not [*beside.iterdir()]


def test_files_are_stored_before_what_follows_them_is_recorded(tmp_path: Path) -> None:
    """A storage that fails stops the run; nothing behind the files is in the record."""
    journal, graph = MemoryJournal(), writing()
    objects = RunObjects(Bucket(f"file://{tmp_path}/objects"))

    def fail(*_: object) -> None:
        raise OSError("the network is gone")

    objects.store.put = fail  # type: ignore[method-assign]

    async def go() -> list[Entry]:
        given = {"folder_of": lambda run_id: tmp_path / run_id, "objects": objects}
        async with LocalEngine(journal, [graph], **given) as engine:
            await engine.start(graph, {"n": 1}, run_id="r")
            with pytest.raises(OSError, match="network"):
                await engine.result("r")
        return list(journal.entries("r"))

    assert [entry.kind for entry in asyncio.run(go())] == ["run", "resumed"]


def test_an_address_of_no_storage_is_refused() -> None:
    with pytest.raises(ConfigError, match="AX998"):
        Bucket("nowhere://x")

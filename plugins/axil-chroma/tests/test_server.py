"""A real server, ``chroma run``: several clients, one store."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path

import pytest

from axil import run_sync
from axil_chroma import ChromaMemory, ChromaRetriever
from axil_models import ContextError, ContextQuery, Turn
from axil_testing.members import free_port

if find_spec("chromadb") is None:
    pytest.skip("chromadb cannot be installed here", allow_module_level=True)
pytestmark = pytest.mark.skipif(
    os.environ.get("AXIL_HYPOTHESIS") != "thorough", reason="starts servers: make thorough"
)


class Server:
    """A server of this module's own, which can be killed and started again at its port."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        program = Path(sys.executable).with_name("chroma")
        self._command = [
            program,
            "run",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--path",
            str(folder),
        ]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}/api/v2/heartbeat", timeout=60
                ).close()
                return
            except (OSError, HTTPException):
                assert self._process.poll() is None, "the server has ended"
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.1)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server"))
    yield made
    made.kill()


@pytest.fixture
def port(server: Server) -> int:
    return server.port


def reported(user: str, number: int) -> Turn:
    return Turn(
        query=ContextQuery("tea", {"user": user}, node_name="n", run_id=user),
        reply=f"tea {number} of {user}",
        number=number,
    )


def test_many_clients_write_and_read_one_store(port):
    users = [f"user{n}" for n in range(10)]

    async def client(user: str) -> list[str]:
        memory = ChromaMemory(host="127.0.0.1", port=port, collection="many", namespace=["user"])
        for number in range(5):
            await memory.learn(reported(user, number))
        await memory.close()
        again = ChromaMemory(host="127.0.0.1", port=port, collection="many", namespace=["user"])
        found = [
            block.text for block in await again.get_blocks(ContextQuery("tea", {"user": user}), 100)
        ]
        await again.close()
        return sorted(found)

    async def go() -> list[list[str]]:
        return await asyncio.gather(*map(client, users))

    assert run_sync(go()) == [
        [f"tea\ntea {number} of {user}" for number in range(5)] for user in users
    ]


def test_documents_that_one_client_has_indexed_are_there_for_all(port):
    documents = [
        f"Sheet {n} is about {topic}." for n, topic in enumerate(("ferns", "mosses", "lichens"))
    ]

    async def go() -> None:
        first = ChromaRetriever(
            host="127.0.0.1", port=port, collection="sheets", documents=documents
        )
        assert len(await first.refresh()) == 3
        second = ChromaRetriever(
            host="127.0.0.1", port=port, collection="sheets", documents=documents
        )
        assert await second.refresh() == []
        reader = ChromaRetriever(host="127.0.0.1", port=port, collection="sheets", refresh="never")
        assert [block.text for block in await reader.get_blocks(ContextQuery("mosses"), 1)] == [
            documents[1]
        ]
        for client in (first, second, reader):
            await client.close()

    run_sync(go())


def test_a_server_that_is_killed_in_the_middle_of_a_run_is_named_and_found_again(server):
    """Earlier turns are there; a failed step is stored when it is repeated."""

    async def go() -> None:
        memory = ChromaMemory(host="127.0.0.1", port=server.port, collection="killed")
        await memory.learn(reported("ann", 1))
        server.kill()
        for ask in (
            lambda: memory.learn(reported("ann", 2)),
            lambda: memory.get_blocks(ContextQuery("tea")),
        ):
            with pytest.raises(
                ContextError,
                match=rf"AX911 the store 127\.0\.0\.1:{server.port} cannot be asked: .*chroma run",
            ):
                await ask()
        await asyncio.to_thread(server.start)
        for _ in range(2):
            await memory.learn(reported("ann", 2))
        assert sorted(block.text for block in await memory.get_blocks(ContextQuery("tea"))) == [
            "tea\ntea 1 of ann",
            "tea\ntea 2 of ann",
        ]
        await memory.close()

    run_sync(go())


def test_two_embedders_do_not_meet_on_a_server(port):
    async def go(dimensions: int) -> None:
        memory = ChromaMemory(
            host="127.0.0.1",
            port=port,
            collection="strict",
            embedder={"type": "lexical", "dimensions": dimensions},
        )
        try:
            await memory.learn(reported("ann", 1))
        finally:
            await memory.close()

    run_sync(go(64))
    with pytest.raises(
        Exception,
        match=r'AX910 .* vectors of "lexical-1/64" .*, and the embedder is "lexical-1/128"',
    ):
        run_sync(go(128))

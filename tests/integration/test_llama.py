"""The OpenAI adapters against a real server: llama.cpp with small models made for the purpose.

The models are made by scripts in a folder ``shared/llm-server`` beside the checkout, the server is
the package xllamacpp; where one of them is not there, nothing is tested.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from axil import RootGraph
from axil_agent import Agent, SingleAgent
from axil_models import ModelError
from axil_openai import OpenAIEmbedder, OpenAIModel, OpenAIResponsesModel

MAKERS = Path(__file__).resolve().parents[2].parent / "shared/llm-server"
NEEDED = ("xllamacpp", "gguf", "numpy")
missing = [name for name in NEEDED if find_spec(name) is None]

pytestmark = pytest.mark.skipif(
    not (MAKERS / "mkwired.py").is_file() or bool(missing),
    reason="no scripts that make models beside this checkout, or no xllamacpp",
)

SERVE = """
import sys, time
import xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.port, p.hostnames = sys.argv[1], int(sys.argv[2]), ["127.0.0.1"]
p.n_ctx, p.n_parallel, p.use_jinja, p.warmup, p.cache_ram_mib = 4096, 2, True, False, 0
p.cpuparams.n_threads = 1
if sys.argv[3] == "embedding":
    p.embedding = True
    p.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
server = xllamacpp.Server(p)
sys.stdin.read()
"""


def serve(folder: Path, maker: str, use: str = "") -> Any:
    """Yield a server of the model that ``maker`` makes: its URL, while it is in use."""
    model = folder / f"{maker}.gguf"
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(
        [sys.executable, MAKERS / f"{maker}.py", model, MAKERS / "c.jinja"],
        check=True,
        capture_output=True,
        env=environment,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet: Any = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(model), str(port), use], env=environment, **quiet
    )
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until and server.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.communicate()


@pytest.fixture(scope="module")
def wired(tmp_path_factory):
    """A model that says OK, and calls the first tool that it is offered."""
    yield from serve(tmp_path_factory.mktemp("wired"), "mkwired")


@pytest.fixture(scope="module")
def random(tmp_path_factory):
    """A model that says anything."""
    yield from serve(tmp_path_factory.mktemp("random"), "mkrandom")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A model that embeds."""
    yield from serve(tmp_path_factory.mktemp("vectors"), "mkrandom", "embedding")


SETTINGS = {"max_tokens": 200, "seed": 1, "parallel_tool_calls": False, "temperature": 0}


def test_a_graph_of_agents_chats_and_streams(wired):
    model = OpenAIModel("wired", base_url=wired, settings={**SETTINGS, "max_tokens": 20})
    g = RootGraph("two")
    nodes = [
        g.create_node(
            Agent, name=name, model=model, formatters="twins", prompt_template="{message}"
        )
        for name in ("one", "two")
    ]
    g.edge_from_entry(nodes[0], ["message"])
    g.create_edge(nodes[0], nodes[1], ["message"])
    g.edge_to_exit(nodes[1], ["message"])
    flow = g.build()

    async def watched() -> tuple[list[str], Any]:
        events = [event async for event in flow.stream({"message": "hello"})]
        return [
            e.data["text"] for e in events if e.kind == "chunk" and e.data["kind"] == "text"
        ], events[-1].data

    texts, result = asyncio.run(watched())
    assert result.output == {"message": "OK"}
    assert "".join(texts).replace("OK", "", 2).strip() == ""
    assert result.usage.tokens["input_tokens"] > 0
    assert result.usage.tokens["output_tokens"] > 0


def test_a_tool_is_called_and_its_result_is_answered(wired):
    called: list[tuple[int, int]] = []

    def add(a: int, b: int, note: str = "") -> int:
        """Add numbers."""
        called.append((a, b))
        return a + b

    one = SingleAgent(
        OpenAIModel("wired", base_url=wired),
        tools=[add],
        model_settings=SETTINGS,
        formatters="twins",
        output_keys=["answer"],
    )
    assert one.invoke({"question": "add"}) == {"answer": "OK"}
    assert len(called) == 1


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]
    score: int = Field(ge=0, le=9)


@pytest.mark.parametrize("form", ["strict", "schema"])
def test_a_reply_is_held_to_a_schema(random, form):
    model = OpenAIModel("random", base_url=random, structured_output=form)
    one = SingleAgent(model, output_type=Verdict, model_settings=SETTINGS, max_repairs=0)
    answer = one.invoke({"question": "Is it an axil?"})
    assert answer.verdict in ("yes", "no")
    assert answer.score in range(10)


def test_the_responses_api_is_spoken_too(wired):
    one = SingleAgent(
        OpenAIResponsesModel("wired", base_url=wired),
        model_settings={"max_tokens": 20},
        formatters="twins",
        output_keys=["answer"],
    )
    assert one.invoke({"question": "hello"}) == {"answer": "OK"}


def test_texts_become_vectors_of_one_length(vectors):
    embedder = OpenAIEmbedder("random", base_url=vectors)
    one, two, again = asyncio.run(embedder.embed(["an axil", "a stem and a leaf", "an axil"]))
    assert len(one) == len(two) == embedder.dimensions
    assert one == pytest.approx(again, abs=1e-4)
    assert one != pytest.approx(two, abs=1e-4)


def test_chroma_keeps_and_finds_what_a_model_embeds(vectors, tmp_path):
    pytest.importorskip("chromadb", reason="chromadb is not installed")
    from axil_chroma import ChromaRetriever
    from axil_models import ContextQuery

    embedder = {"type": "openai", "name": "random", "base_url": vectors}
    texts = ["an axil", "a stem and a leaf", "the root of a fern"]

    async def found(**settings: Any) -> list[str]:
        docs = ChromaRetriever(path=str(tmp_path), embedder=embedder, **settings)
        first = [(await docs.get_blocks(ContextQuery(text), 1))[0].text for text in texts]
        await docs.close()
        return first

    assert asyncio.run(found(documents=texts)) == texts
    # another client of the same folder embeds the questions only
    assert asyncio.run(found(refresh="never")) == texts


def test_a_prompt_that_is_too_long_is_a_mistake_and_is_not_repeated(wired):
    one = SingleAgent(
        OpenAIModel("wired", base_url=wired), formatters="twins", model_settings={"max_tokens": 5}
    )
    with pytest.raises(ModelError) as reported:
        one.invoke({"question": "leaf " * 5000})
    assert (reported.value.status, reported.value.transient) == (400, False)
    assert "tries" not in str(reported.value)

"""Images and PDF files from tools and retrievers, as far as the service that is asked: what is
shown, and what a model cannot take.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from axil import NodeFailed, RootGraph
from axil_agent import Agent, SingleAgent
from axil_anthropic import AnthropicModel
from axil_context import HybridRetriever, KeywordRetriever
from axil_gemini import GeminiModel
from axil_models import ContextQuery, PartError
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_testing.stub import Act, Call, Stub
from axil_workspace import Files

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16
DATA = "iVBORw0KGgoAAAAAAAAAAAAAAAAAAAAA"
MODELS = {
    "chat": lambda server, **more: OpenAIModel(
        "small", base_url=server.url, api_key=server.key, **more
    ),
    "responses": lambda server, **more: OpenAIResponsesModel(
        "small", base_url=server.url, api_key=server.key, **more
    ),
    "messages": lambda server, **more: AnthropicModel(
        "small", base_url=server.url, api_key=server.key, **more
    ),
    "generate": lambda server, **more: GeminiModel(
        "small", base_url=server.url, api_key=server.key, **more
    ),
}


@pytest.mark.parametrize("dialect", MODELS)
def test_a_picture_that_a_tool_loads_reaches_the_service(tmp_path, dialect):
    (tmp_path / "leaf.png").write_bytes(PNG)
    with Stub(dialect) as server:
        server.say(
            Act(calls=(Call(name="load_file", arguments={"path_or_id": "leaf.png"}),)), "A leaf."
        )
        graph = RootGraph("look")
        agent = graph.create_node(
            Agent, name="look", model=MODELS[dialect](server), tools=[Files()], formatters="twins"
        )
        graph.edge_from_entry(agent)
        graph.edge_to_exit(agent, ["text"])
        assert graph.build().invoke({"message": "What is it?"}, workspace=tmp_path)[0] == {
            "text": "A leaf."
        }
        assert DATA not in server.requests[0].text
        assert server.requests[1].text.count(DATA) == 1


def pdf(text: str) -> bytes:
    """Return a PDF of one page."""
    shown = f"BT /F 12 Tf 20 200 Td ({text}) Tj ET"
    font = "<< /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    body, places = "%PDF-1.4\n", list[int]()
    for each in (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources {font} /Contents 4 0 R "
        ">>",
        f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
    ):
        places.append(len(body))
        body += f"{len(places)} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 5\n0000000000 65535 f \n{table}{end}".encode("ascii")


def rows_of(file: Path) -> str:
    """Everything in a database, as text; what is left in its pages of the process's memory is not
    in it.
    """
    with closing(sqlite3.connect(file)) as connection:
        tables = [
            name
            for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
        ]
        return "\n".join(
            repr(row) for table in tables for row in connection.execute(f'select * from "{table}"')
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/handbook.pdf").write_bytes(pdf("Ferns drink every single Friday."))
    (tmp_path / "docs/fern-hall.png").write_bytes(PNG)
    return tmp_path


def test_pages_and_pictures_are_found_by_words_and_by_vectors(folder):
    pytest.importorskip("chromadb", reason="chromadb is not installed")
    docs = {"paths": [str(folder / "docs")], "include": ["*.pdf", "*.png"]}
    both = HybridRetriever(
        providers=[
            {"type": "keyword", **docs},
            {"type": "chroma", "path": str(folder / "chroma"), **docs},
        ]
    )

    async def go() -> tuple[Any, Any]:
        found = (
            await both.get_blocks(ContextQuery("drink Friday"), 1),
            await both.get_blocks(ContextQuery("hall"), 1),
        )
        await both.close()
        return found

    from axil import run_sync

    (page,), (picture,) = run_sync(go())
    assert page.uri == f"{(folder / 'docs/handbook.pdf').as_posix()}#page=1"
    assert page.text == "Ferns drink every single Friday."
    assert page.metadata["found_by"] == picture.metadata["found_by"] == {"keyword": 1, "chroma": 1}
    assert picture.part == {
        "type": "image",
        "media_type": "image/png",
        "name": "fern-hall.png",
        "data": DATA,
    }
    kept = rows_of(folder / "chroma/chroma.sqlite3")
    assert "hall" in kept
    assert DATA not in kept


def test_a_model_that_cannot_take_what_was_found_is_an_error_before_anything_is_sent(folder):
    album = KeywordRetriever(paths=[str(folder / "docs")], include=["*.png"], context_label="ALBUM")
    with Stub() as server:
        for modalities, sent in (["text", "image"], 1), (["text"], 0):
            one = SingleAgent(
                MODELS["chat"](server, modalities=modalities),
                formatters="twins",
                output_keys=["text"],
                retrievers=album,
            )
            if sent:
                one.invoke({"question": "How is the hall?"})
                assert "(ALBUM) [image 1: fern-hall.png] fern hall" in server.requests[0].text
                assert DATA in server.requests[0].text
            else:
                with pytest.raises(
                    PartError, match=r"AX801.*takes text; a message holds \[image: fern-hall\.png\]"
                ):
                    one.invoke({"question": "How is the hall?"})
        assert len(server.requests) == 1


def test_a_graph_names_the_node_whose_model_cannot_take_a_part(folder):
    album = KeywordRetriever(paths=[str(folder / "docs")], include=["*.png"])
    with Stub() as server:
        graph = RootGraph("look")
        graph.create_node(
            Agent, name="look", model=MODELS["chat"](server, modalities=["text"]), retrievers=album
        )
        graph.edge_from_entry("look", ["question"])
        graph.edge_to_exit("look", ["text"])
        with pytest.raises(NodeFailed, match=r"look.*AX801"):
            graph.build().invoke({"question": "How is the hall?"})

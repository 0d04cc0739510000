"""Keyword, vector and hybrid search: what is found, what is indexed again, what a file keeps; and
the lexical embedder.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from axil import ConfigError, run_sync
from axil_agent import Scripted, SingleAgent
from axil_context import HybridRetriever, KeywordRetriever, LexicalEmbedder, VectorRetriever
from axil_context.retrieval.table import MOST_WORDS, Table
from axil_context.retrieval.words import words
from axil_models import ContextBlock, ContextError, ContextQuery


class Counting:
    """The lexical embedder, counting."""

    name, dimensions = "counting", 64

    def __init__(self) -> None:
        self._inner = LexicalEmbedder(dimensions=64)
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        self.texts += texts
        await asyncio.sleep(0)
        return await self._inner.embed(texts)


def texts(blocks: Sequence[ContextBlock]) -> list[str]:
    return [block.text for block in blocks]


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("running", "The dogs run."),
        ("CAFE", "Ein Café am Markt."),
        ("cafe\u0301", "Ein Café am Markt."),
        ("首都", "東京は日本の首都です。"),
        ("strasse", "Die Straße ist lang."),
        ("NEAR", "a word near another"),
        ("x1_y2", "call x1 then y2"),
    ],
)
def test_words_are_found_in_whatever_form(query, found):
    known = [
        "The dogs run.",
        "Ein Café am Markt.",
        "東京は日本の首都です。",
        "Die Straße ist lang.",
        "a word near another",
        "call x1 then y2",
    ]
    assert texts(KeywordRetriever(documents=known).get_blocks(ContextQuery(query))) == [found]


def test_a_rare_word_counts_more_than_a_common_one():
    known = [*(f"the moss grows here, sheet {n}" for n in range(9)), "the orchid grows here"]
    assert texts(KeywordRetriever(documents=known).get_blocks(ContextQuery("moss orchid"), 1)) == [
        "the orchid grows here"
    ]


def test_stems_can_be_turned_off():
    assert (
        KeywordRetriever(documents=["dogs run"], stems=False).get_blocks(ContextQuery("running"))
        == []
    )


def test_of_a_query_so_many_words_count():
    retriever = KeywordRetriever(documents=["the needle"])
    hay = " ".join(f"w{n}" for n in range(MOST_WORDS - 1))
    assert texts(retriever.get_blocks(ContextQuery(f"{hay} needle"))) == ["the needle"]
    assert retriever.get_blocks(ContextQuery(f"{hay} more needle")) == []


def test_an_index_in_a_file_is_made_once(tmp_path):
    (tmp_path / "a.md").write_text("# A\nferns")
    settings = {"path": str(tmp_path / "deep/index.sqlite"), "paths": [str(tmp_path / "a.md")]}
    first = KeywordRetriever(**settings)
    assert first.refresh() == [(tmp_path / "a.md").as_posix()]
    first.close()
    second = KeywordRetriever(**settings)
    assert second.refresh() == []
    (tmp_path / "a.md").write_text("# A\nmosses")
    assert len(second.refresh()) == 1
    assert (second.get_blocks(ContextQuery("ferns")), len(second)) == ([], 1)
    second.close()


def test_a_file_that_is_no_index_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("not a database, and long enough to be read as one" * 50)
    retriever = KeywordRetriever(path=str(file), documents=["a"])
    with pytest.raises(ContextError, match=r"AX899 the index .* cannot be opened"):
        retriever.get_blocks(ContextQuery("a"))
    assert file.read_text().startswith("not a database")


PUTS = """
import sys
import threading
from axil_models import ContextBlock
from axil_context import KeywordRetriever
from axil_context.retrieval import table
table._PATIENCE = 600.0
retriever = KeywordRetriever(path=sys.argv[1])
for number in range(50):
    retriever.put([ContextBlock(f"moss {number} of {sys.argv[2]}", sys.argv[2], str(number))])
"""


def test_processes_put_into_one_index(tmp_path):
    path = str(tmp_path / "index.sqlite")
    running = [
        subprocess.Popen([sys.executable, "-c", PUTS, path, name])
        for name in ("one", "two", "three")
    ]
    assert [each.wait(600) for each in running] == [0, 0, 0]
    retriever = KeywordRetriever(path=path)
    assert len(retriever) == 150
    assert len(retriever.get_blocks(ContextQuery("moss"), 1000)) == 150
    retriever.close()


INDEXES = """
import sys
import threading
from axil_context import KeywordRetriever
from axil_context.retrieval import table
table._PATIENCE = 600.0
for number in range(5):
    documents = [{"text": f"moss {number} {n}", "uri": f"doc-{n}"} for n in range(20)]
    KeywordRetriever(path=sys.argv[1], documents=documents).refresh()
"""


def test_processes_index_the_same_documents(tmp_path):
    path = str(tmp_path / "index.sqlite")
    running = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", INDEXES, path]) for _ in range(3)
    ]
    assert [each.wait(600) for each in running] == [0, 0, 0]
    retriever = KeywordRetriever(
        path=path,
        refresh="once",
        documents=[{"text": f"moss 4 {n}", "uri": f"doc-{n}"} for n in range(20)],
    )
    retriever.refresh()
    assert sorted(texts(retriever.get_blocks(ContextQuery("moss"), 1000))) == sorted(
        f"moss 4 {n}" for n in range(20)
    )
    retriever.close()


def test_an_index_that_another_is_just_making_is_waited_for(tmp_path):
    path = str(tmp_path / "index.sqlite")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    ends = threading.Timer(0.3, other.execute, ["ROLLBACK"])
    ends.start()
    retriever = KeywordRetriever(path=path, documents=["dogs run"])
    retriever.refresh()
    assert len(retriever) == 1
    retriever.close()
    ends.join()
    other.close()


def test_a_kept_index_follows_its_settings(tmp_path):
    settings = {"path": str(tmp_path / "index.sqlite"), "documents": ["dogs run"]}
    for stems, found in ((True, ["dogs run"]), (False, []), (True, ["dogs run"])):
        retriever = KeywordRetriever(**settings, stems=stems)
        assert texts(retriever.get_blocks(ContextQuery("running"))) == found
        retriever.close()


@pytest.mark.parametrize("kind", [KeywordRetriever, VectorRetriever])
def test_only_what_has_changed_is_indexed_again(tmp_path, kind):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.md").write_text(f"the text of {name}")
    counting = Counting()
    retriever = kind(
        paths=[str(tmp_path)],
        refresh="query",
        **({"embedder": counting} if kind is VectorRetriever else {}),
    )

    def ask() -> set[str]:
        found = retriever.get_blocks(ContextQuery("the text"), 50)
        return {
            Path(str(block.uri)).stem
            for block in (run_sync(found) if asyncio.iscoroutine(found) else found)
        }

    async def refreshed() -> list[str]:
        found = retriever.refresh()
        return [Path(uri).stem for uri in (await found if asyncio.iscoroutine(found) else found)]

    assert ask() == {"a", "b", "c"}
    assert run_sync(refreshed()) == []
    counting.texts.clear()
    (tmp_path / "a.md").write_text("the text of a, changed")
    (tmp_path / "b.md").unlink()
    assert ask() == {"a", "c"}
    assert run_sync(refreshed()) == []
    if kind is VectorRetriever:
        assert counting.texts == ["the text of a, changed", "the text"]


def test_a_block_leads_back_to_its_file_and_place(tmp_path):
    text = "# Häuser\r\n\r\n" + "Ein Satz über Häuser. " * 30 + "\n# Bäume\nEin Satz über Bäume."
    (tmp_path / "d.md").write_bytes(text.encode())
    for retriever in (
        KeywordRetriever(paths=[str(tmp_path)], chunk_chars=200),
        VectorRetriever(paths=[str(tmp_path)], chunk_chars=200),
    ):
        found = retriever.get_blocks(ContextQuery("Satz Bäume"), 50)
        blocks = run_sync(found) if asyncio.iscoroutine(found) else found
        assert len(blocks) > 3
        for block in blocks:
            start, end = map(int, str(block.chunk_id).split("-"))
            assert Path(str(block.uri)).read_bytes().decode()[start:end] == block.text
        assert blocks[0].metadata["heading"] == blocks[0].title == "Bäume"
        assert blocks[0].metadata["provider"] == retriever.context_label


# --------------------------------------------------------------------------------------------------


def test_twenty_first_questions_at_once_embed_the_documents_once():
    counting = Counting()
    retriever = VectorRetriever(documents=[f"text {n}" for n in range(30)], embedder=counting)

    async def go() -> None:
        await asyncio.gather(*(retriever.get_blocks(ContextQuery("text")) for _ in range(20)))

    run_sync(go())
    assert len(counting.texts) == 30 + 20


def test_vectors_below_the_threshold_are_left_out():
    def found(least: float | None) -> list[str]:
        return texts(
            run_sync(
                VectorRetriever(documents=["a red fox", "green tea"], min_score=least).get_blocks(
                    ContextQuery("red fox")
                )
            )
        )

    assert found(0.5) == ["a red fox"]
    assert found(-1.0)[0] == "a red fox"


# --------------------------------------------------------------------------------------------------


class Fixed:
    """A provider that gives what it was given."""

    def __init__(self, label: str, *found: ContextBlock) -> None:
        self.context_label, self.found = label, found

    def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        return list(self.found)[:top_k]


A, B, C = (ContextBlock(text, "u", text) for text in "abc")


def test_ranks_are_added_and_finders_named():
    hybrid = HybridRetriever(providers=[Fixed("one", A, B), Fixed("two", B, C)])
    found = run_sync(hybrid.get_blocks(ContextQuery("x")))
    assert texts(found) == ["b", "a", "c"]
    assert found[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert found[0].metadata == {"provider": "hybrid", "found_by": {"one": 2, "two": 1}}


def test_weights_count():
    hybrid = HybridRetriever(providers=[Fixed("one", A), Fixed("two", C)], weights=[1, 3])
    assert texts(run_sync(hybrid.get_blocks(ContextQuery("x")))) == ["c", "a"]


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"providers": []}, "AX131"),
        ({"providers": ["keyword"], "weights": [1, 2]}, "as many weights as providers"),
        ({"providers": ["keyword"], "weights": [-1]}, "expected weights of 0 or more"),
        ({"providers": ["keyword"], "provider": 1}, "AX130 .*unknown key"),
    ],
)
def test_settings_without_meaning_are_refused(settings, reported):
    with pytest.raises(ConfigError, match=reported):
        HybridRetriever(**settings)


def test_a_hybrid_of_what_is_no_index_takes_no_blocks():
    with pytest.raises(ContextError, match='AX898 "one" is not an index: it cannot put blocks'):
        run_sync(HybridRetriever(providers=[Fixed("one", A)]).put([A]))


RANKINGS = st.lists(st.permutations("abcdef").map(lambda p: p[:4]), min_size=1, max_size=4)


@given(RANKINGS)
def test_the_block_that_is_first_everywhere_is_first_and_nothing_is_lost(rankings):
    providers = [
        Fixed(f"p{n}", ContextBlock("top"), *map(ContextBlock, ranking))
        for n, ranking in enumerate(rankings)
    ]
    found = texts(run_sync(HybridRetriever(providers=providers).get_blocks(ContextQuery("x"), 100)))
    assert found[0] == "top"
    assert sorted(found) == sorted({"top", *(text for ranking in rankings for text in ranking)})


def test_a_filter_reaches_every_provider():
    documents = [
        {"text": f"moss {lang}", "uri": lang, "metadata": {"lang": lang}} for lang in ("en", "de")
    ]
    hybrid = HybridRetriever(
        providers=[{"type": kind, "documents": documents} for kind in ("keyword", "vector")]
    )
    found = run_sync(hybrid.get_blocks(replace(ContextQuery("moss"), filters={"lang": "de"})))
    assert texts(found) == ["moss de"]
    assert found[0].metadata["found_by"] == {"keyword": 1, "vector": 1}


# --------------------------------------------------------------------------------------------------


@given(st.text(max_size=200), st.integers(16, 600))
def test_a_vector_has_length_one_or_none(text, dimensions):
    vector = LexicalEmbedder(dimensions=dimensions).vector(text)
    assert len(vector) == dimensions
    assert math.isclose(math.hypot(*vector), 1.0) or not any(vector)
    assert any(vector) <= bool(words(text))


def test_a_vector_is_the_same_everywhere():
    """Stored vectors outlive the process that made them."""
    program = (
        "from axil_context import LexicalEmbedder; "
        "print(LexicalEmbedder(dimensions=16).vector('An axil, 日本'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={"PYTHONHASHSEED": "7"},
    )
    assert done.stdout.strip() == str(LexicalEmbedder(dimensions=16).vector("An axil, 日本"))


def test_what_shares_words_and_parts_of_words_is_near():
    near, far = LexicalEmbedder().vector("gardening tools"), LexicalEmbedder().vector("tax returns")
    asked = LexicalEmbedder().vector("tools for the garden")
    assert sum(a * b for a, b in zip(asked, near, strict=True)) > 2 * abs(
        sum(a * b for a, b in zip(asked, far, strict=True))
    )


# --------------------------------------------------------------------------------------------------


def test_an_agent_is_shown_what_was_found_and_where_it_is_from():
    script = Scripted(["Fridays"])
    notes = KeywordRetriever(
        documents=["Water the fern every Friday.", "Feed the cat."],
        context_label="NOTES",
        active=True,
    )
    SingleAgent(script, retrievers=[notes], formatters="twins", output_keys=["answer"]).invoke(
        {"question": "When is the fern watered?"}
    )
    assert "(NOTES) Water the fern every Friday." in script.requests[0].messages[-1]["content"]
    assert [tool.name for tool in script.requests[0].tools] == [
        "list_context_sources",
        "retrieve_context",
    ]


def test_an_index_for_which_there_is_no_room_says_so_and_goes_on_as_it_was(tmp_path):
    table = Table(str(tmp_path / "index.db"))
    table.put([ContextBlock("small", "u", "0")])
    assert table._connection is not None
    table._connection.execute("PRAGMA max_page_count = 30")
    with pytest.raises(ContextError, match=r"AX899 .*disk is full"):
        table.put([ContextBlock(f"large {n} " * 3000, "u", str(n)) for n in range(40)])
    table._connection.execute("PRAGMA max_page_count = 100000")
    table.put([ContextBlock("another", "u", "1")])
    assert len(table) == 2
    table.close()


def test_a_run_that_ends_takes_no_index_from_another_that_looks_into_it(monkeypatch):
    retriever = KeywordRetriever(documents=["Axils are angles."])
    refresh = retriever.refresh

    def late() -> list[str]:
        found = refresh()
        ends.start()
        ends.join(0.2)  # it has closed the index, or waits until it may
        return found

    ends = threading.Thread(target=retriever.close)
    monkeypatch.setattr(retriever, "refresh", late)
    assert len(retriever.get_blocks(ContextQuery("axils"))) == 1
    ends.join()


def test_a_provider_that_cannot_be_closed_keeps_no_other_open(monkeypatch):
    hybrid = HybridRetriever(providers=["keyword", "keyword"])
    closed = list[int]()

    def fails(number: int) -> None:
        closed.append(number)
        raise OSError("it cannot")

    for number, each in enumerate(hybrid.providers):
        monkeypatch.setattr(each, "close", lambda number=number: fails(number))
    with pytest.raises(OSError, match="it cannot"):
        run_sync(hybrid.close())
    assert sorted(closed) == [0, 1]

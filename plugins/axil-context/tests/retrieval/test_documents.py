"""Documents: cut so that nothing is lost and every chunk leads back; read so that nothing outside
is.
"""

from __future__ import annotations

import itertools
import os

import pytest
from hypothesis import given, strategies as st

from axil import ConfigError
from axil_context import Cut, Sources, chunked, difference
from axil_models import ContextBlock, ContextError, Document, block_key

TEXTS = st.lists(
    st.sampled_from(
        [
            "# Head\n",
            "## Sub ##\n",
            "word ",
            "a sentence. ",
            "\n\n",
            "\r\n",
            "```\n",
            "\ufeff",
            "日本語",
            "x" * 40,
            "\t",
            "end.\n",
        ]
    )
).map("".join)
CUTS = st.builds(
    lambda at, chars, part: Cut(at=at, chars=chars, overlap_chars=chars * part // 100),
    st.sampled_from(["heading", "paragraph", "size"]),
    st.integers(20, 120),
    st.integers(0, 50),
)


@given(text=TEXTS | st.text(max_size=300), cut=CUTS)
def test_chunks_are_pieces_of_the_text_and_lose_nothing(text, cut):
    chunks = chunked(text, cut)
    covered = set()
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end] == chunk.text.strip()
        assert 0 < len(chunk.text) <= cut.chars
        covered.update(range(chunk.start, chunk.end))
    assert all(at in covered for at, sign in enumerate(text) if not sign.isspace())
    assert [c.start for c in chunks] == sorted({c.start for c in chunks})
    assert len({c.id for c in chunks}) == len(chunks)


@given(text=TEXTS, cut=CUTS)
def test_the_same_text_is_cut_alike(text, cut):
    assert chunked(text, cut) == chunked(text, cut)


def test_headings_are_listed_and_code_has_none():
    text = "before\n# A #\none\n```sh\n# no heading\n```\n## B\ntwo\n# C\nthree"
    assert [(c.heading, c.text.splitlines()[-1]) for c in chunked(text)] == [
        ("", "before"),
        ("A", "```"),
        ("A > B", "two"),
        ("C", "three"),
    ]


def test_a_long_section_is_cut_at_sentences_and_overlaps():
    text = " ".join(f"Sentence number {n} is here." for n in range(30))
    chunks = chunked(text, Cut(chars=120, overlap_chars=30))
    assert all(chunk.text.endswith(".") for chunk in chunks)
    assert all(0 < a.end - b.start <= 30 for a, b in itertools.pairwise(chunks))


def test_files_are_read_as_they_are(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.md").write_bytes("eins\r\nzwei ü".encode())
    (tmp_path / "a/two.py").write_text("no = 1")
    (tmp_path / "b.txt").write_bytes("drei".encode("utf-16"))
    documents = Sources(
        paths=[str(tmp_path / "a")],
        documents=["given", {"text": "named", "uri": "n", "metadata": {"k": 1}}],
    ).read()
    assert [d.text for d in documents] == ["given", "named", "eins\r\nzwei ü"]
    assert documents[0].uri.startswith("text:")
    assert documents[1] == Document(text="named", uri="n", metadata={"k": 1})
    assert documents[2].uri == (tmp_path / "a/one.md").as_posix()
    assert Sources(paths=[str(tmp_path / "b.txt")], encoding="utf-16").read()[0].text == "drei"


@pytest.mark.parametrize(
    ("make", "settings", "reported"),
    [
        (lambda folder: None, {}, "cannot be read: No such file"),
        (lambda folder: (folder / "x.md").write_bytes(b"\xff\xfe\x00"), {}, "is not utf-8"),
        (
            lambda folder: (folder / "x.md").write_text("long" * 100),
            {"max_file_bytes": 100},
            "has 400 bytes, more than max_file_bytes",
        ),
        (
            lambda folder: (folder / "x.md").write_text("x"),
            {"encoding": "klingon"},
            "is not klingon",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, make, settings, reported):
    make(tmp_path)
    with pytest.raises(ContextError, match=f'AX890 ".*x.md" {reported}'):
        Sources(paths=[str(tmp_path / "x.md")], **settings).read()


def test_a_link_does_not_lead_out_of_a_folder(tmp_path):
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/open.md").write_text("open")
    os.symlink(tmp_path / "secret.md", tmp_path / "docs/link.md")
    assert [d.text for d in Sources(paths=[str(tmp_path / "docs")]).read()] == ["open"]


def test_two_documents_of_one_name_are_refused():
    same = {"text": "a", "uri": "n"}
    assert len(Sources(documents=[same, same, "x", "x"]).read()) == 2  # the same twice is one
    with pytest.raises(ConfigError, match='AX891 documents: two documents have the uri "n"'):
        Sources(documents=[same, {"text": "b", "uri": "n"}]).read()


def test_an_overlap_of_more_than_half_is_refused():
    with pytest.raises(ValueError, match="expected overlap_chars of at most half of chunk_chars"):
        Sources(chunk_chars=100, overlap_chars=51)


def test_a_difference_is_what_has_to_be_done():
    one, two, other = (
        Document(text=text, uri=uri) for text, uri in (("1", "a"), ("2", "b"), ("3", "b"))
    )
    first = difference({}, [one, two])
    assert ([d.uri for d in first.changed], list(first.gone)) == (["a", "b"], [])
    second = difference(first.digests, [other])
    assert (list(second.changed), list(second.gone)) == ([other], ["a"])
    assert list(difference(first.digests, [one, two]).changed) == []
    assert len(difference(first.digests, [one, two], "cut otherwise").changed) == 2


@given(text=st.text(), metadata=st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_a_digest_tells_documents_apart(text, metadata):
    document = Document(text=text, uri="a", metadata=metadata)
    assert (
        document.digest()
        == Document(text=text, uri="b", metadata=dict(reversed(metadata.items()))).digest()
    )
    assert document.digest() != Document(text=text + "!", uri="a", metadata=metadata).digest()
    assert document.digest() != document.digest("more")


def test_a_block_without_a_name_cannot_be_kept():
    assert block_key(ContextBlock("a", uri="u")) == ("u", "")
    with pytest.raises(ContextError, match="AX892"):
        block_key(ContextBlock("a"))

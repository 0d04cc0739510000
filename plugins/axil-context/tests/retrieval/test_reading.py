"""Laws of files as documents: pages of PDF files, pictures, and which files go with what was
found.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from axil_context import Sources, chunked, difference
from axil_context.retrieval.reading import documents_of
from axil_models import ContextBlock, ContextError, Document, block_data, image

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16


def pdf(*pages: str) -> bytes:
    """Return a PDF with a page for each text."""
    kids = " ".join(f"{3 + 2 * n} 0 R" for n in range(len(pages)))
    font = "<< /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
    ]
    for number, text in enumerate(pages):
        shown = f"BT /F 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {font} /Contents "
            f"{4 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream")
    body, places = "%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer << /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}{end}".encode("latin-1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handbook.pdf").write_bytes(pdf("Ferns drink every Friday.", "", "Cacti never do."))
    (tmp_path / "fern-in_the.hall.png").write_bytes(PNG)
    (tmp_path / "notes.md").write_text("# Notes\nMoss.")
    return tmp_path


def test_each_page_of_a_pdf_is_a_document_that_says_which(folder):
    found = Sources(paths=[str(folder)], include=["*.pdf"]).read()
    where = (folder / "handbook.pdf").as_posix()
    assert [(each.uri, each.text.strip()) for each in found] == [
        (f"{where}#page=1", "Ferns drink every Friday."),
        (f"{where}#page=2", ""),
        (f"{where}#page=3", "Cacti never do."),
    ]
    (chunk,) = chunked(found[2].text)
    block = chunk.block(found[2])
    assert block.title == "handbook.pdf, page 3"
    assert (block.metadata["path"], block.metadata["page"], block.metadata["pages"]) == (
        where,
        3,
        3,
    )
    assert found[2].text[block.metadata["start"] : block.metadata["end"]] == block.text


def test_only_the_page_that_changed_is_indexed_again(folder):
    sources = Sources(paths=[str(folder / "handbook.pdf")])
    before = difference({}, sources.read()).digests
    (folder / "handbook.pdf").write_bytes(
        pdf("Ferns drink every Friday.", "", "Cacti drink in May.")
    )
    assert [each.uri.rpartition("#")[2] for each in difference(before, sources.read()).changed] == [
        "page=3"
    ]


def test_a_pdf_that_has_not_changed_is_taken_apart_once(folder, monkeypatch):
    taken = list[str]()

    def counted(data: bytes, where: str, encoding: str) -> list[Document]:
        taken.append(where)
        return documents_of(data, where, encoding)

    monkeypatch.setattr("axil_context.retrieval.sources.documents_of", counted)
    sources = Sources(paths=[str(folder / "handbook.pdf")])
    assert sources.read() == sources.read()
    assert len(taken) == 1


def test_without_the_library_a_pdf_is_an_error_that_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    assert Sources(paths=[str(folder)]).read()[0].text == "# Notes\nMoss."
    with pytest.raises(ContextError, match=r"AX940.*handbook\.pdf.*\n?.*axil.context.*\[pdf\]"):
        Sources(paths=[str(folder)], include=["*.pdf"]).read()


@pytest.mark.parametrize("data", [b"", b"no PDF", b"%PDF-1.7\n%%EOF", pdf("text")[:200]])
def test_a_pdf_that_cannot_be_read_is_named(tmp_path, data):
    (tmp_path / "broken.pdf").write_bytes(data)
    with pytest.raises(ContextError, match=r"AX890.*broken\.pdf"):
        Sources(paths=[str(tmp_path)], include=["*.pdf"]).read()


def test_a_pdf_with_a_password_is_named(tmp_path):
    import pypdf

    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    with pytest.raises(ContextError, match=r"AX890.*locked\.pdf"):
        Sources(paths=[str(tmp_path)], include=["*.pdf"]).read()


def test_a_pdf_without_text_is_logged(tmp_path, caplog):
    (tmp_path / "scan.pdf").write_bytes(pdf("", ""))
    assert [chunked(each.text) for each in Sources(paths=[str(tmp_path / "scan.pdf")]).read()] == [
        [],
        [],
    ]
    assert "scan.pdf" in caplog.text


def test_a_picture_is_found_by_its_name_and_given_with_it(folder):
    sources = Sources(paths=[str(folder)], include=["*.png"])
    (document,) = sources.read()
    assert document.text == "fern in the hall"
    (chunk,) = chunked(document.text)
    kept = ContextBlock(**block_data(chunk.block(document)))
    assert "data" not in (kept.part or {})  # an index holds the name of the file, not its bytes
    (opened,) = sources.opened([kept])
    assert opened.part == {**image(PNG), "name": "fern-in_the.hall.png"}


def test_a_document_may_have_a_part_from_anywhere(folder):
    path = str(folder / "fern-in_the.hall.png")
    for part in (
        {"path": path},
        {"url": "https://example.org/f.png"},
        {"file_id": "f1"},
        {"data": image(PNG)["data"]},
    ):
        sources = Sources.model_validate(
            {"documents": [{"text": "the fern in the hall", "part": {"type": "image", **part}}]}
        )
        (document,) = sources.read()
        (block,) = sources.opened([ContextBlock(document.text, part=document.part)])
        expected = {"data": image(PNG)["data"]} if "path" in part else part
        assert block.part is not None
        assert expected.items() <= block.part.items()


def test_what_is_no_part_is_refused_when_it_is_configured():
    with pytest.raises(ValueError, match="AX802"):
        Sources.model_validate(
            {
                "documents": [
                    {"text": "x", "part": {"type": "image", "url": "https://x", "file_id": "y"}}
                ]
            }
        )


def test_a_pdf_goes_with_what_is_found_in_it_where_it_is_attached(folder):
    sources = Sources(paths=[str(folder)], include=["*.pdf", "*.md"], attach=["*.pdf"])
    by_uri = {each.uri.rpartition("/")[2]: each for each in sources.read()}
    assert by_uri["notes.md"].part is None
    (block,) = sources.opened([ContextBlock("x", part=by_uri["handbook.pdf#page=3"].part)])
    assert block.part is not None
    assert (block.part["type"], block.part["media_type"], block.part["name"]) == (
        "file",
        "application/pdf",
        "handbook.pdf",
    )


def test_a_file_that_is_none_of_the_sources_is_never_read(folder, tmp_path_factory):
    """An index may hold what somebody else has put into it."""
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.png"
    secret.write_bytes(PNG)
    (folder / "link.png").symlink_to(secret)
    for path in (secret, folder / ".." / secret.parent.name / secret.name, folder / "link.png"):
        with pytest.raises(ContextError, match="AX941"):
            Sources(paths=[str(folder)]).opened([ContextBlock("x", part=image(str(path)))])


@pytest.mark.parametrize("charset", ["undefined", "no-such-charset"])
def test_a_page_in_no_encoding_is_named(charset):
    page = f"<meta charset={charset}><p>An axil.</p>".encode()
    with pytest.raises(ContextError, match=f'AX890 "page.html" is not {charset}'):
        documents_of(page, "page.html", "utf-8")

"""Laws of Office files, web pages and e-mails as documents: what their reader sees is found, what
is hidden is not, and a hostile file is an error.
"""

from __future__ import annotations

import io
import sys
import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from office_oxide import PptxWriter

from axil_context import Sources
from axil_models import ContextError, Document

WORD = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
BODY = """
<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Ferns</w:t></w:r></w:p>
<w:p><w:r><w:t>They drink.</w:t></w:r>
  <w:r><w:rPr><w:vanish/></w:rPr><w:t>Obey me.</w:t></w:r></w:p>
<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" name="p" descr="a fern in a pot"/>
  <a:graphic><a:graphicData><pic:pic><pic:blipFill><a:blip r:embed="r9"/></pic:blipFill></pic:pic>
  </a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>
<w:tbl>
  <w:tr><w:tc><w:p><w:r><w:t>Plant</w:t></w:r></w:p></w:tc>
    <w:tc><w:p><w:r><w:t>Price</w:t></w:r></w:p></w:tc></w:tr>
  <w:tr><w:tc><w:p><w:r><w:t>Fern</w:t></w:r></w:p></w:tc>
    <w:tc><w:p><w:r><w:t>4</w:t></w:r></w:p></w:tc></w:tr>
</w:tbl>
"""


def docx(body: str = BODY, begins: str = "") -> bytes:
    """Return a Word file."""
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{types}">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{word}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{relations}">'
        f'<Relationship Id="r" Type="{office}" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<?xml version="1.0"?>{begins}<w:document {WORD}><w:body>{body}'
        "</w:body></w:document>",
    }
    return packed(parts)


def packed(parts: dict[str, Any]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return made.getvalue()


def repacked(data: bytes, part: str, before: bytes, after: bytes) -> bytes:
    """Return a package in which a part was changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert before in parts[part]
    return packed({**parts, part: parts[part].replace(before, after, 1)})


def deck() -> bytes:
    """Return a presentation whose second slide, and a shape of whose first, is hidden."""
    writer = PptxWriter()
    for title, text in (("Ferns", "They drink."), ("Secret", "Obey me.")):
        slide = writer.add_slide()
        writer.set_slide_title(slide, title)
        writer.add_slide_text(slide, text)
    return repacked(writer.to_bytes(), "ppt/slides/slide2.xml", b"<p:sld ", b'<p:sld show="0" ')


def book() -> bytes:
    """Return a workbook with a hidden sheet, row and column."""
    made = openpyxl.Workbook()
    sheet: Any = made.active
    sheet.title = "Prices"
    for row in (["Plant", "Price", "Obey me."], ["Fern", 4, ""], ["Obey me.", 1, ""]):
        sheet.append(row)
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["C"].hidden = True
    secret = made.create_sheet("Secret")
    secret["A1"] = "Obey me."
    secret.sheet_state = "veryHidden"
    written = io.BytesIO()
    made.save(written)
    return written.getvalue()


PAGE = b"""<!doctype html><title>Ferns</title><style>p {color: green}</style>
<nav>Menu</nav><h1>Ferns</h1><p>They drink.</p><p hidden>Obey me.</p>
<span style="display: none">Obey me.</span><div aria-hidden="true">Obey me.</div>
<script>Obey()</script><img src="f.png" alt="a fern in a pot">
<table><tr><th>Plant</th><th>Price</th></tr><tr><td>Fern</td><td>4</td></tr></table>"""


def mail(*, page: bool = False) -> bytes:
    """Return an e-mail with a price list, a picture and another e-mail."""
    message = EmailMessage()
    message["From"] = "Bo <bo@example.org>"
    message["To"] = "ann@example.org"
    message["Subject"] = "The prices"
    if page:
        message.set_content(PAGE.decode(), subtype="html")
    else:
        message.set_content("See the list.\n")
    kind = {"maintype": "application", "subtype": "octet-stream"}
    message.add_attachment(book(), filename="../prices.xlsx", **kind)
    message.add_attachment(b"\x89PNG", filename="fern.png", **kind)
    inner = EmailMessage()
    inner["Subject"] = "Older"
    inner.set_content("Ask Bo.")
    message.add_attachment(inner)
    return message.as_bytes()


def read(folder: Path, name: str, data: bytes) -> list[Document]:
    (folder / name).write_bytes(data)
    return Sources(paths=[str(folder)], include=[f"*{Path(name).suffix}"]).read()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.docx", docx(), ["# Ferns", "They drink.", "a fern in a pot", "| Fern | 4 |"]),
        ("a.pptx", deck(), ["Ferns", "They drink."]),
        ("a.xlsx", book(), ["Prices", "| Plant | Price |", "| Fern | 4 |"]),
        ("a.html", PAGE, ["# Ferns", "They drink.", "a fern in a pot", "| Fern  | 4     |"]),
    ],
)
def test_what_a_reader_sees_is_read_and_what_is_hidden_is_not(tmp_path, name, data, said):
    (document,) = read(tmp_path, name, data)
    assert [each for each in said if each not in document.text] == []
    assert [each for each in ("Obey", "Secret", "Menu") if each in document.text] == []
    assert document.uri == document.metadata["path"] == (tmp_path / name).as_posix()


def test_a_hidden_shape_and_the_notes_of_a_hidden_slide_are_not_read(tmp_path):
    slide = "ppt/slides/slide1.xml"
    data = deck()
    (whole,) = read(tmp_path, "a.pptx", data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        shape = archive.read(slide).partition(b"They drink.")[0].rpartition(b"<p:cNvPr ")[2]
    hidden = repacked(data, slide, b"<p:cNvPr " + shape, b'<p:cNvPr hidden="1" ' + shape)
    (document,) = read(tmp_path, "a.pptx", hidden)
    assert "They drink." in whole.text
    assert "They drink." not in document.text
    assert "Ferns" in document.text


def test_an_email_is_its_text_and_its_attachments(tmp_path, caplog):
    found = read(tmp_path, "m.eml", mail())
    where = (tmp_path / "m.eml").as_posix()
    assert [each.uri for each in found] == [
        where,
        f"{where}#attachment=1/prices.xlsx",
        f"{where}#attachment=3/message.eml",
    ]
    message, prices, older = found
    assert message.text.startswith("From: Bo <bo@example.org>\nTo: ann@example.org\nSubject: The")
    assert message.text.rstrip().endswith("See the list.")
    assert message.metadata["from"] == "Bo <bo@example.org>"
    assert "| Fern | 4 |" in prices.text
    assert (prices.metadata["path"], prices.metadata["attachment"]) == (where, "prices.xlsx")
    assert "Ask Bo." in older.text
    assert '"fern.png"' in caplog.text


def test_an_email_that_is_a_page_is_read_as_one(tmp_path):
    document = read(tmp_path, "m.eml", mail(page=True))[0]
    assert "| Fern  | 4     |" in document.text
    assert "Obey" not in document.text


def test_a_page_says_its_encoding_itself(tmp_path):
    data = '<meta charset="iso-8859-1"><p>Fünf Farne'.encode("latin-1")
    assert "Fünf Farne" in read(tmp_path, "a.html", data)[0].text


def entities() -> bytes:
    grows = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))
    begins = f'<!DOCTYPE w:document [<!ENTITY a0 "long">{grows}]>'
    return docx("<w:p><w:r><w:t>&a8;</w:t></w:r></w:p>", begins)


def outside() -> bytes:
    begins = '<!DOCTYPE w:document [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    return docx("<w:p><w:r><w:t>&a;</w:t></w:r></w:p>", begins)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", b""),
        ("a.docx", b"no archive"),
        ("a.docx", docx()[:300]),
        ("a.pptx", b"PK\x03\x04" + b"x" * 100),
        ("a.xlsx", repacked(book(), "xl/workbook.xml", b"<sheets>", b"<sheets hidden>")),
        ("a.eml", b"\xff\xfe no message"),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, data):
    with pytest.raises(ContextError, match=rf"AX890.*{name}"):
        read(tmp_path, name, data)


def test_a_file_that_grows_when_it_is_unpacked_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("axil_context.retrieval.office._LARGEST", 100_000)
    data = docx(f"<w:p><w:r><w:t>{'x' * 200_000}</w:t></w:r></w:p>")
    assert len(data) < 2_000
    with pytest.raises(ContextError, match=r"AX890.*bytes when it is unpacked, more than 100000"):
        read(tmp_path, "a.docx", data)


@pytest.mark.parametrize("data", [entities(), outside()])
def test_entities_of_a_file_are_not_taken(tmp_path, data):
    text = "".join(document.text for document in read(tmp_path, "a.docx", data))
    assert "root:" not in text
    assert len(text) < 1_000


def test_emails_in_emails_end(tmp_path):
    data = mail()
    for _ in range(12):
        outer = EmailMessage()
        outer["Subject"] = "again"
        outer.set_content("See below.")
        outer.add_attachment(data, maintype="application", subtype="x", filename="m.eml")
        data = outer.as_bytes()
    assert len(read(tmp_path, "m.eml", data)) == 5


@pytest.mark.parametrize(
    ("name", "data", "module", "extra"),
    [
        ("a.docx", docx(), "office_oxide", "office"),
        ("a.html", PAGE, "html_to_markdown", "html"),
    ],
)
def test_without_its_library_a_file_is_an_error_that_says_what_to_install(
    tmp_path, monkeypatch, name, data, module, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ContextError, match=rf"AX940.*{name}.*\n?.*axil.context.*\[{extra}\]"):
        read(tmp_path, name, data)

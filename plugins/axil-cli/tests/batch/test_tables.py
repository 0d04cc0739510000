"""Laws of tables: what is written is read back, and what is wrong is named with its row."""

from __future__ import annotations

import pytest

from axil_cli import BatchError, Row, read_table, write_table

ROWS = [
    {"name": "Ada", "text": 'a, "quoted"\nline', "n": 3},
    {"name": "Бен", "text": "=1+1", "tags": ["a", "b"]},
]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "xlsx"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    file = tmp_path / f"rows.{suffix}"
    write_table(file, ROWS)
    found = read_table(file, json_columns=["tags", "n"] if suffix != "jsonl" else ())
    assert [row.number for row in found] == [1, 2]
    for row, expected in zip(found, ROWS, strict=True):
        assert {name: row.fields[name] for name in expected} == expected


def test_a_text_that_looks_like_a_formula_is_a_text_in_a_workbook(tmp_path):
    import openpyxl

    write_table(tmp_path / "r.xlsx", [{"said": "=HYPERLINK(1)\x07"}])
    cell = openpyxl.load_workbook(tmp_path / "r.xlsx").active["A2"]
    assert (cell.data_type, cell.value) == ("s", "=HYPERLINK(1)\ufffd")


def test_empty_rows_are_left_out_and_counted(tmp_path):
    (tmp_path / "r.csv").write_text("a,b\n1,2\n,\n3,4\n", "utf-8-sig")
    assert [row.number for row in read_table(tmp_path / "r.csv")] == [1, 3]


def test_semicolons_of_spreadsheets_divide_cells(tmp_path):
    (tmp_path / "r.csv").write_text("a;b\n1;2\n", "utf-8")
    assert read_table(tmp_path / "r.csv") == [Row(1, {"a": "1", "b": "2"})]


@pytest.mark.parametrize(
    ("name", "text", "messages"),
    [
        ("r.csv", "a,a\n1,2\n", ["columns of one name"]),
        ("r.csv", "a,b\n1,2,3\n4,5,6\n", ["row 1: 3 cells", "row 2: 3 cells"]),
        ("r.csv", "a,b\n", ["has no rows"]),
        ("r.jsonl", '{"a": 1}\n[1]\n{', ["line 2: expected an object", "line 3: this is no JSON"]),
        ("r.xlsx", "no zip", ["is no XLSX file"]),
        ("r.pdf", "", ["expected a name with"]),
        ("r.csv", None, ["cannot be read: No such file"]),
    ],
)
def test_everything_that_is_wrong_is_named_at_once(tmp_path, name, text, messages):
    if text is not None:
        (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(BatchError) as error:
        read_table(tmp_path / name)
    assert error.value.id == "AX990"
    for message in messages:
        assert message in str(error.value)


def test_a_column_that_is_no_json_is_named(tmp_path):
    (tmp_path / "r.csv").write_text("a,b\n1,x\n", "utf-8")
    with pytest.raises(BatchError, match="row 1, column b: this is no JSON"):
        read_table(tmp_path / "r.csv", json_columns=["a", "b"])


def test_a_table_that_cannot_be_written_leaves_what_was_there(tmp_path):
    write_table(tmp_path / "r.csv", [{"a": 1}])

    class Unwritable:
        def __str__(self) -> str:
            raise OSError(28, "No space left on device")

    with pytest.raises(BatchError, match=r"AX991.*No space left"):
        write_table(tmp_path / "r.csv", [{"a": {1: Unwritable()}}])
    assert read_table(tmp_path / "r.csv") == [Row(1, {"a": "1"})]
    assert [file.name for file in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize("value", ["half \ud83d", "\uffff", 2**53 + 1, -(10**400), float("inf")])
def test_what_a_workbook_cannot_hold_leaves_it_readable(tmp_path, value):
    write_table(tmp_path / "r.xlsx", [{"said": value, "n": 1e300, "m": 2**53}])
    [row] = read_table(tmp_path / "r.xlsx")
    said = value[:-1] + "\ufffd" if isinstance(value, str) else str(value)
    assert row.fields == {"said": said, "n": 1e300, "m": 2**53}

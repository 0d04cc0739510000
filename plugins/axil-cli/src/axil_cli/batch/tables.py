"""Tables: rows with named columns, in CSV, TSV, JSON Lines and XLSX files.

Cells of CSV and TSV files are text. JSON Lines and XLSX files have numbers, dates and truth values,
too. A file is written under another name and then moved, so that no reader sees a part of it.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from axil import Problem
from axil.plugin import format_names, install_advice, without_secrets
from axil_cli.batch.errors import BatchError
from axil_files import like_file

_NO_XML: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not have."""
_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}
_MOST_PROBLEMS: Final = 20
"""Problems of a file that are named; there may be one in each of a million lines."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    number: int
    """From 1, without the row of column names."""
    fields: Mapping[str, Any]
    """The cells by column; a row may lack some."""


def read_table(path: str | os.PathLike[str], *, json_columns: Iterable[str] = ()) -> list[Row]:
    """Return the rows of a file; empty rows are left out, and counted.

    Args:
        path: a file named ``.csv``, ``.tsv``, ``.jsonl`` or ``.xlsx``.
        json_columns: columns whose texts are read as JSON.
    Raises: BatchError (AX990): everything that is wrong with the file, at most 20 problems.
    """
    file = Path(path)
    reading = _ways(file, _READERS)
    problems: list[Problem] = []
    try:
        rows = [row for row in reading(file, problems) if row.fields]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        message = f"{file} cannot be read: {getattr(error, 'strerror', None) or error}."
        hint = like_file(file) if isinstance(error, OSError) else "Look at the file."
        raise BatchError("AX990", message, hint) from error
    rows = [_decoded(row, frozenset(json_columns), file, problems) for row in rows]
    if problems:
        raise _refused(problems)
    if not rows:
        raise BatchError("AX990", f"{file} has no rows.", "Add rows below the column names.")
    return rows


def write_table(path: str | os.PathLike[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows; the columns are those of all rows, in order of their first appearance.

    Raises: BatchError (AX991): the file cannot be written; what was there before is as it was.
    """
    file = Path(path)
    writing = _ways(file, _WRITERS)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=file.parent, prefix=f".{file.stem}-", suffix=file.suffix
        )
        os.close(handle)
        try:
            writing(Path(name), columns, [without_secrets(row) for row in rows])
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror or error}."
        raise BatchError("AX991", message, "Name another file with --output.") from error


def _ways(file: Path, ways: Mapping[str, Any]) -> Any:
    found = ways.get(file.suffix.lower())
    if found is None:
        message = f"{file} is no table: expected a name with {format_names(sorted(ways))}."
        raise BatchError("AX990", message, "Convert the file, or rename it.")
    return found


def _refused(problems: Sequence[Problem]) -> BatchError:
    lines = [f"{each.where}: {each.message}" for each in problems[:_MOST_PROBLEMS]]
    if more := len(problems) - len(lines):
        lines.append(f"and {more} more.")
    return BatchError("AX990", "\n".join(lines), problems[0].hint)


def _decoded(row: Row, columns: frozenset[str], file: Path, problems: list[Problem]) -> Row:
    """Return a row with the texts of some columns read as JSON, and without their empty cells."""
    fields = dict(row.fields)
    for name in columns & fields.keys():
        text = fields[name]
        if not isinstance(text, str):
            continue
        if not text:  # an empty cell of a file that has texts only
            del fields[name]
            continue
        try:
            fields[name] = json.loads(text)
        except (ValueError, RecursionError) as error:
            where = f"{file}, row {row.number}, column {name}"
            problems.append(Problem("AX990", where, f"this is no JSON: {error}.", "Correct it."))
    return Row(row.number, fields)


# ------------------------------------------------------------------------------------- reading


def _read_delimited(file: Path, problems: list[Problem]) -> Iterator[Row]:
    with file.open(encoding="utf-8-sig", newline="") as text:
        first = text.readline()
        text.seek(0)
        delimiter = _DELIMITERS[file.suffix.lower()]
        if delimiter == "," and ";" in first and "," not in first:
            delimiter = ";"  # of spreadsheets in languages where the comma is a decimal point
        lines = csv.reader(text, delimiter=delimiter, strict=True)
        names = next(lines, list[str]())
        _check_names(names, file, problems)
        for number, cells in enumerate(lines, 1):
            if len(cells) > len(names):
                message = f"{len(cells)} cells, and {len(names)} columns have names."
                where = f"{file}, row {number}"
                problems.append(Problem("AX990", where, message, "Quote cells with delimiters."))
            yield Row(number, dict(zip(names, cells, strict=False)) if any(cells) else {})


def _check_names(names: Sequence[str], file: Path, problems: list[Problem]) -> None:
    double = sorted({name for name in names if names.count(name) > 1})
    if double or not all(names):
        what = f"columns of one name: {format_names(double)}" if double else "a column has no name"
        problems.append(Problem("AX990", f"{file}, line 1", f"{what}.", "Name each column once."))


def _read_lines(file: Path, problems: list[Problem]) -> Iterator[Row]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                yield Row(number, {})
                continue
            try:
                data: Any = json.loads(line)
            except (ValueError, RecursionError) as error:
                data, message = None, f"this is no JSON: {error}."
            else:
                message = f"expected an object, found {type(data).__name__}."
            if isinstance(data, dict):
                yield Row(number, cast("dict[str, Any]", data))
            else:
                where = f"{file}, line {number}"
                problems.append(Problem("AX990", where, message, "Write one object on each line."))


def _read_sheet(file: Path, problems: list[Problem]) -> Iterator[Row]:
    """Yield the rows of a workbook's first sheet; of formulas, the values that were saved."""
    from zipfile import BadZipFile

    try:
        book = _openpyxl().load_workbook(file, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError) as error:
        message = f"{file} is no XLSX file: {error}."
        raise BatchError("AX990", message, "Look at the file.") from error
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = ["" if cell is None else str(cell) for cell in next(rows, ())]
        while names and not names[-1]:
            names.pop()
        _check_names(names, file, problems)
        for number, cells in enumerate(rows, 1):
            found = zip(names, cells, strict=False)
            yield Row(number, {name: cell for name, cell in found if cell is not None})
    finally:
        book.close()


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        message = "XLSX files need openpyxl, which is not installed."
        raise BatchError("AX990", message, install_advice("axil-cli[xlsx]")) from error
    return openpyxl


Read = Callable[[Path, list[Problem]], Iterator[Row]]
_READERS: Final[Mapping[str, Read]] = {
    ".csv": _read_delimited,
    ".tsv": _read_delimited,
    ".jsonl": _read_lines,
    ".xlsx": _read_sheet,
}


# ------------------------------------------------------------------------------------- writing


def _as_text(cell: Any) -> Any:
    """Return a value as a cell: scalars as they are, all else as JSON."""
    if cell is None or isinstance(cell, (str, int, float)):
        return cell
    return json.dumps(cell, ensure_ascii=False, default=str)


def _write_delimited(file: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", errors="backslashreplace", newline="") as text:
        writer = csv.writer(text, delimiter=_DELIMITERS[file.suffix.lower()])
        writer.writerow(columns)
        writer.writerows([_as_text(row.get(name)) for name in columns] for row in rows)


def _write_lines(file: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    # half a character, as JSON has it
    with file.open("w", encoding="utf-8", errors="backslashreplace") as text:
        for row in rows:
            text.write(json.dumps(dict(row), ensure_ascii=False, default=str) + "\n")


def _write_sheet(file: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a workbook of one sheet. Texts are cells of text: one that begins with ``=`` is no
    formula.
    """
    book = _openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("results")
    from openpyxl.cell import WriteOnlyCell

    def cell_of(value: Any) -> Any:
        shown = _as_text(value)
        is_float = isinstance(shown, float) and math.isfinite(shown)
        if isinstance(shown, (int, float)) and not is_float and not abs(shown) <= 2**53:
            shown = str(shown)  # numbers of the format are finite floats
        if isinstance(shown, str):  # the format has not all characters, and a limit
            shown = _NO_XML.sub("\ufffd", shown)[:32767]
        cell = WriteOnlyCell(sheet, value=shown)
        if isinstance(shown, str):
            cell.data_type = "s"
        return cell

    for row in ({name: name for name in columns}, *rows):
        sheet.append([cell_of(row.get(name)) for name in columns])
    book.save(file)


Write = Callable[[Path, Sequence[str], Sequence[Mapping[str, Any]]], None]
_WRITERS: Final[Mapping[str, Write]] = {
    ".csv": _write_delimited,
    ".tsv": _write_delimited,
    ".jsonl": _write_lines,
    ".xlsx": _write_sheet,
}


__all__ = ["Row", "read_table", "write_table"]

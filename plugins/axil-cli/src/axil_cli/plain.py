"""Values as JSON can hold them, and results as the command prints them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, fields, is_dataclass
from datetime import date, time
from enum import Enum
from os import PathLike, fspath
from typing import Any, Final, cast

from axil import AxilError, Problem, Result
from axil.plugin import FromEnvironment, legible, thaw
from axil_cli.command import problems_of

_DEEPEST: Final = 100
_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Signs that no encoding of files can write."""
_LARGEST: Final = 1 << 13
"""Bits of a number that is written with digits."""


def plain(value: Any, depth: int = 0, *, hide: bool = False) -> Any:
    """Return ``value`` in the types of JSON; what has no counterpart becomes text, never an error.

    ``hide``: values that came from the environment are shown as the placeholders that they were.

    >>> plain({"n": float("nan"), 1: {"a"}, "o": object()})
    {'n': 'nan', '1': ['a'], 'o': '<object>'}
    """
    if isinstance(value, FromEnvironment):
        return value.template if hide else str.__str__(value)
    if isinstance(value, Enum):
        return plain(value.value, depth + 1, hide=hide)
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _LARGEST else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {
            _key(k): plain(v, depth + 1, hide=hide)
            for k, v in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if isinstance(value, PathLike):
        return str(fspath(cast("PathLike[str]", value)))
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return _composed(value, depth, hide)


def _composed(value: Any, depth: int, hide: bool) -> Any:
    if hasattr(value, "model_dump"):  # a pydantic model, without importing pydantic
        return plain(value.model_dump(), depth + 1, hide=hide)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name), depth + 1, hide=hide)
            for field in fields(value)
        }
    if isinstance(value, Set):
        items = [plain(item, depth + 1, hide=hide) for item in cast("Set[Any]", value)]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, Sequence):
        return [plain(item, depth + 1, hide=hide) for item in cast("Sequence[Any]", value)]
    return f"<{type(value).__qualname__}>"


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key))


def as_json(value: object, *, indent: int | None = 2) -> str:
    """Write ``value`` as JSON; without ``indent`` on one line, whatever ends lines for a reader."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    if not text.isascii() and _HALVES.search(text):
        return json.dumps(plain(value), indent=indent)
    return (
        text.replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
        .replace("\x85", "\\u0085")
        .replace("\x7f", "\\u007f")
    )


def table_lines(rows: Sequence[Sequence[str]], *, width: int | None = None) -> Iterator[str]:
    """Yield rows as lines with columns side by side, cut where there is a ``width``; characters
    that are hidden, or steer a terminal, are written out.

    >>> list(table_lines([("CASE", "EXACT"), ("a", "1.00")]))
    ['CASE  EXACT', 'a     1.00']
    """
    shown = [[legible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = zip(row, widths, strict=True)
        line = "  ".join(cell.ljust(size) for cell, size in cells).rstrip()
        yield line if not width or len(line) <= width else line[: width - 1] + "…"


def _problem(problem: Problem) -> dict[str, str]:
    return {name: getattr(problem, name) for name in ("id", "where", "message", "hint")}


def summary(result: Result) -> dict[str, Any]:
    """Return a result as data, in the types of JSON."""
    return {
        "status": result.status,
        "run_id": result.run_id,
        "output": plain(thaw(result.output)),
        "messages": plain(thaw(list(result.messages))),
        "attributes": plain(thaw(result.attributes)),
        "cycles": {path: asdict(tally) for path, tally in result.cycles.items()},
        "usage": {**asdict(result.usage), "seconds": round(result.usage.seconds, 6)},
        "questions": plain(result.questions),
        "error": None if result.error is None else _problem(problems_of(result.error)[0]),
    }


def refused(error: AxilError) -> dict[str, Any]:
    """Return, where nothing could run, an empty result and every problem."""
    nothing = Result(status="failed", run_id="", error=error)
    problems = [_problem(each) for each in problems_of(error)]
    return {**summary(nothing), "activations": [], "problems": problems}

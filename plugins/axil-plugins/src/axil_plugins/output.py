"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from typing import Any


def as_json(value: Any) -> str:
    """``value`` as JSON text."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Columns side by side; the last one is cut at the edge of the terminal, if there is one.

    >>> print(table(["a", "b"], [["one", "x"], ["2", "yy"]], width=80))
    a    b
    one  x
    2    yy
    """
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    told = ("  ".join(f"{cell:<{widths[i]}}" for i, cell in enumerate(line)).rstrip() for line in lines)
    return "\n".join(line if not width or len(line) <= width else line[: width - 1] + "…" for line in told)


def width_of(stream: Any) -> int | None:
    """The columns of a terminal; None: it is none, and nothing is cut."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def bullet(lines: Sequence[str], mark: str = "- ") -> str:
    """One item of a list a line."""
    return "\n".join(f"{mark}{line}" for line in lines)

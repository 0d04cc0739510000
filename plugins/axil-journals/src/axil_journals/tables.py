"""Files of TOML that hold a table for each name: the rules of queues, the triggers of workers."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from axil import ConfigError, Problem
from axil.plugin import format_value


def read_tables(path: Path, what: str, example: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names and tables of a file of ``what``; ``example``: the lines of a table.

    Raises: ConfigError (AX740): it cannot be read, or has something else than tables.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        message = f"the {what} cannot be read: {why}."
        raise ConfigError(Problem("AX740", str(path), message, "Name a TOML file.")) from None
    for name, table in data.items():
        if not isinstance(table, Mapping):
            message = f"{name}: expected a table, found {format_value(table)}."
            hint = f"Write [{name}], and below it {example}."
            raise ConfigError(Problem("AX740", str(path), message, hint))
        yield name, cast("Mapping[str, Any]", table)

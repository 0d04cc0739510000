"""The options of reading workflow files, by name and type: what editors and type checkers see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    import os

    from axil.plugin import Registry


class ReadingOptions(TypedDict, total=False):
    """The options that a workflow file is read with; see ``axil_files.load_spec``."""

    vars: Mapping[str, Any] | None
    allow_code: bool
    allow: Iterable[str]
    environment: Mapping[str, str] | None
    texts: dict[str, str] | None


class FileOptions(ReadingOptions, total=False):
    """The options that the workflow of a file is made with; see ``Workflow.from_file``."""

    registry: Registry | None
    hooks: Any
    functions: str | os.PathLike[str] | None

"""The files of an installed distribution, beside what its ``RECORD`` says of them.

Compiled files (``__pycache__``) and what an installer writes for itself, programs among it, are not
looked at: they differ from one environment to the next.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

from axil.plugin import recorded_files

_IMPORTABLE: Final = tuple(all_suffixes())


def altered_files(metadata: Any) -> Iterator[tuple[str, str]]:
    """Yield the files that are not as they were installed, with what is wrong with each: other
    contents, gone, or modules beside the others that were not installed.
    """
    packages: set[Path] = set()
    known: set[Path] = set()
    for name, digest in _rows(metadata):
        path = Path(metadata.locate_file(name))
        known.add(path)
        if path.name == "__init__.py":
            packages.add(path.parent)
        if digest and (fault := content_fault(path, digest)):
            yield name, fault
    for package in sorted(packages):
        if package.parent not in packages:
            yield from _strangers(package, known)


def content_fault(path: Path, digest: str) -> str:
    """Return in what a file differs from what was installed, by a hash as RECORD has it; empty: in
    nothing, or the hash is of another kind.
    """
    kind, _, wanted = digest.partition("=")
    if kind != "sha256":
        return ""
    if not path.is_file():
        return "is gone"
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").digest()
    text = base64.urlsafe_b64encode(found).rstrip(b"=").decode()
    return "" if text == wanted.rstrip("=") else "is not what was installed"


def is_inside(name: str) -> bool:
    """Return whether a name in a RECORD or a wheel leads to no place outside of it, on any system,
    and has one line.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    return not (
        path.is_absolute()
        or ".." in path.parts
        or path.parts[:1] in ((), ("~",))
        or path.parts[0].endswith(":")
        or not name.isprintable()
    )


def _rows(metadata: Any) -> Iterator[tuple[str, str]]:
    for row in csv.reader(io.StringIO(recorded_files(metadata))):
        if len(row) > 1 and is_inside(row[0]):
            yield row[0], row[1]


def _strangers(package: Path, known: set[Path]) -> Iterator[tuple[str, str]]:
    """Yield the modules below a package that its distribution did not install."""
    for folder, inner, files in os.walk(package):
        inner[:] = sorted(each for each in inner if each != "__pycache__")
        for name in sorted(files):
            path = Path(folder, name)
            if path not in known and name.endswith(_IMPORTABLE):
                yield path.relative_to(package.parent).as_posix(), "was not installed"


def direct_url(metadata: Any) -> Mapping[str, Any]:
    """Return where a distribution came from that came from no index; empty: it came from one, or
    its installer did not say.
    """
    try:
        stated: Any = json.loads(metadata.read_text("direct_url.json") or "{}")
    except (OSError, ValueError):
        return {}
    return cast("Mapping[str, Any]", stated) if isinstance(stated, dict) else {}

"""Wheels: what is installed here, packed again, the same bytes every time.

A build ships what was tested: the distributions of this environment, in their versions. One that
was installed from a wheel is packed from its ``RECORD``; one that is installed in place, or comes
from a source, is built by its own backend, without a network.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlparse

from axil import ConfigError, Problem
from axil.plugin import canonical_name, install_advice
from axil_build.plan import metadata_of

_INSTALLERS: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel that was made."""

    name: str
    version: str
    path: Path
    sha256: str
    size: int
    """Bytes of its files, unpacked."""


def make(names: Iterable[str], into: Path, sources: Mapping[str, str]) -> list[Wheel]:
    """Make the wheels of installed distributions, or of their ``sources``: a wheel or a project's
    folder each.

    Raises: ConfigError (AX742): one cannot be packed.
    """
    places = {
        name: Path(sources[name]) if name in sources else _editable(metadata_of(name))
        for name in names
    }
    folders = {name: place for name, place in places.items() if place and place.suffix != ".whl"}
    paths = built(folders, into)
    for name, place in places.items():
        if place is None:
            paths[name] = _packed(name, metadata_of(name), into)
        elif name not in folders:
            paths[name] = into / place.name
            paths[name].write_bytes(place.read_bytes())
    return [described(name, paths[name]) for name in places]


def described(name: str, path: Path) -> Wheel:
    """Return a wheel's facts."""
    with zipfile.ZipFile(path) as file:
        size = sum(each.file_size for each in file.infolist())
    return Wheel(
        name=name,
        version=path.name.split("-")[1],
        path=path,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        size=size,
    )


def _editable(metadata: Any) -> Path | None:
    try:
        stated: Any = json.loads(metadata.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    return (
        Path(unquote(urlparse(str(stated["url"])).path))
        if stated.get("dir_info", {}).get("editable")
        else None
    )


def built(folders: Mapping[str, Path], into: Path) -> dict[str, Path]:
    """Build the wheels of projects by their own backends, which have to be in this environment:
    nothing is fetched.

    One call of pip builds them all, for pip takes long to start; where it fails, each is built by
    itself, so that the error has a name.

    Raises: ConfigError (AX742): a project cannot be built.
    """
    if not folders:
        return {}
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--quiet",
        "wheel",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
    with tempfile.TemporaryDirectory() as folder:
        command = [*pip, "--wheel-dir", folder, *map(str, folders.values())]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=600, check=False
        )
        made = {
            canonical_name(path.name.split("-")[0]): path for path in Path(folder).glob("*.whl")
        }
        if not done.returncode and made.keys() == folders.keys():
            return {name: _normal(path, into) for name, path in made.items()}
    if len(folders) > 1:
        alone = [built({name: source}, into) for name, source in folders.items()]
        return {name: path for each in alone for name, path in each.items()}
    [(name, source)] = folders.items()
    report = (done.stderr.strip().splitlines() or ["its backend made no wheel"])[-1]
    hint = f"Is its build backend installed here? Or name a wheel: [sources] {name} = …"
    raise ConfigError(
        Problem("AX742", name, f"its source {source} cannot be built: {report}", hint)
    )


def _normal(wheel: Path, into: Path) -> Path:
    """Return the same wheel with its files in order and without dates."""
    with zipfile.ZipFile(wheel) as file:
        files = {each: file.read(each) for each in file.namelist() if not each.endswith("/")}
    return write_zip(into / wheel.name, files)


def _packed(name: str, metadata: Any, into: Path) -> Path:
    record = metadata.read_text("RECORD")
    described = metadata.read_text("WHEEL")
    if not record or not described:
        hint = f"Install it from a wheel, or name one: [sources] {name} = …"
        raise ConfigError(
            Problem("AX742", name, "it has no record of the files that it installed.", hint)
        )
    files: dict[str, bytes] = {}
    info = ""
    for row in csv.reader(io.StringIO(record)):
        path = row[0].replace("\\", "/") if row else ""
        if not path or path.endswith(".pyc") or path.startswith("../") or path.startswith("/"):
            continue  # compiled anew where it is installed; scripts come from entry points
        if ".dist-info/" in path:
            info = path.partition("/")[0]
            if path.rpartition("/")[2] in _INSTALLERS:
                continue
        try:
            files[path] = Path(metadata.locate_file(path)).read_bytes()
        except OSError as error:
            raise ConfigError(
                Problem(
                    "AX742",
                    name,
                    f"{path} cannot be read: {error.strerror}.",
                    install_advice(name, how="reinstall"),
                )
            ) from None
    tags = [
        line.partition(":")[2].strip() for line in described.splitlines() if line.startswith("Tag:")
    ]
    files[f"{info}/RECORD"] = record_of(files, f"{info}/RECORD")
    return write_zip(into / f"{info.removesuffix('.dist-info')}-{_compressed(tags)}.whl", files)


def _compressed(tags: Iterable[str]) -> str:
    """Return tags as a file's name has them: ``py2.py3-none-any``."""
    parts = [tag.split("-") for tag in tags]
    return "-".join(".".join(sorted({part[i] for part in parts})) for i in range(3))


def record_of(files: Mapping[str, bytes], name: str) -> bytes:
    """Return the RECORD of a wheel."""
    rows: list[str] = []
    for path, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{_quoted(path)},sha256={digest},{len(data)}")
    return "".join(f"{row}\n" for row in [*rows, f"{_quoted(name)},,"]).encode()


def _quoted(path: str) -> str:
    return f'"{path}"' if "," in path else path


def write_zip(
    path: Path, files: Mapping[str, bytes], *, before: bytes = b"", compressed: bool = True
) -> Path:
    """Write an archive whose bytes depend on its files alone: sorted, undated, with one mode."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(
        buffer,
        "w",
        zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED,
        compresslevel=9 if compressed else None,
    ) as file:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            file.writestr(entry, data)
    path.write_bytes(before + buffer.getvalue())
    return path

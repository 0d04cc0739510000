"""Wheels: what is installed here, packed again, the same bytes every time.

A build ships what was tested: the distributions of this environment, in their versions. Where the
original wheel is at hand, and holds what is installed, it is taken as it is. Else one that was
installed from a wheel is packed from its ``RECORD``, programs and data outside site-packages
included; one that is installed in place, or comes from a source, is built by its own backend,
without a network.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, Final

from axil import ConfigError, Problem
from axil.plugin import canonical_name, install_advice
from axil_plugins.closure import metadata_of, source_of
from axil_plugins.records import content_fault, is_inside

_INSTALLERS: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
_PYTHON: Final = re.compile(rb"\A#!(/bin/sh\n'''exec' [^\n]*\n' '''|[^\n]*python[^\n]*)")
"""The first line of a script, as installers write it."""
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
    notable: tuple[str, ...] = ()
    """The files that run at each start of Python (``.pth``), and those that are put outside of
    site-packages.
    """


def make(
    names: Iterable[str], into: Path, sources: Mapping[str, str], originals: Path | None = None
) -> list[Wheel]:
    """Make the wheels of installed distributions.

    Args:
        sources: a wheel or a project's folder for some of them.
        originals: a folder with wheels, taken as they are where they hold what is installed.
    Raises: ConfigError: AX742: one cannot be packed; AX741: there is no pip to build one.
    """
    places = {
        name: Path(sources[name])
        if name in sources
        else source_of(metadata_of(name)) or _original(name, metadata_of(name), originals)
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
    """Return a wheel's facts.

    Raises: ConfigError (AX742): it is no wheel of that name, or its files lead out of it.
    """
    parts = path.stem.split("-")
    if len(parts) not in (5, 6) or canonical_name(parts[0]) != name:
        raise _unusable(name, f"{path.name} is not the name of a wheel of {name}.")
    try:
        with zipfile.ZipFile(path) as file:
            entries = file.infolist()
    except (OSError, zipfile.BadZipFile) as error:
        raise _unusable(name, f"{path.name} is no wheel: {error}.") from None
    for each in entries:
        # orig_filename: not as zipfile mends it
        if not is_inside(each.orig_filename):
            found = each.orig_filename.encode("unicode_escape").decode()
            raise _unusable(name, f"its file {found} leads out of the wheel, or has an odd name.")
    return Wheel(
        name=name,
        version=parts[1],
        path=path,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        size=sum(each.file_size for each in entries),
        notable=tuple(sorted(each.filename for each in entries if _is_notable(each.filename))),
    )


def _is_notable(name: str) -> bool:
    parts = name.split("/")
    has_data = len(parts) > 2 and parts[0].endswith(".data")
    inside = parts[2:] if has_data and parts[1] in ("purelib", "platlib") else parts
    is_elsewhere = has_data and inside == parts
    return is_elsewhere or (len(inside) == 1 and inside[0].endswith(".pth"))


def _unusable(name: str, message: str) -> ConfigError:
    return ConfigError(Problem("AX742", name, message, f"Name another: [sources] {name} = …"))


def _original(name: str, metadata: Any, folder: Path | None) -> Path | None:
    """Return the wheel that a distribution was installed from; None: it is not at hand.

    Raises: ConfigError (AX742): a wheel of this name, version and platform holds something else.
    """
    if folder is None:
        return None
    tags = set(_tags(metadata))
    for path in sorted(folder.glob("*.whl")):
        parts = path.stem.split("-")
        if len(parts) not in (5, 6):
            continue
        own = {f"{a}-{b}-{c}" for a, b, c in product(*(part.split(".") for part in parts[-3:]))}
        if (canonical_name(parts[0]), parts[1]) != (name, metadata.version) or not own & tags:
            continue
        with zipfile.ZipFile(path) as file:
            record = next(each for each in file.namelist() if each.endswith(".dist-info/RECORD"))
            shipped = _digests(file.read(record).decode("utf-8"))
        present = _digests(metadata.read_text("RECORD") or "")
        apart = sorted(
            each
            for each in shipped.keys() & present.keys()
            if shipped[each] != present[each] and each.rpartition("/")[2] not in _INSTALLERS
        )
        if apart:
            message = f"{path} is not what is installed here: {apart[0]} differs."
            raise ConfigError(Problem("AX742", name, message, "Install that wheel, or remove it."))
        return path
    return None


def _digests(record: str) -> dict[str, str]:
    return {row[0]: row[1] for row in csv.reader(io.StringIO(record)) if len(row) > 1}


def _tags(metadata: Any) -> list[str]:
    lines = (metadata.read_text("WHEEL") or "").splitlines()
    return [line.partition(":")[2].strip() for line in lines if line.startswith("Tag:")]


def pip_command() -> list[str]:
    """Return the beginning of a command for pip: this environment's, else that which this Python
    brings for new environments. Environments of uv have no pip of their own.

    Raises: ConfigError (AX741): there is neither.
    """
    if find_spec("pip") is not None:
        # -P: a pip.py of the folder is not it
        return [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    bundled = Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled"
    places = [bundled, Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or bundled)]
    found = sorted(path for place in places for path in place.glob("pip-*.whl"))
    if found:
        return [sys.executable, f"{found[-1]}/pip", "--disable-pip-version-check", "--quiet"]
    message = "this environment has no pip, and this Python has none for new environments."
    raise ConfigError(Problem("AX741", "pip", message, install_advice("pip")))


def built(folders: Mapping[str, Path], into: Path) -> dict[str, Path]:
    """Build the wheels of projects by their own backends, which have to be in this environment:
    nothing is fetched.

    One call of pip builds them all, for pip takes long to start; where it fails, each is built by
    itself, so that the error has a name.

    Raises: ConfigError: AX742: a project cannot be built; AX741: there is no pip.
    """
    if not folders:
        return {}
    pip = [*pip_command(), "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
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
    message = f"its source {source} cannot be built: {report}"
    hint = f"Is its build backend installed here? Or name a wheel: [sources] {name} = …"
    raise ConfigError(Problem("AX742", name, message, hint))


def _normal(wheel: Path, into: Path) -> Path:
    """Return the same wheel with its files in order and without dates."""
    with zipfile.ZipFile(wheel) as file:
        files = {each: file.read(each) for each in file.namelist() if not each.endswith("/")}
    return write_zip(into / wheel.name, files)


def _packed(name: str, metadata: Any, into: Path) -> Path:
    record = metadata.read_text("RECORD")
    if not record or not metadata.read_text("WHEEL"):
        message = "it has no record of the files that it installed."
        hint = f"Install it from a wheel, or name one: [sources] {name} = …"
        raise ConfigError(Problem("AX742", name, message, hint))
    files: dict[str, bytes] = {}
    info = ""
    outside: list[str] = []
    digests: dict[str, str] = {}
    for row in csv.reader(io.StringIO(record)):
        path = row[0].replace("\\", "/") if row else ""
        if not path or path.endswith(".pyc"):
            continue  # compiled anew where it is installed
        if path.startswith("../") or os.path.isabs(path):
            outside.append(path)
            digests[path] = row[1] if len(row) > 1 else ""
            continue
        if not is_inside(path):
            raise _unusable(name, f"its file {path!r} is outside of its folder.")
        if ".dist-info/" in path:
            info = path.partition("/")[0]
            if path.rpartition("/")[2] in _INSTALLERS:
                continue
        files[path] = _content(name, metadata, path, row[1] if len(row) > 1 else "")
    commands = {
        each.name
        for each in metadata.entry_points
        if each.group in ("console_scripts", "gui_scripts")
    }
    for path in outside:
        place = _scheme(name, Path(os.path.normpath(metadata.locate_file(path))), commands)
        if place:
            content = _content(name, metadata, path, digests[path])
            content = _PYTHON.sub(b"#!python", content) if place.startswith("scripts") else content
            files[f"{info.removesuffix('.dist-info')}.data/{place}"] = content
    files[f"{info}/RECORD"] = record_of(files, f"{info}/RECORD")
    stem = f"{info.removesuffix('.dist-info')}-{_compressed(_tags(metadata))}"
    return write_zip(into / f"{stem}.whl", files)


def _content(name: str, metadata: Any, path: str, digest: str) -> bytes:
    """Return an installed file.

    Raises: ConfigError (AX742): it cannot be read, is not what was installed, or is a link to
    another place where RECORD does not say what it holds.
    """
    place = Path(metadata.locate_file(path))
    advice = install_advice(name, how="reinstall")
    if place.exists() and (fault := content_fault(place, digest)):
        raise ConfigError(Problem("AX742", name, f"{path} {fault}.", advice))
    if not digest and place.resolve() != place.parent.resolve() / place.name:
        message = f"{path} is a link that leads outside of its folder."
        raise ConfigError(Problem("AX742", name, message, advice))
    try:
        return place.read_bytes()
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
        raise ConfigError(Problem("AX742", name, message, advice)) from None


def _scheme(name: str, path: Path, commands: Collection[str]) -> str:
    """Return where a wheel holds a file that is installed outside site-packages, below its
    ``.data``; empty: installers make it from the entry points.

    Raises: ConfigError (AX742): it is outside of this environment.
    """
    scripts = Path(sysconfig.get_path("scripts"))
    if path.is_relative_to(scripts):
        stem = re.sub(r"(-script)?\.(exe|pyw?|manifest)$", "", path.name)
        return "" if stem in commands else f"scripts/{path.relative_to(scripts).as_posix()}"
    if not path.is_relative_to(sys.prefix):
        message = f"its file {path} is outside of this environment."
        hint = f"Name its wheel: [sources] {name} = …"
        raise ConfigError(Problem("AX742", name, message, hint))
    inside = path.relative_to(sys.prefix)
    if inside.parts[:2] == ("include", "site") and len(inside.parts) > 4:
        return f"headers/{Path(*inside.parts[4:]).as_posix()}"
    return f"data/{inside.as_posix()}"


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


def write_zip(path: Path, files: Mapping[str, bytes], *, before: bytes = b"") -> Path:
    """Write an archive whose bytes depend on its files alone: sorted, undated, with one mode."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, data)
    path.write_bytes(before + buffer.getvalue())
    return path

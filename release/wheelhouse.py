"""The distributions of a release: built, tried in empty environments, and what they bring.

    python release/wheelhouse.py build [TAG]           twice into dist/: both have to be equal
    python release/wheelhouse.py try [PYTHON …]        the usual set, in an empty environment
    python release/wheelhouse.py bills                 of materials, of each wheel
    python release/wheelhouse.py wheels [VERSION …]    what has no wheel for which Python
    python release/wheelhouse.py licences              of what is required, as installed here

Without arguments ``try`` takes each Python from 3.11 on that is found, ``wheels`` all versions that
axil supports. The exit code is 1 where something is wrong.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"
BESIDE: Final = ROOT / "build/release"
"""The files that are published beside the distributions: digests, and bills of materials."""
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
FLOW: Final = ("newsroom.yaml", "--model-script", "replies/newsroom.yaml")
"""A workflow file of examples/ that runs without a model, and the replies of its script."""

REFUSED: Final = re.compile(r"(?<!L)GPL|Affero|SSPL|BUSL|Commons Clause|Proprietary", re.IGNORECASE)
"""Licences that ask more of who installs axil than Apache-2.0 does; the LGPL asks nothing of who
imports.
"""


_PIP: Final = (sys.executable, "-m", "pip", "--python")
_BILL: Final = ("cyclonedx-py", "environment", "--output-format", "JSON", "--output-file")


class Fault(Exception):
    """Something that a release must not have; its text is one line or several."""


def published(root: Path = ROOT) -> dict[str, Path]:
    """Return the folders of the distributions that a release publishes, by name.

    What contrib/ has under other names than axil's are examples of plugins by others.
    """
    files = [root / "core/pyproject.toml"]
    files += sorted(root.glob("plugins/*/pyproject.toml"))
    files += sorted(root.glob("contrib/axil-*/pyproject.toml"))
    return {_project(file)["name"]: file.parent for file in files}


def check_versions(tag: str, root: Path = ROOT) -> None:
    """Check that a tag, as ``v1.2.3``, names the version of every distribution.

    Raises: Fault: it does not.
    """
    others = {
        name: version
        for name, folder in published(root).items()
        if (version := _project(folder / "pyproject.toml")["version"]) != tag.removeprefix("v")
    }
    if others:
        named = ", ".join(f"{name} {version}" for name, version in others.items())
        raise Fault(f"the tag is {tag}, but there are {named}")


def build(arguments: Sequence[str], target: Path = DIST) -> None:
    """Build all distributions, twice, and write their digests.

    Raises: Fault: a second build is not equal to the first, byte by byte; the tag is not the
    version of every distribution.
    """
    for tag in arguments:
        check_versions(tag)
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as again:
        for folder in published().values():
            for place in (target, Path(again)):
                _built(folder, place)
        first, second = digests(target), digests(Path(again))
    differing = sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
    if differing:
        raise Fault(f"a second build differs: {', '.join(differing)}")
    lines = (f"{digest}  {name}\n" for name, digest in sorted(first.items()))
    BESIDE.mkdir(parents=True, exist_ok=True)
    (BESIDE / "SHA256SUMS").write_text("".join(lines), "utf-8")
    print(f"{len(first)} files in {target.name}/, each built twice alike")


def _built(folder: Path, target: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", target],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def tried(pythons: Sequence[str], wheels: Path = DIST) -> None:
    """Install the usual set into an empty environment of each Python, and run a workflow there.

    Raises: Fault: it cannot be installed, misses something, or does not run.
    """
    for python in pythons or [*_found()]:
        version = _output(python, "-c", "import platform; print(platform.python_version())")
        with tempfile.TemporaryDirectory() as place:
            _tried(python, version, wheels, Path(place))
        print(f"Python {version}: installs, checks and runs")


def _found() -> Iterator[str]:
    """Yield a Python for each version that is installed, by pyenv too."""
    for version in VERSIONS:
        own = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        # pyenv's own come first: it has commands of versions that are not chosen, too
        if python := next(reversed(own), None) or shutil.which(f"python{version}"):
            yield str(python)


def _tried(python: str, version: str, wheels: Path, place: Path) -> None:
    environment = place / "environment"
    command = environment / "bin/axil"
    pip = (*_PIP, environment / "bin/python")
    examples = shutil.copytree(ROOT / "examples", place / "examples")
    steps: tuple[tuple[object, ...], ...] = (
        (python, "-m", "venv", "--without-pip", environment),
        (*pip, "install", *required_wheels("axil", _wheels(wheels))),
        (*pip, "check"),
        (command, "--version"),
        (command, "check", FLOW[0]),
        (command, "run", *FLOW, "--input", "leaves"),
    )
    for step in steps:
        done = subprocess.run(
            [*map(str, step)], cwd=examples, capture_output=True, text=True, check=False
        )
        if done.returncode:
            what = " ".join(map(str, step[1:]))
            raise Fault(f"Python {version}: {what}: {done.returncode}\n{done.stdout}{done.stderr}")


def write_bills(wheels: Path = DIST) -> None:
    """Write a bill of materials (CycloneDX) for each wheel with all that it brings.

    Raises: Fault: the program that writes them is not installed.
    """
    if not shutil.which(_BILL[0]):
        raise Fault(f"there is no program {_BILL[0]}. Run pip install cyclonedx-bom.")
    ours = _wheels(wheels)
    BESIDE.mkdir(parents=True, exist_ok=True)
    for name in ours:
        with tempfile.TemporaryDirectory() as place:
            python = Path(place, "bin/python")
            for command in (
                (sys.executable, "-m", "venv", "--without-pip", place),
                (*_PIP, python, "install", "--quiet", *required_wheels(name, ours)),
                (*_BILL, BESIDE / f"{name}.cdx.json", python),
            ):
                subprocess.run([*map(str, command)], check=True)
    print(f"{len(ours)} bills of materials in {BESIDE.relative_to(ROOT)}/")


def required_wheels(name: str, wheels: dict[str, Path]) -> list[Path]:
    """Return the wheels of a distribution and of ours that it requires: they are passed by path, so
    that no index is asked for them.
    """
    found: dict[str, Path] = {}
    waiting = [name]
    while waiting:
        if (each := waiting.pop()) in wheels and each not in found:
            found[each] = wheels[each]
            waiting += _direct(published()[each])
    return list(found.values())


def _direct(folder: Path) -> list[str]:
    """Return the names of what a distribution requires, extras left aside."""
    asked = _project(folder / "pyproject.toml").get("dependencies", [])
    return [str(canonicalize_name(Requirement(text).name)) for text in asked]


def _wheels(folder: Path) -> dict[str, Path]:
    found = {
        str(canonicalize_name(file.name.split("-")[0])): file.resolve()
        for file in folder.glob("*.whl")
    }
    if missing := sorted(published().keys() - found.keys()):
        raise Fault(f"{folder.name}/ has no wheel of {', '.join(missing)}; build comes first")
    return found


def wheels_of_others(asked: Sequence[str], wheels: Path = DIST) -> None:
    """Print, for each version of Python, what has no wheel, and which distributions require it."""
    for version in asked or VERSIONS:
        ours, lacking = _wheels(wheels), list[str]()
        while what := _lacking(version, ours):
            needing = [name for name in ours if what in _direct(published()[name])]
            if not needing:
                raise Fault(f"Python {version}: {what}")
            lacking.append(f"{what} ({', '.join(needing)})")
            for name in needing:
                del ours[name]
        print(f"Python {version}: {', '.join(lacking) or 'wheels of everything'}", flush=True)


def _lacking(version: str, ours: dict[str, Path]) -> str:
    """Return the name of a distribution that has no wheel for a Python; empty: all have one."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"),
            *("--only-binary", ":all:", "--python-version", version, "--target", "nowhere"),
            *ours.values(),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.returncode:
        return ""
    found = re.search(r"No matching distribution found for ([\w.-]+)", done.stderr)
    return str(canonicalize_name(found[1])) if found else done.stderr.strip().splitlines()[-1]


def licences() -> None:
    """Print the licence of each distribution that a release requires, as installed here.

    Raises: Fault: one says none, or asks more of who installs it than axil's own.
    """
    from axil_plugins.builds.report import licence_of

    named = {name: licence_of(name) for name in foreign()}
    print(
        "".join(f"{name}: {text or 'not said'}\n" for name, text in sorted(named.items())), end=""
    )
    wrong = [
        f"{name}: {text or 'not said'}"
        for name, text in sorted(named.items())
        if not text or REFUSED.search(text)
    ]
    if wrong:
        raise Fault("licences that a release does not bring:\n" + "\n".join(wrong))


def foreign() -> set[str]:
    """Return the names of what the published distributions require, extras left aside."""
    from axil_plugins.closure import closure

    ours = published()
    asked = {name for folder in ours.values() for name in _direct(folder)}
    return {*closure(sorted(asked - ours.keys()), {})} - ours.keys()


@cache
def _project(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))["project"]


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


COMMANDS: Final[dict[str, Callable[[Sequence[str]], None]]] = {
    "build": build,
    "try": tried,
    "bills": lambda _: write_bills(),
    "wheels": wheels_of_others,
    "licences": lambda _: licences(),
}


def main(argv: Sequence[str]) -> int:
    """Do what is asked; 1: something is wrong, 2: it was not understood."""
    if not argv or argv[0] not in COMMANDS:
        sys.stderr.write(f"usage: python release/wheelhouse.py {' | '.join(COMMANDS)}\n")
        return 2
    try:
        COMMANDS[argv[0]](argv[1:])
    except Fault as fault:
        sys.stderr.write(f"error: {fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Commands that install a distribution, for messages: by this environment's installer, from the
kernel's origin.

A name of the project is looked up in an index only if the kernel came from one.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal, cast

KERNEL: Final = "axil-core"
How = Literal["install", "upgrade", "reinstall"]
_REQUIREMENT: Final = re.compile(r"\s*([\w.-]+)\s*(\[[^\]]*\])?\s*(.*)", re.DOTALL)
_PLAIN: Final = re.compile(r"[\w@%+=:,./-]+")
_MEANINGFUL: Final = re.compile(r"[^\w@%+=:,./\[\]<>!~;' *()-]|!(?!=)")
"""Characters that a shell may read between double quotes."""
_ELSEWHERE: Final = Path()
_OPTIONS: Final = {"install": (), "upgrade": ("--upgrade",), "reinstall": ("--force-reinstall",)}


def install_advice(*requirements: str, how: How = "install") -> str:
    """Return how to install distributions into this environment, in one line: a command of pip, uv
    or pipx; in words for those that the kernel's origin does not have.
    """
    origin = _origin()
    wanted = _with_needed(requirements, origin)
    places = [_shown_place(each, origin) for each in wanted]
    if lacking := [each for each, place in zip(wanted, places, strict=True) if not place]:
        return f"get {' and '.join(lacking)} from where you got {KERNEL}"
    command = _command(how, origin)
    between = f" {command[-1]} " if command[-1] == "--with" else " "
    return f"{' '.join(command)} {between.join(map(_quoted, places))}"


def _command(how: How, origin: Path | None) -> list[str]:
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        tool = _quoted(_shown_place(prefix.name, origin) or prefix.name)
        options = {"install": (), "upgrade": ("--upgrade",), "reinstall": ("--reinstall",)}[how]
        return ["uv", "tool", "install", *options, tool, "--with"]
    if (prefix / "pipx_metadata.json").is_file():
        if how == "install":
            return ["pipx", "inject", prefix.name]
        return ["pipx", "runpip", prefix.name, "install", *_OPTIONS[how]]
    if _is_of_uv(prefix):
        options = ("--reinstall",) if how == "reinstall" else _OPTIONS[how]
        return ["uv", "pip", "install", *options]
    return ["pip", "install", *_OPTIONS[how]]


def _is_of_uv(prefix: Path) -> bool:
    """Return whether uv made the environment, which has no pip then."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in lines)


def _origin() -> Path | None:
    """Return the folder or wheel that the kernel was installed from; ``_ELSEWHERE``: another URL;
    None: an index.
    """
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        data: object = json.loads(distribution(KERNEL).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return None
    url = cast("dict[str, Any]", data).get("url", "") if isinstance(data, dict) else ""
    parts = urlsplit(str(url))
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return _ELSEWHERE if parts.scheme else None


def _with_needed(requirements: Iterable[str], origin: Path | None) -> list[str]:
    """Return requirements and, of what they need, the project's own that is not installed: an
    installer of a path looks in an index for those.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    found = list(requirements)
    names = {_name(each) for each in found}
    for each in found:
        for needed in _needs(_place(each, origin)):
            name = _name(needed)
            if name in names or not _is_own(name):
                continue
            names.add(name)
            try:
                distribution(name)
            except PackageNotFoundError:
                found.append(name)
    return found


def _needs(place: Path | None) -> list[str]:
    if place is None:
        return []
    import tomllib
    from importlib.metadata import distributions

    try:
        if place.suffix == ".whl":
            [wheel] = distributions(path=[str(place)])
            return [each for each in wheel.requires or [] if "extra ==" not in each]
        data = tomllib.loads((place / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        # its installer says what is wrong with it
        return []
    return data.get("project", {}).get("dependencies", [])


def _place(requirement: str, origin: Path | None) -> Path | None:
    """Return the folder or wheel beside the kernel's that has a requirement of the project's own;
    None: there is none.
    """
    name = _name(requirement)
    if origin in (None, _ELSEWHERE) or not _is_own(name):
        return None
    if origin.suffix == ".whl":
        wheels = sorted(origin.parent.glob(f"{name.replace('-', '_')}-*.whl"))
        return wheels[-1] if wheels else None
    root = origin.parent if origin.name == "core" else origin.parent.parent
    folders = ["core"] if name == KERNEL else [f"plugins/{name}", f"contrib/{name}"]
    found = (root / folder for folder in folders if (root / folder / "pyproject.toml").is_file())
    return next(found, None)


def _shown_place(requirement: str, origin: Path | None) -> str:
    """Return what to give an installer for a requirement; empty: the kernel's origin does not have
    it.
    """
    found = _REQUIREMENT.match(requirement)
    if origin is None or found is None or not _is_own(_name(requirement)):
        return requirement
    # a path has one version, which may be another
    place = None if "==" in found[3] else _place(requirement, origin)
    return f"{_shown(place)}{found[2] or ''}" if place else ""


def _name(requirement: str) -> str:
    found = _REQUIREMENT.match(requirement)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _is_own(name: str) -> bool:
    return name == "axil" or name.startswith("axil-")


def _shown(path: Path) -> str:
    try:
        return f"./{path.relative_to(Path.cwd()).as_posix()}"
    except (ValueError, OSError):
        return path.as_posix()


def _quoted(word: str) -> str:
    """Return a word as a shell takes it, and runs nothing in it: requirements are a file's text."""
    if _PLAIN.fullmatch(word):
        return word
    return shlex.quote(word) if _MEANINGFUL.search(word) else f'"{word}"'

"""``axil plugins new``: a distribution that is complete before its author has written a line.

It builds, installs, passes its tests (the conformance kit among them) and runs in the workflow in
its ``examples``. The templates lie beside this module; ``@name@`` and its like are filled in.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Final

from axil import ConfigError, Problem
from axil.plugin import COMPONENT_KINDS, did_you_mean, format_names
from axil_plugins.output import unwritten

TEMPLATES: Final[Mapping[str, str]] = {
    "node": "nodes",
    "model": "models",
    "formatter": "formatters",
    "context": "context",
    "tool": "tools",
    "embedder": "embedders",
    "wrapper": "wrappers",
    "channel": "channels",
    "hook": "hooks",
    "reducer": "reducers",
    "condition": "conditions",
    "loader": "loaders",
    "journal": "journals",
}
"""The templates, with the kind of component that each makes."""
_AGENT: Final = '"axil-agent>=0.1"'
_MODELS: Final = '"axil-models>=0.1"'
_REQUIRES: Final[Mapping[str, tuple[str, str]]] = {
    "node": ('"axil-core>=0.1", "pydantic>=2.12"', ""),
    "model": (f'"axil-core>=0.1", {_MODELS}, "pydantic>=2.12"', f"{_AGENT}, "),
    "formatter": ('"axil-core>=0.1"', f"{_AGENT}, "),
    "context": (f'"axil-core>=0.1", {_MODELS}, "pydantic>=2.12"', f"{_AGENT}, "),
    "tool": ('"axil-core>=0.1"', f"{_AGENT}, {_MODELS}, "),
    "embedder": (
        '"axil-core>=0.1", "pydantic>=2.12"',
        f'{_AGENT}, "axil-context>=0.1", ',
    ),
    "wrapper": ('"axil-core>=0.1", "pydantic>=2.12"', '"axil-control>=0.1", '),
    "channel": ('"axil-core>=0.1", "pydantic>=2.12"', '"axil-control>=0.1", '),
    "condition": ('"axil-core>=0.1", "pydantic>=2.12"', '"axil-control>=0.1", '),
    "loader": ('"axil-core>=0.1", "axil-files>=0.1"', '"axil-control>=0.1", '),
    "journal": (
        '"axil-core>=0.1", "axil-journals>=0.1", "pydantic>=2.12"',
        '"axil-control>=0.1", ',
    ),
}
"""Requirements of the distribution of a kind, and those of its tests; the others need the kernel,
and for their example axil-control.
"""
GIT_SECONDS: Final = 10.0
"""The seconds that git may take to answer."""
_EMAIL: Final = re.compile(r"[^@\s<>]+@[^@\s<>]+")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FUNCTIONS: Final = frozenset({"loader", "reducer", "tool"})
_PLACE: Final = re.compile(r"@([a-z]+)@", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A distribution that was written."""

    folder: Path
    kind: str
    component: str
    """Its name, as workflow files say it."""
    files: list[str]
    """Inside the folder, sorted."""
    missing: tuple[str, ...]
    """Distributions of axil that its tests need, and this environment lacks."""


def scaffold(name: str, kind: str, into: Path) -> Made:
    """Write a distribution called ``name`` with one component into a new folder of that name.

    Raises: ConfigError: AX733 the name is bad, AX734 there is no such kind to be made, AX735 the
    folder is there already, AX955 it cannot be written.
    """
    if not _NAME.fullmatch(name):
        message = f'"{name}" is no name for a distribution.'
        hint = "Write vendor-thing: lower case, digits, hyphens; for example acme-shout."
        raise ConfigError(Problem("AX733", "NAME", message, hint))
    kind = next((one for one, many in TEMPLATES.items() if many == kind), kind)
    if kind not in TEMPLATES:
        hint = did_you_mean(kind, TEMPLATES) or f"Available: {format_names(list(TEMPLATES), 20)}."
        raise ConfigError(Problem("AX734", "--kind", f'no kind is called "{kind}".', hint))
    folder = into / name
    message = f"{folder} exists already; nothing was written."
    there = Problem("AX735", "NAME", message, "Choose another name or --into.")
    if folder.exists():
        raise ConfigError(there)
    values = _values(name, kind, _author(name))
    texts = {_filled(path, values): _filled(text, values) for path, text in _template(kind).items()}
    try:
        into.mkdir(parents=True, exist_ok=True)
        # until it is whole it has another name
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=into) as aside:
            for path, text in texts.items():
                file = Path(aside) / name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
            (Path(aside) / name).rename(folder)
    except OSError as error:
        if folder.exists():  # somebody else was quicker
            raise ConfigError(there) from error
        raise unwritten(folder, error) from error
    return Made(
        folder=folder,
        kind=kind,
        component=values["name"],
        files=sorted(texts),
        missing=_missing(values),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Author:
    """The copyright holder of what is made."""

    name: str
    email: str = ""

    @property
    def entry(self) -> str:
        """The author as an inline table of ``pyproject.toml`` has it."""
        fields = {"name": self.name, "email": self.email}
        return ", ".join(
            f"{key} = {json.dumps(text, ensure_ascii=False)}"
            for key, text in fields.items()
            if text
        )


def _author(name: str) -> _Author:
    """Return the author that git knows; without one, the authors of the distribution."""
    known = {key: _known_to_git(f"user.{key}") for key in ("name", "email")}
    if not known["name"]:
        return _Author(name=f"the {name} authors")
    email = known["email"] if _EMAIL.fullmatch(known["email"]) else ""
    return _Author(name=known["name"], email=email)


def _known_to_git(key: str) -> str:
    command = ["git", "config", "--get", key]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return "".join(filter(str.isprintable, done.stdout.strip()))


def _values(name: str, kind: str, author: _Author) -> dict[str, str]:
    vendor, _, thing = name.partition("-")
    word = (thing or vendor).replace("-", "_")
    qualified = word if kind == "loader" else f"{vendor}.{word}"
    needs, tests = _REQUIRES.get(kind, ('"axil-core>=0.1"', '"axil-control>=0.1", '))
    title = "".join(part.title() for part in word.split("_"))
    return {
        "dist": name,
        "package": name.replace("-", "_"),
        "vendor": vendor,
        "word": word,
        "name": qualified,
        "title": title,
        "object": word if kind in _FUNCTIONS else title,
        "kind": kind,
        "group": TEMPLATES[kind],
        "words": COMPONENT_KINDS[TEMPLATES[kind]],
        "needs": needs,
        "tests": tests,
        "author": author.name,
        "authors": author.entry,
        "year": str(datetime.now(tz=UTC).year),
    }


def _missing(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the distributions of axil's that are needed and not installed."""
    wanted = re.findall(r'"(axil[a-z-]*)>', f'{values["needs"]}, {values["tests"]}"axil-testing>"')
    return tuple(dict.fromkeys(each for each in wanted if not _is_installed(each)))


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: values[place[1].lower()], text)


def _template(kind: str) -> dict[str, str]:
    """Return paths inside the distribution → texts, those for all kinds first."""
    root = files("axil_plugins") / "templates"
    texts: dict[str, str] = {}
    for part in ("all.txt", f"{kind}.txt"):
        texts.update(_parts((root / part).read_text("utf-8")))
    return texts


def _parts(text: str) -> dict[str, str]:
    r"""Return the files in a template: each begins with a line ``=== path``.

    >>> _parts("=== a.txt\none\n=== b/c.txt\ntwo\n")
    {'a.txt': 'one\n', 'b/c.txt': 'two\n'}
    """
    pieces = re.split(r"^=== (\S+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))

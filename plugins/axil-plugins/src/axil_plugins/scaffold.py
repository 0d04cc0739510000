"""``axil plugins new``: a distribution that is complete before its author has written a line.

It builds, installs, passes its tests (the conformance kit among them) and runs in the workflow in
its ``examples``. The templates lie beside this module; ``@name@`` and its like are filled in.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
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
    "hook": "hooks",
    "reducer": "reducers",
    "condition": "conditions",
    "loader": "loaders",
    "journal": "journals",
}
"""What can be made, and of which kind it is."""
_AGENT: Final = '"axil-agent>=0.1"'
_MODELS: Final = '"axil-models>=0.1"'
_REQUIRES: Final[Mapping[str, tuple[str, str]]] = {
    "node": ('"axil>=0.1", "axil-config>=0.1", "pydantic>=2.12"', ""),
    "model": (f'"axil>=0.1", "axil-config>=0.1", {_MODELS}, "pydantic>=2.12"', f"{_AGENT}, "),
    "formatter": ('"axil>=0.1"', f"{_AGENT}, "),
    "context": (f'"axil>=0.1", "axil-config>=0.1", {_MODELS}, "pydantic>=2.12"', f"{_AGENT}, "),
    "condition": ('"axil>=0.1", "axil-config>=0.1", "pydantic>=2.12"', '"axil-control>=0.1", '),
    "loader": ('"axil>=0.1", "axil-files>=0.1"', '"axil-control>=0.1", '),
    "journal": ('"axil>=0.1", "axil-config>=0.1", "pydantic>=2.12"', '"axil-control>=0.1", '),
}
"""What the distribution of a kind requires, and what else its tests do; the others need the kernel,
and for their example axil-control.
"""
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
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


def scaffold(name: str, kind: str, into: Path) -> Made:
    """Write a distribution called ``name`` with one component into a new folder of that name.

    Raises: ConfigError: AX733 the name is none, AX734 there is no such kind to be made, AX735 the
    folder is there already, AX955 it cannot be written.
    """
    if not _NAME.fullmatch(name):
        hint = "Write vendor-thing: lower case, digits, hyphens; for example acme-shout."
        raise ConfigError(
            Problem("AX733", "NAME", f'"{name}" is no name for a distribution.', hint)
        )
    kind = (
        kind
        if kind in TEMPLATES
        else next((one for one, many in TEMPLATES.items() if many == kind), kind)
    )
    if kind not in TEMPLATES:
        hint = did_you_mean(kind, TEMPLATES) or f"Available: {format_names(list(TEMPLATES), 20)}."
        raise ConfigError(Problem("AX734", "--kind", f'no kind is called "{kind}".', hint))
    folder = into / name
    there = Problem(
        "AX735",
        "NAME",
        f"{folder} exists already; nothing was written.",
        "Choose another name or --into.",
    )
    if folder.exists():
        raise ConfigError(there)
    values = _values(name, kind)
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
    return Made(folder=folder, kind=kind, component=values["name"], files=sorted(texts))


def _values(name: str, kind: str) -> dict[str, str]:
    vendor, _, thing = name.partition("-")
    word = (thing or vendor).replace("-", "_")
    qualified = word if kind == "loader" else f"{vendor}.{word}"
    needs, tests = _REQUIRES.get(kind, ('"axil>=0.1"', '"axil-control>=0.1", '))
    title = "".join(part.title() for part in word.split("_"))
    return {
        "dist": name,
        "package": name.replace("-", "_"),
        "vendor": vendor,
        "word": word,
        "name": qualified,
        "title": title,
        "object": word if kind in ("reducer", "loader") else title,
        "kind": kind,
        "group": TEMPLATES[kind],
        "words": COMPONENT_KINDS[TEMPLATES[kind]],
        "needs": needs,
        "tests": tests,
    }


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

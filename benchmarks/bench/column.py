"""The columns: one file each in ``columns``; what a file says of itself, and the environment in
which it runs.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .workloads import Workload

FOLDER = Path(__file__).with_name("columns")
KINDS = ("ours", "baseline", "peer")
INSTALLING_SECONDS = 900


class NotInstalled(Exception):
    """The column cannot take part; says why."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One contender."""

    name: str
    """Of its file."""
    module: Any = field(repr=False)

    @property
    def title(self) -> str:
        return self.module.TITLE

    @property
    def kind(self) -> str:
        return self.module.KIND

    @property
    def requires(self) -> tuple[str, ...]:
        return getattr(self.module, "REQUIRES", ())

    @property
    def published(self) -> str:
        """A figure from elsewhere, quoted where the column cannot be measured."""
        return getattr(self.module, "PUBLISHED", "")

    def can(self, workload: Workload) -> bool:
        """Return whether it has the ability."""
        return any(
            hasattr(place, workload.ability)
            for place in (self.module, getattr(self.module, "COLUMN", None))
        )

    def sizes(self, workload: Workload) -> tuple[int, ...]:
        """At which sizes it is asked to do it."""
        return workload.sizes + (workload.far if getattr(self.module, "FAR", False) else ())


def columns(wanted: Iterable[str] = ()) -> list[Column]:
    """Return all columns, ours first, then the baselines, then peers by title; of the peers only
    the wanted ones, if any are named.
    """
    names = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__")
    found = [
        Column(name=name, module=importlib.import_module(f"{__package__}.columns.{name}"))
        for name in names
    ]
    asked = set(wanted)
    unknown = asked - {column.name for column in found}
    if unknown:
        raise SystemExit(
            f"no such column: {', '.join(sorted(unknown))}; there are {', '.join(names)}."
        )
    chosen = (
        column for column in found if not asked or column.kind != "peer" or column.name in asked
    )
    return sorted(chosen, key=lambda column: (KINDS.index(column.kind), column.title.lower()))


def cache() -> Path:
    """Return where the environments of peers are kept, outside the checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "axil-bench"


def interpreter(column: Column) -> Path:
    """Return the Python that has what the column requires, installed if it is not there yet.

    Raises: NotInstalled.
    """
    if not column.requires:
        return Path(sys.executable)
    said = "\n".join(
        [f"{sys.version_info.major}.{sys.version_info.minor}", *sorted(column.requires)]
    )
    folder = cache() / hashlib.sha256(said.encode()).hexdigest()[:12]
    python, stamp = (
        folder / ("Scripts" if os.name == "nt" else "bin") / "python",
        folder / "installed",
    )
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        try:
            run([sys.executable, "-m", "venv", str(folder)])
            run(
                [
                    str(python),
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    *column.requires,
                ]
            )
        except NotInstalled:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        stamp.write_text(said, "utf-8")
    return python


def run(command: list[str]) -> None:
    """Raises: NotInstalled: with the last line that it wrote."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALLING_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"installing took more than {INSTALLING_SECONDS} s") from None
    if done.returncode:
        lines = (
            [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            or done.stderr.splitlines()
            or ["no reason given"]
        )
        raise NotInstalled(lines[-1][:200])

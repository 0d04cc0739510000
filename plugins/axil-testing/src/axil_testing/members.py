"""Helpers for the tests of one distribution: its own components, kits, commands,
processes.
"""

from __future__ import annotations

import json
import secrets
import socket
import time
import tomllib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from axil.plugin import Registry, use_registry
from axil_testing.kit.base import Kit
from axil_testing.kit.report import check
from axil_testing.kit.whole import kits_for

Tables = Mapping[str, Mapping[str, str]]
"""Entry-point group → name → object, as in a pyproject.toml."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry point, as the registry reads it."""

    name: str
    group: str
    value: str
    dist: Any


@cache
def project_of(conftest: str) -> Mapping[str, Any]:
    """Return the ``[project]`` table of the distribution whose tests a conftest belongs to."""
    path = Path(conftest).resolve().parents[1] / "pyproject.toml"
    return tomllib.loads(path.read_text("utf-8"))["project"]


def free_port() -> int:
    """Return a free port that no program gets meanwhile that asks for any: those are higher."""
    while True:
        port = 10_000 + secrets.randbelow(22_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def own_components(conftest: str, others: Tables | None = None) -> Generator[Registry, None, None]:
    """Use a registry that has one distribution's components only, whatever else is installed.

    Args:
        conftest: ``__file__`` of the conftest in the distribution's ``tests``.
        others: components of other distributions that its tests need, too.
    """
    project = project_of(conftest)
    own = SimpleNamespace(name=project["name"], version=project["version"], requires=[])
    entries = [
        Entry(name=name, group=group, value=value, dist=own)
        for group, table in project["entry-points"].items()
        for name, value in table.items()
    ]
    for group, table in (others or {}).items():
        for name, value in table.items():
            package = value.partition(".")[0].replace("_", "-")
            other = SimpleNamespace(name=package, version="0", requires=[])
            entries.append(Entry(name=name, group=group, value=value, dist=other))
    with use_registry(Registry(entry_points=entries)) as made:
        yield made


class Done(NamedTuple):
    """The end of a command: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Its output, read as JSON."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The lines of its output, each read as JSON."""
        return [json.loads(line) for line in self.out.split("\n") if line]


def kit_cases(distribution: str, *only: str) -> list[Any]:
    """Return the parameters ``kit, why`` of a test for each kit of a distribution.

    Args:
        only: the subjects to test; none: all.
    """
    return [
        pytest.param(kit, why, id=subject)
        for subject, kit, why in kits_for(distribution)
        if not only or subject in only
    ]


def pass_kit(kit: type[Kit] | None, why: str) -> None:
    """Check that a subject passes its kit; skip the test where there is none."""
    if kit is None:
        pytest.skip(why)
    failures = [(each.law, each.reason) for each in check(kit).failures]
    assert failures == []


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def ends(pid: int) -> bool:
    """Return whether a process that was killed ends; the system may take a moment."""
    until = time.monotonic() + 60
    while not is_gone(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return is_gone(pid)


def command_runner(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str], *first: str
) -> Callable[..., Done]:
    """Return a function that runs a command line, with ``first`` in front, and says how it ended.

    Args:
        main: the command: a function of the arguments that gives the exit code.
    """

    def run(*arguments: object) -> Done:
        code = main([*first, *map(str, arguments)])
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run

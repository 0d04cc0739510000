"""Crashes at every point that a process passes, found by watching one: what it left is gone on
with, and comes to the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
STRIDES = {"kill": 15, "raise": 18, "stop": 30, "hang": 30, "cancel": 30, "sleep": 15}
"""By what happens at a point: of so many points one is tried, by each of ``KINDS`` in turn; in
``make thorough`` all, by each.
"""
KINDS = [("tidy", "normal"), ("engine", "full"), ("tidy", "full"), ("engine", "normal")]
"""The owner of the run, and what its journal waits for.

An owner that is tidy passes all that a run without an owner passes.
"""


class Crashes:
    """The server of ``crashes``."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [
            sys.executable,
            "-c",
            "from tests.faults.crashes import main; main()",
            str(folder),
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._watched: dict[tuple[str, str], dict[str, Any]] = {}

    def ask(self, **case: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def points(self, owner: str, sync: str, how: str) -> list[str]:
        """Return the points at which this makes sense: no process takes over from a sleeper that
        holds the lock between processes.
        """
        if (owner, sync) not in self._watched:
            self._watched[owner, sync] = self.ask(how="", owner=owner, sync=sync)
        watched = self._watched[owner, sync]
        assert watched["result"][:2] == ["done", {"sum": 70_078, "turns": 2}], watched
        return [
            point for point in watched["points"] if how != "sleep" or point not in watched["alone"]
        ]

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


@pytest.fixture(scope="module")
def crashes() -> Iterator[Crashes]:
    """In memory where there is such a folder: processes are killed, not the power."""
    folder = Path(
        tempfile.mkdtemp(
            prefix="axil-crashes-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        )
    )
    server = Crashes(folder)
    yield server
    server.close()
    shutil.rmtree(folder)


def chosen(crashes: Crashes, how: str) -> Iterator[dict[str, str]]:
    for n, (owner, sync) in enumerate(KINDS if LONG else KINDS[:2]):
        # two that tidy at once are in each other's way
        by = "run" if (owner, how) == ("tidy", "sleep") else owner
        points = crashes.points(by, sync, how)
        yield from (
            {"owner": by, "sync": sync, "at": at}
            for at in (points if LONG else points[n :: 2 * STRIDES[how]])
        )


@pytest.mark.parametrize("how", STRIDES)
def test_whatever_happens_to_a_process_at_any_point_its_run_has_the_same_result(crashes, how):
    """The same result and records; what was recorded is not done again; keys stay; what must not
    happen twice is asked about.
    """
    cases = list(chosen(crashes, how))
    said = [crashes.ask(how=how, **case) for case in cases]
    faults = [
        f"{case}: {each['faults']}"
        for case, each in zip(cases, said, strict=True)
        if each["faults"]
    ]
    assert not faults, "\n".join(faults[:5])
    # all, but where threads race: how many statements a run makes depends on the machine's load
    most = 0.9 if LONG else 0.5
    assert sum(each["reached"] for each in said) > most * len(said) > 0, "points are found again"


@pytest.mark.parametrize(
    ("bug", "how"),
    [
        ("other_keys", "kill"),
        ("never_asked", "kill"),
        ("never_waited", "kill"),
        ("begun_late", "kill"),
        ("done_again", "hang"),
        ("stepped_again", "raise"),
        ("never_refused", "sleep"),
        ("never_fenced", "sleep"),
    ],
)
def test_a_promise_that_is_not_kept_is_found(crashes, bug, how):
    points = crashes.points("run", "normal", how)
    spread = [at for n in range(7) for at in points[n::7]]
    assert any(crashes.ask(how=how, at=at, bug=bug)["faults"] for at in spread)

"""Puts files through ``axil check`` and ``axil run``, in a process that may be killed.

``python worker.py FOLDER SEED COUNT``: mutants of each file of the folder, COUNT of them from SEED
on; COUNT 0: the files as they are. Each finding is a line of JSON on standard output. A case that
takes more than its share (``shares``) ends the process: what it began with last is on standard
error. What counts as a finding: ``oracle``.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
from mutants import mutant
from oracle import faults_of_workflow, hide_secrets
from shares import begin, limit
from tests.internals import internal

PATIENCE = 0.1
"""Seconds that a search may take: a twentieth of the mutants have patterns that take all of it."""


def cases(folder: Path, seed: int, count: int):
    files = sorted(folder.iterdir())
    if not count:
        yield from ((file, file.read_text("utf-8"), "as it is") for file in files)
        return
    for number in range(seed, seed + count):
        file = files[number % len(files)]
        text = mutant(file.read_text("utf-8"), number, is_json=file.suffix == ".json")
        yield file, text, number


def main_of_worker(folder: Path, seed: int, count: int) -> None:
    folder = folder.resolve()
    sys.stdin = io.StringIO()
    hide_secrets()
    limit()
    pattern = internal("Pattern")
    for method in (pattern.search, pattern.matches):
        method.__kwdefaults__["seconds"] = PATIENCE
    for file, text, number in cases(folder, seed, count):
        begin(file.name, number)
        with tempfile.TemporaryDirectory() as where:
            made = Path(where, "a", "b", f"flow{file.suffix}")
            made.parent.mkdir(parents=True)
            os.chdir(made.parent)  # what a run writes goes with it
            made.write_text(text, "utf-8", "surrogatepass")
            for command, fault in faults_of_workflow(made):
                found = {"file": file.name, "number": number, "command": command}
                sys.stdout.write(json.dumps({**found, "fault": fault[-1500:]}) + "\n")


if __name__ == "__main__":
    main_of_worker(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

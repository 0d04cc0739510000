"""Puts files through ``axil check`` and ``axil run``, in a process that may be killed.

``python worker.py FOLDER SEED COUNT``: mutants of each file of the folder, COUNT of them from SEED
on; COUNT 0: the files as they are. Each finding is a line of JSON on standard output. A case that
uses more of the processor than its share, or more memory than the process has, ends the process:
what it began with last is on standard error.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from axil_cli.main import main

sys.path.insert(0, str(Path(__file__).parent))
from mutants import mutant

SHARE = 20
"""Seconds of the processor that one file may take, where a usual one takes a hundredth of one."""
MEMORY = 4 << 30
CODES = {0, 1, 2, 3, 4, 130}


def cases(folder: Path, seed: int, count: int):
    files = sorted(folder.iterdir())
    if not count:
        yield from ((file, file.read_text("utf-8"), "as it is") for file in files)
        return
    for number in range(seed, seed + count):
        file = files[number % len(files)]
        text = mutant(file.read_text("utf-8"), number, is_json=file.suffix == ".json")
        yield file, text, number


def fault_of(arguments: list[str]) -> str:
    """Return what is wrong with how a command ends; empty: nothing."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(arguments)
    except BaseException:  # noqa: BLE001  # any of them is a finding
        return traceback.format_exc()
    text = said.getvalue()
    if "Traceback (most recent call last)" in text:
        return text
    return "" if code in CODES else f"the exit code {code}: {text}"


def main_of_worker(folder: Path, seed: int, count: int) -> None:
    folder = folder.resolve()
    sys.stdin = io.StringIO()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for file, text, number in cases(folder, seed, count):
        sys.stderr.write(f"{file.name} {number}\n")
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SHARE, resource.RLIM_INFINITY))
        with tempfile.TemporaryDirectory() as where:
            made = Path(where, "a", "b", f"flow{file.suffix}")
            made.parent.mkdir(parents=True)
            os.chdir(made.parent)  # what a run writes goes with it
            made.write_text(text, "utf-8", "surrogatepass")
            for command in (["check"], ["run", "--journal", "off", "--input", "x"]):
                fault = fault_of([command[0], str(made), *command[1:]])
                if fault:
                    found = {"file": file.name, "number": number, "command": command[0]}
                    sys.stdout.write(json.dumps({**found, "fault": fault[-1500:]}) + "\n")


if __name__ == "__main__":
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    main_of_worker(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

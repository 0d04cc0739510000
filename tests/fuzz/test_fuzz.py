"""Laws of hostile files: a file is fine, or refused in plain words; none takes the process with it.

The corpus holds a file for each thing that was found once; mutants of them are made from numbers,
so a finding can be made again. ``AXIL_FUZZ=START:COUNT`` says which; ``make thorough`` takes 20,000
of them, and damages as many files.
What services answer, and pages, are changed in the same way, and files that axil keeps are damaged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
THOROUGH = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
START, _, COUNT = os.environ.get("AXIL_FUZZ", f"1:{20_000 if THOROUGH else 20}").partition(":")


def findings(*program: object) -> list[str]:
    worker = [sys.executable, *map(str, program)]
    done = subprocess.run(worker, capture_output=True, text=True, timeout=14_400, check=False)
    found = [
        "{file}, {number}, {command}:\n{fault}".format(**json.loads(line))
        for line in done.stdout.splitlines()
    ]
    if done.returncode:
        found.append(f"the process ended ({done.returncode}) at:\n{done.stderr[-1500:]}")
    return found


@pytest.mark.skipif(os.name == "nt", reason="a process has no limits there")
def test_what_was_found_once_is_refused_or_ends():
    assert findings(HERE / "worker.py", HERE / "corpus", 0, 0) == []


@pytest.mark.skipif(os.name == "nt", reason="a process has no limits there")
def test_a_mutant_is_fine_or_refused_in_plain_words():
    assert findings(HERE / "worker.py", HERE / "corpus", START, COUNT) == []


@pytest.mark.skipif(os.name == "nt", reason="a process has no limits there")
@pytest.mark.parametrize("count", [0, COUNT])
def test_a_file_that_a_disk_or_a_person_damaged_is_read_or_refused(count):
    assert findings(HERE / "damaged.py", START, count) == []


@pytest.mark.skipif(not THOROUGH or os.name == "nt", reason="takes minutes: make thorough")
def test_an_answer_of_a_service_is_a_reply_or_the_model_s_error():
    assert findings(HERE / "servers.py", START, int(COUNT) // 20) == []

"""The kernel is typed strictly. Most plugins are, too: `make types` takes longer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def pyright(
    root: Path, *arguments: str, timeout_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Runs the type checker of this environment; skips the test where it cannot start (it needs
    Node, and fetches itself once).
    """
    program = Path(sys.executable).with_name("pyright")
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    try:  # a session of its own, so that the Node below it ends with it
        child = subprocess.Popen(
            [program, *arguments], cwd=root, env=environment, start_new_session=True, **pipes
        )
    except FileNotFoundError:
        pytest.skip("pyright is not installed")
    with child:
        try:
            told, complained = child.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            (os.killpg if hasattr(os, "killpg") else os.kill)(child.pid, 9)
            pytest.skip(f"pyright did not answer within {timeout_seconds} s")
    return subprocess.CompletedProcess(child.args, child.returncode, told, complained)


def test_the_kernel_is_strictly_typed(root):
    started = pyright(root, "--version", timeout_seconds=15)
    if started.returncode != 0:
        pytest.skip("pyright cannot start here")
    done = pyright(
        root, "--outputjson", "--pythonpath", sys.executable, "core/src", timeout_seconds=45
    )
    report = json.loads(done.stdout)
    problems = [
        f"{Path(each['file']).relative_to(root)}:{each['range']['start']['line'] + 1} "
        f"{each['message']}"
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    ]
    assert report["summary"]["filesAnalyzed"] > 0
    assert problems == []

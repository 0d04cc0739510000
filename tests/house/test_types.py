"""The kernel is typed strictly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def pyright(root: Path, *arguments: str, timeout_seconds: float) -> subprocess.CompletedProcess[str]:
    """Runs the type checker of this environment; skips the test where it cannot start (it needs Node, and fetches itself once)."""
    program = Path(sys.executable).with_name("pyright")
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    try:
        return subprocess.run([program, *arguments], cwd=root, env=environment, capture_output=True, text=True, timeout=timeout_seconds)
    except FileNotFoundError:
        pytest.skip("pyright is not installed")
    except subprocess.TimeoutExpired:
        pytest.skip(f"pyright did not answer within {timeout_seconds} s")


def test_the_kernel_is_strictly_typed(root):
    started = pyright(root, "--version", timeout_seconds=15)
    if started.returncode != 0:
        pytest.skip("pyright cannot start here")
    done = pyright(root, "--outputjson", "--pythonpath", sys.executable, timeout_seconds=45)
    report = json.loads(done.stdout)
    problems = [
        f"{Path(each['file']).relative_to(root)}:{each['range']['start']['line'] + 1} {each['message']}"
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    ]
    assert report["summary"]["filesAnalyzed"] > 0
    assert problems == []

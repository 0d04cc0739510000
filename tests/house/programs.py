"""Programs of the pages, each in a process of its own that has already imported the members.

The processes are forks of one that did nothing but import; where there is no fork, each imports
for itself.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
import warnings
from functools import cache
from multiprocessing.context import BaseContext
from pathlib import Path
from types import ModuleType

from tests.house.checkout import all_modules


@cache
def context() -> BaseContext:
    """Return what starts processes: forks of one that has imported every module of the members."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    chosen = multiprocessing.get_context("forkserver")
    chosen.set_forkserver_preload([__name__, *all_modules()])
    return chosen


def run(code: str, folder: Path, *, timeout_seconds: float) -> tuple[int | None, str]:
    """Run a program in a folder with warnings as errors; return its exit code and its errors."""
    output = folder.with_suffix(".txt")
    child = context().Process(target=_run, args=(code, folder, output))
    child.start()
    child.join(timeout_seconds)
    child.kill()
    child.join()
    return child.exitcode, output.read_text("utf-8")


def _run(code: str, folder: Path, output: Path) -> None:
    os.chdir(folder)
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.resetwarnings()
    warnings.simplefilter("error")
    known = "'asyncio.iscoroutinefunction' is deprecated"  # of chromadb's telemetry, on 3.14
    warnings.filterwarnings("ignore", known, DeprecationWarning, "chromadb")
    sys.path[0:0] = [""]
    sys.modules["__main__"] = main = ModuleType("__main__")
    try:
        exec(compile(code, "<page>", "exec"), main.__dict__)  # noqa: S102 (a page of ours)
    except BaseException:  # noqa: BLE001 (whatever it is, the test shows it)
        traceback.print_exc()
        sys.exit(1)

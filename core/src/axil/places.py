"""The place in a user's own code that an error comes from."""

from __future__ import annotations

import os
import sysconfig
import traceback
from typing import Final

_INSTALLED: Final = tuple(
    os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib")
)
"""The folders of what is installed, and of Python itself."""


def own_line(error: BaseException) -> str:
    """Return the innermost line that is neither Python's, nor ours, nor of an installed
    distribution, as ``file.py:3 in name: code``; empty: there is none.
    """
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        is_ours = package == "axil" or package.startswith("axil_")
        if not (is_ours or code.co_filename.startswith((*_INSTALLED, "<"))):
            (summary,) = traceback.StackSummary.extract(iter([(frame, line)]))
            file = os.path.relpath(code.co_filename)
            file = code.co_filename if file.startswith("..") else file
            found = f"{file}:{line} in {code.co_name}: {summary.line}"
    return found

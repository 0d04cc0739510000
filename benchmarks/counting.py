"""The counter of Python calls that tests of costs share."""

from __future__ import annotations

import sys
from typing import Any


class Calls:
    """The number of Python calls made inside a ``with``, in this thread; its own end is one."""

    def __init__(self) -> None:
        self.count = 0

    def _tally(self, frame: Any, event: str, arg: Any) -> None:
        self.count += event == "call"

    def __enter__(self) -> Calls:
        self._before = sys.getprofile()
        sys.setprofile(self._tally)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

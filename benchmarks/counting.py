"""The counter of Python calls that tests of costs share."""

from __future__ import annotations

import sys
from typing import Any


class Calls:
    """The number of Python calls made inside a ``with``, in this thread; its own end is one."""

    def __init__(self, modules: str = "") -> None:
        """``modules``: count only calls of functions of modules whose names begin so."""
        self.count, self._modules = 0, modules

    def _tally(self, frame: Any, event: str, arg: Any) -> None:
        if event == "call" and str(frame.f_globals.get("__name__")).startswith(self._modules):
            self.count += 1

    def __enter__(self) -> Calls:
        self._before = sys.getprofile()
        sys.setprofile(self._tally)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

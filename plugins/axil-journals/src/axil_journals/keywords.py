"""Settings of ``axil_journals`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from axil.plugin import EnvName


class AesKeywords(TypedDict, total=False):
    """The settings of ``Aes``; see ``Settings``."""

    variable: EnvName
    """The environment variable that holds the keys."""

    file: Path | str | None
    """A file that holds the keys, readable by its user alone; it has priority over the environment.
    Without it: the file that the environment variable `variable` + `_FILE` names.
    """

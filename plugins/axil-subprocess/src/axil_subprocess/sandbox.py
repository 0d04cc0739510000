"""Sandboxes: where one is installed and works here, a program runs in it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

from axil.plugin import ComponentBlocked, default_registry, make_component

Wanted = Literal["auto", "required", "off"]
"""``auto``: a sandbox is used where one is installed and works; ``required``: without one the
program is not started; ``off``: none is used."""
_log = logging.getLogger("axil.sandbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What of the machine a program in a sandbox may use, beside the system's own programs."""

    folder: Path
    """Read and written; the program starts there."""
    writes: Sequence[Path] = ()
    """Further folders and files, read and written."""
    reads: Sequence[Path] = ()
    """Further folders and files, read only."""


class Sandbox(Protocol):
    """``axil.sandboxes``: starts programs so that they can use only their ``Place``."""

    def problem(self) -> str:
        """Return why it does not work on this machine; empty: it does."""
        ...

    def command(self, command: Sequence[str], place: Place) -> list[str]:
        """Return the command that runs ``command`` in the sandbox."""
        ...


async def sandboxed(command: Sequence[str], place: Place, wanted: Wanted) -> list[str]:
    """Return ``command`` as it is to be started: in a sandbox, or as it is.

    Where ``wanted`` is ``auto`` and there is none, the log ``axil.sandbox`` says why, once for each
    reason. Raises: ComponentBlocked (AX621): it is ``required``, and there is none.
    FileNotFoundError: there is a sandbox, and no such program.
    """
    if wanted == "off":
        return list(command)
    found, why = await asyncio.to_thread(find_sandbox)
    if found is not None:
        if shutil.which(command[0]) is None and not (place.folder / command[0]).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
        return await asyncio.to_thread(found.command, command, place)
    if wanted == "required":
        raise ComponentBlocked(
            f'"{command[0]}" is to run in a sandbox, and there is none: {why}.',
            id="AX621",
            hint="Install axil-sandbox and what it needs here, or write sandbox: auto.",
        )
    _say(why)
    return list(command)


def find_sandbox() -> tuple[Sandbox | None, str]:
    """Return the sandbox that works here, or None and why there is none."""
    registry = default_registry()
    why = "axil-sandbox is not installed"
    for name in registry.names("sandboxes"):
        made: Any = make_component(registry.resolve("sandboxes", name), {}, f"sandboxes:{name}")
        why = made.problem()
        if not why:
            return made, ""
    return None, why


@cache
def _say(why: str) -> None:
    _log.info("programs run without a sandbox: %s.", why)

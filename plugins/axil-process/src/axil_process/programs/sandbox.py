"""Sandboxes: where one works here, a program runs in it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias

from axil.plugin import (
    ComponentBlocked,
    OutsideMark,
    current_grants,
    default_registry,
    make_component,
)

CONTAINERS: Final = ("docker", "podman")
"""The sandboxes that start the program of their name, which asks a service of the machine: a
workflow file that names one needs leave (``program:docker``)."""
Wanted: TypeAlias = Annotated[
    Literal["auto", "required", "off", "bubblewrap", "docker", "podman"],
    OutsideMark("program", CONTAINERS),
]
"""``auto``: where one works; ``required``: without one the program is not started; ``off``: none;
a name: that one, or the program is not started."""
_ANY: Final = ("auto", "required")
_log = logging.getLogger("axil.sandbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The part of the machine that a program in a sandbox may use, beside the system's own."""

    folder: Path | None = None
    """Read and written; the program starts there. None: it starts in an empty ``/tmp``."""
    writes: Sequence[Path] = ()
    """Further folders and files, read and written."""
    reads: Sequence[Path] = ()
    """Further folders and files, read only."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The program's whole environment."""
    seconds: float | None = None
    """The seconds that it may live; None: as long as the sandbox permits."""
    memory_bytes: int | None = None
    """For each of its processes, and for all together; None: the sandbox's own limit."""
    processes: int | None = None
    """At one time; None: the sandbox's own limit."""
    cpu_seconds: int | None = None
    """Processor time of each process; None: no limit."""
    file_bytes: int | None = None
    """The size of a file that it writes; None: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The way in which a program is started, and ended."""

    command: list[str]
    variables: Mapping[str, str]
    """The whole environment of the command, which is not always that of the program."""
    ends: Sequence[str] = ()
    """A command that ends the program, where killing ``command`` does not; empty: it does."""


class Sandbox(Protocol):
    """``axil.sandboxes``: starts programs so that they can use only their ``Place``."""

    def problem(self) -> str:
        """Return why it does not work on this machine; empty: it does."""
        ...

    def launch(self, command: Sequence[str], place: Place) -> Launch:
        """Return how ``command`` is started in the sandbox."""
        ...


def withheld() -> tuple[str, ...]:
    """Return the sandboxes that the workflow file, whose grants are in force, may not start."""
    grants = current_grants()
    if grants is None:
        return ()
    return tuple(name for name in CONTAINERS if not grants.allows(f"program:{name}"))


async def sandboxed(
    command: Sequence[str], place: Place, wanted: Wanted, *, without: Sequence[str] = ()
) -> Launch:
    """Return how ``command`` is to be started: in a sandbox, or as it is.

    Where ``wanted`` is ``auto`` and there is none, the log ``axil.sandbox`` has each reason once;
    where there is one that may not be used (``without``, see ``withheld``), nothing runs.

    Raises: ComponentBlocked (AX621): one is wanted, and there is none; FileNotFoundError: there is
    a sandbox, and no such program.
    """
    plain = Launch(command=list(command), variables=place.variables)
    if wanted == "off":
        return plain
    name = "" if wanted in _ANY else wanted
    found, why = await asyncio.to_thread(find_sandbox, name, without=without)
    if found is not None:
        folder = place.folder or Path("/tmp")
        if shutil.which(command[0]) is None and not (folder / command[0]).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
        return await asyncio.to_thread(found.launch, command, place)
    lacking = [each for each in without if name in ("", each) and shutil.which(each)]
    if wanted == "auto" and not lacking:
        _log_once(why)
        return plain
    hint = "Install bubblewrap, Docker or Podman, or write sandbox: auto."
    if lacking:
        allow = f"--allow program:{lacking[0]}"
        hint = f"Allow it if you trust the workflow: {allow}; or install bubblewrap."
    message = f'"{command[0]}" is to run in a sandbox, and there is none: {why}.'
    raise ComponentBlocked(message, id="AX621", hint=hint)


def find_sandbox(name: str = "", *, without: Sequence[str] = ()) -> tuple[Sandbox | None, str]:
    """Return the first sandbox that works here, or None and why there is none.

    Args:
        name: only the sandbox of this name; empty: any, in the order of their names.
        without: names of sandboxes that are not used, and not asked whether they work.
    """
    registry = default_registry()
    reasons: list[str] = []
    for each in registry.names("sandboxes"):
        if name in ("", each) and each in without:
            reasons.append(f"{each} needs the grant program:{each}")
        elif name in ("", each):
            made: Any = make_component(registry.resolve("sandboxes", each), {}, f"sandboxes:{each}")
            why = made.problem()
            if not why:
                return made, ""
            reasons.append(why)
    return None, "; ".join(reasons) or "no sandbox is admitted"


@cache
def _log_once(why: str) -> None:
    _log.info("programs run without a sandbox: %s.", why)

"""Options of every command that opens workflows: models on a script, on a recording, or recorded.

Those of switches, judges and memories are meant as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from axil_agent.replay import Recorder, Replay
from axil_agent.scripted import Scripted


class Launch(Protocol):
    """The part of a run's options that these options need."""

    @property
    def within(self) -> ExitStack:
        """Open until the run is over."""
        ...

    @property
    def recorded(self) -> Sequence[tuple[str, Any]]:
        """The steps that a run which goes on has done: names and results."""
        ...


class ModelScript:
    """answer every agent from the script in FILE: no model, no key, no network"""

    metavar = "FILE"
    excludes = ("record", "replay")

    def prepare(self, value: str, launch: Launch) -> None:
        """Give a resumed run the replies that follow those it had.

        Raises: as ``Scripted.from_file``.
        """
        script = Scripted.from_file(value)
        script.skip(result for _, result in getattr(launch, "recorded", ()))
        launch.within.enter_context(script.everywhere())


class Record:
    """write what every agent asks and is answered to FILE, for --replay; what FILE has is kept"""

    metavar = "FILE"
    excludes = ("model-script", "replay")

    def prepare(self, value: str, launch: Launch) -> None:
        """Raises: as ``Recorder.everywhere``."""
        launch.within.enter_context(Recorder.everywhere(value))


class ReplayOption:
    """answer every agent from the recording in FILE; a request that it does not hold is an error"""

    metavar = "FILE"
    excludes = ("model-script", "record")

    def prepare(self, value: str, launch: Launch) -> None:
        """Raises: as ``Replay.everywhere``."""
        launch.within.enter_context(Replay(value).everywhere())

"""Options of every command that opens workflows: models on a script, on a recording, or recorded.

Those of switches, judges and memories are meant as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

from axil_agent.scripted import Scripted, script_text


class Launch(Protocol):
    """The part of a run's options that these options need."""

    @property
    def within(self) -> ExitStack:
        """Open until the run is over."""
        ...

    @property
    def recorded(self) -> Sequence[tuple[str, object]]:
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
        self.resume(self.keep(value), launch)

    def keep(self, value: str) -> dict[str, str]:
        """Return the file and its text. Raises: as ``Scripted.from_file``."""
        return {"file": value, "text": script_text(value)}

    def resume(self, kept: Mapping[str, str], launch: Launch) -> None:
        """Answer from the script as it was when the run began; it never asks a model then."""
        script = Scripted.from_text(kept["text"], kept["file"])
        script.skip(result for _, result in getattr(launch, "recorded", ()))
        launch.within.enter_context(script.everywhere())


class Record:
    """write what every agent asks and is answered to FILE, for --replay; what FILE has is kept"""

    metavar = "FILE"
    excludes = ("model-script", "replay")

    def prepare(self, value: str, launch: Launch) -> None:
        """Raises: as ``Recorder.everywhere``."""
        from axil_agent.replay import Recorder

        launch.within.enter_context(Recorder.everywhere(value))


class ReplayOption:
    """answer every agent from the recording in FILE; a request that it does not hold is an error"""

    metavar = "FILE"
    excludes = ("model-script", "record")

    def prepare(self, value: str, launch: Launch) -> None:
        """Raises: as ``Replay.everywhere``."""
        from axil_agent.replay import Replay

        launch.within.enter_context(Replay(value).everywhere())

    def keep(self, value: str) -> str:
        """Return the place of the recording, which may be too large to be kept."""
        return os.path.realpath(value)

    def resume(self, kept: str, launch: Launch) -> None:
        """Raises: as ``Replay.everywhere``; it is gone."""
        self.prepare(kept, launch)

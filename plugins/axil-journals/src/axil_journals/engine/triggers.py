"""Triggers: they start runs without a caller, at times or for files in a folder.

Every worker of a journal has the same triggers. The id of a run is made of the name of its trigger
and of the time, or of the file with its content, so that all workers give an occurrence one id; a
journal begins a run id once. No worker leads, and nothing is stored but the runs.

Of the occurrences that were missed because there was no worker, the last one is made up for, up to
``late_seconds`` later.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Final, Self, cast
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from axil import AxilError, Workflow
from axil.driver import Clock, RealClock, wall_time
from axil.plugin import JournalError, decode_config
from axil_journals.engine.loading import off_loop
from axil_journals.engine.protocol import Engine
from axil_journals.journal import SharedJournal
from axil_journals.tables import read_tables

log = logging.getLogger("axil_journals")

_LONGEST_SECONDS: Final = 60.0  # the wall clock may be set: it is read again after so long
_RETRY_SECONDS: Final = 5.0
_FILES: Final = 100  # that one look at a folder reads; the next look reads on
_PLACE: Final = re.compile(r"\{(time|path|name|text)\}")
_EXISTS: Final = ("AX505", "AX506")  # errors of a journal that has the run of another worker
_PASSING: Final = ("AX510", "AX512")  # errors after which an occurrence is tried again


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One occurrence of a trigger: the run that it starts."""

    run_id: str
    values: Mapping[str, str]
    """Texts that the input names in braces: ``time``; or ``path``, ``name``, ``text`` of a file."""


class Interval:
    """The multiples of a number of seconds since 1970: the same times on all machines.

    >>> Interval(900).after(1000.0)
    1800.0
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def after(self, time: float) -> float:
        """Return the first time after ``time``, in seconds since 1970."""
        number = time // self.seconds
        while (found := number * self.seconds) <= time:  # a product may be rounded down
            number += 1
        return found


class Cron:
    """The times of a line of cron, in a time zone: minute, hour, day, month, weekday.

    Where clocks are put forward, a time in the gap is due right after it; where they are put back,
    a fixed time is due once.
    """

    def __init__(self, line: str, timezone: tzinfo = UTC) -> None:
        """Raises: ValueError: the line is none of cron."""
        from cronsim import CronSim, CronSimError

        self.line, self.timezone, self._make = line, timezone, CronSim
        try:
            CronSim(line, datetime.now(timezone))
        except CronSimError as error:
            ways = 'expected minute, hour, day, month, weekday: "0 6 * * 1-5"'
            raise ValueError(f'"{line}" is no line of cron: {error}; {ways}') from None

    def after(self, time: float) -> float:
        """Return the first time after ``time``; infinity: none within the next 50 years."""
        found = next(self._make(self.line, datetime.fromtimestamp(time, self.timezone)), None)
        return float("inf") if found is None else found.timestamp()


class Schedule:
    """A trigger at times."""

    def __init__(
        self,
        name: str,
        times: Interval | Cron,
        *,
        late_seconds: float = 3600.0,
        timezone: tzinfo = UTC,
    ) -> None:
        """``timezone``: of ``{time}`` in inputs."""
        self.name, self.times = name, times
        self.late_seconds, self.timezone = late_seconds, timezone

    def occurrences(self, since: float, now: float) -> Sequence[Occurrence]:
        """Return the last occurrence after ``since`` up to ``now``, if it is not too late."""
        last, time = None, self.times.after(max(since, now - self.late_seconds))
        while time <= now:
            last, time = time, self.times.after(time)
        if last is None:
            return ()
        at = datetime.fromtimestamp(last, UTC)
        part = f".{at.microsecond:06d}" if at.microsecond else ""
        shown = at.astimezone(self.timezone).isoformat()
        return [Occurrence(run_id=f"{self.name}-{at:%Y%m%dT%H%M%S}{part}Z", values={"time": shown})]

    def next(self, now: float) -> float:
        """Return when to look again, in seconds since 1970."""
        return self.times.after(now)


class Folder:
    """A trigger for files: one occurrence for each file with each content that it has.

    A file that is being written is left alone: it counts when it has had the same size and time of
    change in two looks.
    """

    def __init__(self, name: str, folder: Path, *, files: str = "*", poll_seconds: float = 2.0):
        self.name, self.folder, self.files = name, folder, files
        self.poll_seconds = poll_seconds
        self._seen: dict[Path, tuple[int, int]] = {}
        self._started: dict[Path, tuple[int, int]] = {}

    def occurrences(self, since: float, now: float) -> Sequence[Occurrence]:
        """Return the occurrences of new and changed files; some may be returned again."""
        before, self._seen = self._seen, dict(self._found())
        self._started = {path: was for path, was in self._started.items() if path in self._seen}
        found: list[Occurrence] = []
        for path, state in sorted(self._seen.items()):
            if len(found) == _FILES:
                break
            if before.get(path) == state and self._started.get(path) != state:
                try:
                    content = path.read_bytes()
                except OSError:  # it was moved away meanwhile
                    continue
                found.append(self._occurrence(path, content))
        return found

    def _found(self) -> Iterator[tuple[Path, tuple[int, int]]]:
        for path in self.folder.glob(self.files):
            try:
                found = path.stat()
            except OSError:
                continue
            if path.is_file() and not path.name.startswith("."):
                yield path, (found.st_size, found.st_mtime_ns)

    def _occurrence(self, path: Path, content: bytes) -> Occurrence:
        inside = path.relative_to(self.folder).as_posix()
        digest = hashlib.sha256(f"{inside}\0".encode() + content).hexdigest()[:20]
        text = content.decode("utf-8", "replace")
        values = {"path": str(path), "name": inside, "text": text}
        return Occurrence(run_id=f"{self.name}-{digest}", values=values)

    def done(self, occurrence: Occurrence) -> None:
        """Note that an occurrence has its run: an unchanged file is not read again."""
        path = Path(occurrence.values["path"])
        if path in self._seen:
            self._started[path] = self._seen[path]

    def next(self, now: float) -> float:
        return now + self.poll_seconds


Trigger = Schedule | Folder


class TriggerSettings(BaseModel):
    """A table of a file of triggers; its name is the trigger's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workflow: str = Field(
        description="The workflow that it runs: a file, from this file's folder, or module:graph."
    )
    cron: str = Field("", description='A line of cron: "0 6 * * 1-5".')
    every_seconds: float | None = Field(
        None, ge=1, description="An interval; the times are its multiples since 1970."
    )
    folder: str = Field("", description="A folder whose files start runs, from this file's folder.")
    files: str = Field("*", description="The pattern of the files: *.txt, **/*.json.")
    poll_seconds: float = Field(2.0, gt=0, description="Between two looks at the folder.")
    timezone: str = Field("UTC", description="Of cron and of {time}: Europe/Berlin.")
    late_seconds: float = Field(
        3600.0,
        ge=60,
        description="How long after its time an occurrence that was missed is made up for.",
    )
    input: str | dict[str, Any] | None = Field(
        None, description="The input; {time}, or {path}, {name} and {text} of the file, are put in."
    )

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        _zone(name)
        return name

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum((bool(self.cron), self.every_seconds is not None, bool(self.folder))) != 1:
            raise ValueError("expected one of cron, every_seconds and folder")
        if self.cron:
            Cron(self.cron, _zone(self.timezone))
        return self

    def trigger(self, name: str, folder: Path) -> Trigger:
        """Return the trigger; ``folder``: of the file of triggers."""
        if self.folder:
            place = folder / self.folder
            return Folder(name, place, files=self.files, poll_seconds=self.poll_seconds)
        zone = _zone(self.timezone)
        times = Cron(self.cron, zone) if self.cron else Interval(self.every_seconds or 1.0)
        return Schedule(name, times, late_seconds=self.late_seconds, timezone=zone)


def read_triggers(path: Path) -> Mapping[str, TriggerSettings]:
    """Return the triggers of a TOML file, by their names.

    Raises: ConfigError: as ``read_tables``; and what ``decode_config`` finds.
    """
    tables = read_tables(path, "triggers", 'workflow = "flow.yaml" and its time')
    return {name: decode_config(TriggerSettings, table, f"{path} {name}") for name, table in tables}


def input_of(given: Any, values: Mapping[str, str]) -> Any:
    """Return an input with the values of an occurrence put in.

    >>> input_of({"day": "for {time}", "n": [1, "{time}"]}, {"time": "today"})
    {'day': 'for today', 'n': [1, 'today']}
    """
    if isinstance(given, str):
        return _PLACE.sub(lambda match: values.get(match[1], match[0]), given)
    if isinstance(given, Mapping):
        items = cast("Mapping[str, Any]", given).items()
        return {name: input_of(value, values) for name, value in items}
    if isinstance(given, list):
        return [input_of(value, values) for value in cast("list[Any]", given)]
    return given


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f'there is no time zone "{name}"') from None


@dataclass(slots=True, kw_only=True)
class TriggeredRuns:
    """The runs that one trigger starts, in a journal that other workers may share."""

    trigger: Trigger
    engine: Engine
    journal: SharedJournal
    workflow: Workflow
    input: Any = None
    origin: Mapping[str, Any] | None = None
    clock: Clock = field(default_factory=RealClock)
    _since: float = float("-inf")

    async def watch(self) -> None:
        """Start runs until the task is cancelled."""
        while True:
            left = await self.look() - wall_time(self.clock)
            await self.clock.sleep(max(0.0, min(left, _LONGEST_SECONDS)))

    async def look(self) -> float:
        """Start the runs that are due, and return when to look again."""
        now = wall_time(self.clock)
        try:
            for occurrence in await self._occurrences(self._since, now):
                await self._start(occurrence)
        except (JournalError, OSError) as error:
            log.warning("a trigger is tried again in %g seconds: %s", _RETRY_SECONDS, error)
            return min(self.trigger.next(now), now + _RETRY_SECONDS)
        self._since = now
        return self.trigger.next(now)

    async def _occurrences(self, since: float, now: float) -> Sequence[Occurrence]:
        if isinstance(self.trigger, Folder):  # it waits for a disk
            return await asyncio.to_thread(self.trigger.occurrences, since, now)
        return self.trigger.occurrences(since, now)

    async def _start(self, occurrence: Occurrence) -> None:
        """Start the run of an occurrence, unless the journal has it."""
        if not await off_loop(self.journal, self.journal.infos, [occurrence.run_id]):
            given = input_of(self.input, occurrence.values)
            try:
                await self.engine.start(
                    self.workflow, given, run_id=occurrence.run_id, origin=self.origin
                )
                log.info("started the run %s", occurrence.run_id)
            except AxilError as error:
                if error.id in _PASSING:
                    raise
                if error.id not in _EXISTS:  # it would be refused again
                    log.error("the run %s was not started: %s", occurrence.run_id, error)
        if isinstance(self.trigger, Folder):
            self.trigger.done(occurrence)

"""A small server whose processes end at a point while others continue their runs; checks of the
results.

Theory of operation
-------------------
A *point* is a place that a process passes while a run is at work: an entry is taken, a statement
goes to the database, the disk is waited for, a body writes something. There is no list of
them: a run is watched once from its beginning to its end, and what it passed are the points, each
with how often it had been passed before. Then, for each of them, a process is begun that goes as
far as that point, and there

- ``kill``: is gone, by SIGKILL;
- ``raise``: meets an error; ``stop``: a KeyboardInterrupt;
- ``hang``: does not come back, and is killed from outside;
- ``cancel``: waits for ever in a body, and the run is cancelled;
- ``sleep``: does not come back until another process has taken its run over and ended it, and then
  goes on as if nothing were.

What it left is continued by a fresh process, as its client would, and held to the laws that
``heir`` looks at. Starting an interpreter takes much longer than a run does, so all of them are
forks of this one, which has no thread, no loop and no connection.

``main(FOLDER)`` reads a case per line, as JSON, and answers each with a line.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from axil import AxilError, Result
from axil.plugin import JournalError, KernelBug
from axil_journals import Entry, MemoryJournal, ReplayIndex
from axil_sqlite import SqliteJournal

from ..internals import internal
from .points import LOCKED, ORDERS, OWNERS, RUN, SENT, Points, World, watch

RunServices: Any = internal("RunServices")
PATIENCE = 120
"""Seconds after which a process has not ended."""
LAPSE = 600.0
"""Seconds of silence after which anybody's run may be taken over: more than any process is given
here.
"""

# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """One process that ends at one point, and what came of it."""

    how: str
    at: str = ""
    sync: Any = "normal"
    owner: str = "run"
    bug: str = ""
    """One of ``BUGS``, that the laws are to find."""

    def whole(self, folder: Path) -> Path:
        """Return the file that holds the expected results of the run if nothing happens to it."""
        return folder / f"whole-{self.owner}-{self.sync}.json"


class Trouble(OSError):
    """The exception of a point."""


def doomed(case: Case, folder: Path, hung: int, woken: int) -> dict[str, Any]:
    """Have the run go on from its beginning as far as the point."""
    world = World(folder / "reported", "doomed")

    def act() -> bool:
        if case.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if case.how == "raise":
            raise Trouble(5, "Input/output error")
        if case.how == "stop" and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        if case.how in ("hang", "sleep"):
            os.write(hung, b"h")
            os.read(woken, 1)
        if case.how == "cancel":
            world.cancel()
        return case.how == "cancel"

    points = world.points = Points(case.at, act)
    watch(points, lambda count: world.write({"who": "doomed", "safe": count}))
    journal = SqliteJournal(folder / "j", sync=case.sync)
    result: Any = None
    try:
        result = reported(asyncio.run(OWNERS[case.owner](journal, world)))
    except KernelBug:
        raise
    except (Trouble, KeyboardInterrupt, AxilError):  # as its client hears of it, who comes back
        pass
    with suppress(Trouble, KeyboardInterrupt):
        journal.close()
    return {
        "result": result,
        "points": points.passed,
        "alone": [point for point in points.passed if any(word in point for word in LOCKED)],
    }


def heir(case: Case, folder: Path, jump: float) -> dict[str, Any]:
    """Continue what was left, to the end, and return what was wrong with it."""
    internal("sqlite_writer").time = SimpleNamespace(
        time=lambda: time.time() + jump, time_ns=time.time_ns
    )
    world = World(folder / "reported", "heir")
    journal = SqliteJournal(folder / "j", sync=case.sync)
    left = list(journal.entries(RUN))
    held = bool(journal.query("select 1 from runs where run = ? and owner != ''", RUN))
    before = world.lines()
    try:
        result = asyncio.run(OWNERS[case.owner](journal, world))
    except JournalError as error:
        journal.close()
        return {"refused": error.id, "reported": len(world.lines()) - len(before)}
    whole = json.loads(case.whole(folder.parent).read_text("utf-8"))
    facts = [plain(entry) for entry in journal.entries(RUN)]
    found = [
        *ended_as(whole, reported(result), facts),
        *went(whole, world.lines(), left, before),
        *counted(whole, world.lines(), 1, facts),
    ]
    if list(journal.examine()):
        found.append(f"the database is damaged: {journal.examine()}")
    numbers = [number for number, _ in journal.read(RUN)]
    if numbers != list(range(len(numbers))):
        found.append(f"its entries have the numbers {numbers}")
    journal.shrink()
    if not journal.query("select 1 from parts") or list(journal.examine()):
        found.append("of its large value there are no parts, or others")
    if {RUN} != {info.run_id for info in journal.runs()}:
        found.append("a run that was to be forgotten is there")
    journal.close()
    return {"faults": found, "held": held and len(facts) > len(left), "facts": facts}


def plain(entry: Entry) -> Any:
    data = {name: value for name, value in entry.data.items() if name not in ("at", "used")}
    return json.loads(json.dumps([entry.kind, str(entry.activation) if entry.node else "", data]))


def reported(result: Result) -> Any:
    return json.loads(
        json.dumps(
            [result.status, result.output, dict(result.attributes), str(result.error or "")],
            default=repr,
        )
    )


def ended_as(whole: dict[str, Any], result: Any, facts: list[Any]) -> Iterator[str]:
    """Yield what differs from the run that nothing happened to: its result, and what is recorded as
    done.
    """
    if result != whole["result"]:
        yield f"its result is {result}, not {whole['result']}"
    done = {fact[1]: fact for fact in facts if fact[0] == "done"}
    for fact in whole["facts"]:
        if fact[0] == "done" and done.pop(fact[1], None) != fact:
            yield f"{fact[1]} is recorded otherwise, or not at all"
    if done:
        yield f"{list(done)} is recorded, which was never there"


def went(
    whole: dict[str, Any],
    lines: list[dict[str, Any]],
    left: list[Entry],
    before: list[dict[str, Any]],
) -> Iterator[str]:
    """Yield what should not have been done, by who is gone or by who went on."""
    done, steps = (
        {str(entry.activation) for entry in left if entry.kind == kind} for kind in ("done", "step")
    )
    safe = max((line["safe"] for line in before if "safe" in line), default=0)
    if safe > len(left):
        yield f"{safe} entries were promised to be safe, and {len(left)} are there"
    for line in before:
        missing = BEHIND.get(line.get("activation", ""), set()) - done
        if missing:
            yield f"{line['activation']} ran when {missing} was not recorded"
    for line in lines[len(before) :]:
        if "say" in line and line["activation"] in done:
            yield f"{line['activation']} was done, and ran again"
        if line.get("say") in ("step", "posts") and line["activation"] in steps:
            yield f"{line['say']} of {line['activation']} was taken, and was taken again"


def counted(
    whole: dict[str, Any], lines: list[dict[str, Any]], times: int, facts: list[Any]
) -> Iterator[str]:
    """Yield whether things have their keys, and happened no oftener than they may: ``times``, of
    what must not be repeated; of the rest once more than usual, or as often as the run was gone on
    with, as its record (``facts``) says: who asks, asks anew each time.
    """
    begun = 1 + sum(fact[0] == "resumed" for fact in facts)
    keys = {
        (line["activation"], line["say"]): line["key"]
        for line in whole["reported"]
        if "say" in line
    }

    def often(lines: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
        return Counter((line["activation"], line["say"]) for line in lines if "say" in line)

    usual = often(whole["reported"])
    for line in lines:
        if "say" in line and line["key"] != keys.get((line["activation"], line["say"])):
            yield f"{line['say']} of {line['activation']} has another key"
    for who, count in often(lines).items():
        most = times if who[1] in SENT else max(usual[who] + 1, begun)
        if count > most:
            yield f"{who[1]} of {who[0]} happened {count} times, which may be {most} times"


LOOKS = {"resumed", "ended"}
"""Entries of a process that loads an ended run to read its end."""
BEHIND = {
    target: {
        edge.source
        for edge in ORDERS.spec.edges
        if edge.target == target and edge.source != "@entry"
    }
    for target in {edge.target for edge in ORDERS.spec.edges}
}
"""By node, those before it: the world sees nothing of it before they are recorded."""


# ----------------------------------------------------------------------------------------------- wh


def other_keys() -> None:
    RunServices.key = lambda services, activation, step="": f"{os.getpid()} {activation} {step}"


def never_asked() -> None:
    async def begin(services: Any, activation: Any, step: str = "") -> None: ...

    RunServices.begin = begin


def never_waited() -> None:
    internal("sqlite_journal").SqliteRunWriter.kept = lambda writer: None


def never_refused() -> None:
    internal("sqlite_writer").Writer.is_alive = lambda *_: False


def never_fenced() -> None:
    writer = internal("sqlite_writer")
    # which is not enough: a number is given once in a run
    writer._HOLD = writer._HOLD.replace("epoch = ?", "? is not null")
    writer._INSERTS = {
        n: sql.replace("insert", "insert or replace") for n, sql in writer._INSERTS.items()
    }


def done_again() -> None:
    read = ReplayIndex._read

    def reads(replay: ReplayIndex, entry: Entry) -> None:
        if entry.kind != "done" or entry.node != "plain":
            read(replay, entry)

    ReplayIndex._read = reads  # type: ignore[method-assign]


def stepped_again() -> None:
    ReplayIndex.steps = property(lambda _: {}, lambda *_: None)  # type: ignore[assignment]


def begun_late() -> None:
    """Says that something is about to happen without waiting until that is written."""

    async def keep(services: Any, fact: Any) -> None:
        services.note(fact)
        if type(fact).__name__ != "EffectBegun":
            await services.kept()

    RunServices.keep = keep


BUGS: dict[str, Callable[[], None]] = {
    bug.__name__: bug
    for bug in (
        other_keys,
        never_asked,
        never_waited,
        never_refused,
        never_fenced,
        done_again,
        stepped_again,
        begun_late,
    )
}


# --------------------------------------------------------------------------------------------------


class Server:
    """Begins processes, waits for them, and says what came of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self.opening: dict[Path, list[str]] = {}
        """By run that nothing happened to: the points before its first entry, where the database is
        made.
        """

    def case(self, case: Case) -> dict[str, Any]:
        """Return whether the point was reached, and what is wrong."""
        self.count += 1
        folder = self.folder / str(self.count)
        whole = case.whole(self.folder).with_suffix("")
        if case.at in self.opening[whole]:
            folder.mkdir()
        else:  # to make the database takes as long as all the rest
            shutil.copytree(whole / "made", folder)
        (hears, hung), (woken, wakes) = os.pipe(), os.pipe()
        pid = forked(lambda: doomed(case, folder, hung, woken), folder / "doomed.json", case.bug)
        os.close(hung)
        try:
            is_hung = bool(os.read(hears, 1))
            found: list[str] = []
            if is_hung and case.how == "sleep":
                found = self.taken_over(case, folder)
                os.write(wakes, b"w")
            elif is_hung:
                os.kill(pid, signal.SIGKILL)
            left = ended(pid, folder / "doomed.json")
            reached = is_hung or not left or case.at in left["points"]
            if case.how == "sleep" and is_hung:
                return {"reached": reached, "faults": [*found, *self.after(case, folder, left)]}
            return {
                "reached": reached,
                "faults": [*self.said(case, left), *self.heard(case, folder, "heir", 0)["faults"]],
            }
        finally:
            for handle in (hears, woken, wakes):
                os.close(handle)

    def watched(self, case: Case) -> dict[str, Any]:
        """Return the points of a run that nothing happens to; what comes of it is written down."""
        folder = case.whole(self.folder).with_suffix("")
        folder.mkdir()
        whole = ended(
            forked(lambda: doomed(case, folder, -1, -1), folder / "doomed.json", ""),
            folder / "doomed.json",
        )
        points = whole["points"]
        self.opening[folder] = points[
            : next(n for n, point in enumerate(points) if "entry" in point)
        ]
        made = SqliteJournal(folder / "made" / "j")
        made.runs()
        made.close()
        said = {
            **whole,
            "reported": World(folder / "reported", "").lines(),
            "facts": facts_of(case, folder),
        }
        case.whole(self.folder).write_text(json.dumps(said), "utf-8")
        return whole

    def heard(self, case: Case, folder: Path, name: str, jump: float) -> dict[str, Any]:
        path = folder / f"{name}.json"
        came = ended(forked(lambda: heir(case, folder, jump), path, case.bug), path)
        if "refused" in came and not jump:
            return {"faults": [f"it was refused with {came['refused']}"], **came}
        return {"faults": broken(came), **came}

    def taken_over(self, case: Case, folder: Path) -> list[str]:
        """While a process sleeps: another one is refused as long as that may wake, and ends the run
        when it is given up.
        """
        first = self.heard(case, folder, "early", 0)
        if "refused" not in first:
            return [
                *first["faults"],
                *(
                    ["another process was at work on the run, and it was resumed"]
                    if first.get("held")
                    else []
                ),
            ]
        found = [] if first["refused"] == "AX506" else first["faults"]
        if first["reported"]:
            found.append("a process that was refused did something")
        late = self.heard(case, folder, "heir", LAPSE)
        return [
            *found,
            *late["faults"],
            *([f"it was never given up: {late['refused']}"] if "refused" in late else []),
        ]

    def after(self, case: Case, folder: Path, left: dict[str, Any]) -> list[str]:
        """Check the run after a sleeper has continued: nothing of the run has changed, and it has
        not taken it for its own.
        """
        # there is none, where it had not yet taken the run for its own: then it goes on as anybody
        # may
        heir = folder / "heir.json"
        ended_with = json.loads(heir.read_text("utf-8")).get("facts") if heir.exists() else None
        facts = facts_of(case, folder)
        found = [
            *self.said(case, left),
            *counted(self.whole(case), World(folder / "reported", "").lines(), 2, facts),
        ]
        more = facts[len(ended_with or ()) :]
        is_same = ended_with is None or facts[: len(ended_with)] == ended_with
        if not is_same or (ended_with and not {fact[0] for fact in more} <= LOOKS):
            found.append("who had lost the run wrote to it")
        return found

    def whole(self, case: Case) -> Any:
        return json.loads(case.whole(self.folder).read_text("utf-8"))

    def said(self, case: Case, left: dict[str, Any]) -> list[str]:
        """Return what is wrong with what a process says that was to come to no good end: it may
        have come to the right one.
        """
        result = left.get("result")
        is_wrong = bool(result) and result[0] == "done" and result != self.whole(case)["result"]
        return [*broken(left), *([f"it reported the result {result}"] if is_wrong else [])]


def broken(came: dict[str, Any]) -> list[str]:
    """Return what a process says is wrong, or that it broke otherwise than it may."""
    return [*came.get("faults", ()), *([came["broke"]] if "broke" in came else [])]


def forked(do: Callable[[], Any], path: Path, bug: str) -> int:
    """Begin a process that does this, and writes what came of it."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(PATIENCE)
    try:
        if bug:
            BUGS[bug]()
        said = do()
    except BaseException:  # noqa: BLE001  # whatever it is, it is told
        said = {"broke": traceback.format_exc(), "points": []}
    path.with_suffix(".new").write_text(json.dumps(said), "utf-8")
    path.with_suffix(".new").rename(path)
    os._exit(0)


def ended(pid: int, path: Path) -> dict[str, Any]:
    """Wait for a process; what it wrote. Nothing: it was killed."""
    _, status = os.waitpid(pid, 0)
    if path.exists():
        return json.loads(path.read_text("utf-8"))
    return (
        {}
        if os.WTERMSIG(status) == signal.SIGKILL
        else {"broke": f"the process did not end in {PATIENCE} seconds", "points": []}
    )


def facts_of(case: Case, folder: Path) -> list[Any]:
    journal = SqliteJournal(folder / "j", sync=case.sync)
    try:
        return [plain(entry) for entry in journal.entries(RUN)]
    finally:
        journal.close()


def main() -> None:
    """Serve, in the folder that is named on the command line."""
    logging.disable()
    folder = Path(sys.argv[1])
    # what is worked out once is worked out before the forks
    asyncio.run(OWNERS["engine"](MemoryJournal(), World(folder / "first", "")))
    for thread in threading.enumerate()[1:]:
        thread.join()
    gc.freeze()
    # who sleeps here shows no sign of life, and a busy machine takes its time
    internal("sqlite_writer").SILENCE = float(PATIENCE)
    server = Server(folder)
    for line in sys.stdin:
        case = Case(**json.loads(line))
        said = server.case(case) if case.how else server.watched(case)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()

"""The records of a run, by activation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from axil import Activation, Limits
from axil_journals.journal import Entry
from axil_journals.values import decode_value


class ReplayIndex:
    """The records of a run in a journal, indexed by activation."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.done: dict[Activation, Entry] = {}
        self.rounds: dict[Activation, list[Entry]] = {}
        self.clock: dict[tuple[Activation, int | str], float] = {}
        self.slept: dict[tuple[Activation, int | str], float] = {}
        self.woken: dict[tuple[Activation, int | str], float] = {}
        """The ends of sleeps by the wall clock."""
        self.timers: dict[str, float] = {}
        """The same of runs that were unloaded meanwhile, by question id, as last worked out."""
        self.used: dict[str, Any] = {}
        self.steps: dict[tuple[Activation, str], Mapping[str, Any]] = {}
        self.began: dict[tuple[Activation, str], int] = {}
        """The number of starts of bodies (``""``) and of steps with effects outside."""
        self.began_for: dict[tuple[Activation, str], str | None] = {}
        """Digests of what was asked for by the last of these starts."""
        self.paused: dict[tuple[Activation, str], int] = {}
        """The same number at the last time that the body stopped at a question by itself."""
        self.answers: dict[str, Any] = {}
        self.asked: dict[str, Entry] = {}
        self.due: dict[str, float] = {}
        """The deadlines of questions, in seconds since 1970, as set when they were first asked."""
        self.header: Entry | None = None
        self.ended: Entry | None = None
        """The end of the run, if nothing has happened since."""
        self.elapsed = 0.0
        for entry in entries:
            self._read(entry)

    @property
    def origin(self) -> dict[str, Any]:
        """The data that is kept with the run; see ``axil.Options.origin``."""
        data: Mapping[str, Any] = {} if self.header is None else self.header.data
        return dict(decode_value(data.get("origin", {})))

    @property
    def limits(self) -> Limits | None:
        """The limits that the run was last given; None: those of its graph."""
        kept = None if self.header is None else self.header.data.get("limits")
        return Limits(**decode_value(kept)) if kept else None

    def _read(self, entry: Entry) -> None:
        kind, data, who = entry.kind, entry.data, entry.activation
        self.ended = None
        if kind == "done":
            self.done[who] = entry
        elif kind == "round":
            if "total" in data:
                self.rounds.pop(who, None)
            self.rounds.setdefault(who, []).append(entry)
        elif kind == "clock":
            self.clock[who, data["call"]] = data["value"]
        elif kind == "slept":
            self.slept[who, data["call"]] = data["until"]
            if data.get("wall") is not None:
                self.woken[who, data["call"]] = data["wall"]
        elif kind == "step":
            self.steps[who, data["name"]] = data
        elif kind == "began":
            key = who, data.get("step", "")
            self.began[key] = self.began.get(key, 0) + 1
            self.began_for[key] = data.get("request")
        elif kind == "asked":
            self.asked[data["id"]] = entry
            if data.get("due") is not None:
                self.due.setdefault(data["id"], data["due"])
            if data.get("kind") != "uncertain" and not data.get("shown"):
                # the body stopped, and so did the steps that asked; others may be at work
                call = data["id"].removeprefix(f"{who}?")
                self.paused.update(
                    (began, times)
                    for began, times in self.began.items()
                    if began[0] == who
                    and (not began[1] or call.startswith((f"{began[1]}.", f"{began[1]}/")))
                )
        elif kind == "answer":
            self.answers[data["id"]] = decode_value(data["value"])
        elif kind == "run":
            self.header = entry
        elif kind == "resumed":
            if "now" in data and self.header is not None:  # another graph, origin or limits
                self.header = replace(self.header, data={**self.header.data, **data["now"]})
        elif kind == "ended":
            self.ended = entry
            self.timers.update(
                (q["id"], q["data"]["due"])
                for q in data.get("questions", ())
                if q.get("kind") == "timer"
            )
        self.elapsed = max(self.elapsed, float(data.get("at", 0.0)))
        self.used.update(data.get("used", ()))

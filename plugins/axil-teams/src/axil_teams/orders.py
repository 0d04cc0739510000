"""Orders: pure rules that say who speaks next, and when a team has ended.

What an order has to remember it keeps in ``Meeting.notes``, plain data recorded with the team.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from axil.plugin import Message, RouteError, did_you_mean, format_names
from axil_teams.errors import TeamError
from axil_teams.transcript import named, speaker, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """The knowledge of an order: what was said, in how many turns, and its own notes."""

    entries: Sequence[Message]
    """The transcript, the task first."""
    last: Sequence[Message] = ()
    """The text of the last turn, also if it is not part of the transcript."""
    turns: int = 0
    handoff: str = ""
    """The member that the last speaker handed over to."""
    notes: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Turn:
    """The members that speak next, side by side; with what they are sent, None: as they hear."""

    speakers: Mapping[str, Sequence[Message] | None]
    silent: bool = False
    """True if what they say stays out of the transcript."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a team."""

    said: Sequence[Message] = ()
    """The answer; empty: the last words of the transcript."""
    by: str = "order"
    """The cause: ``stop``, the ``limit``, or the ``order``, which had no further turn."""


class Order(Protocol):
    """The rule of a team's turns; ``str`` of it says the rule for drawings."""

    @property
    def most(self) -> int:
        """The number of turns after which it ends in any case."""
        ...

    def next(self, meeting: Meeting) -> Turn | End:
        """Return the next turn, or the end."""
        ...


@dataclass(frozen=True, slots=True)
class Stop:
    """The stop rule: a phrase, in the words of all that speak in a turn, or a function of them."""

    rule: str | Callable[[str], bool] | None = None
    by: tuple[str, ...] = ()
    """The members whose words count; empty: all."""

    def is_met(self, last: Sequence[Message]) -> bool:
        """Return whether the last turn ends the team."""
        said = [each for each in last if not self.by or speaker(each) in self.by]
        if self.rule is None or self.rule == "" or not said:
            return False
        if isinstance(self.rule, str):
            return all(self.rule in words([each]) for each in said)
        return bool(self.rule(words(said)))


def last_of(entries: Sequence[Message], member: str) -> tuple[Message, ...]:
    """Return a member's last words; nothing, if it has not spoken."""
    return tuple([each for each in entries if speaker(each) == member][-1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class InTurn:
    """Rounds of stages: the members of a stage speak side by side, one stage after another.

    ``first`` comes before the rounds, ``last`` after them, whatever ended them.
    """

    stages: Sequence[Sequence[str]]
    rounds: int
    first: Sequence[Sequence[str]] = ()
    last: Sequence[Sequence[str]] = ()
    stop: Stop = Stop()
    answer: str = ""
    """The member whose last words are the answer; empty: those of the last turn."""
    turns: int = 0
    """Turns of the rounds, where the last round is not a whole one; 0: all of them."""

    def __str__(self) -> str:
        first, rounds, last = (
            ", ".join(" + ".join(stage) for stage in stages)
            for stages in (self.first, self.stages, self.last)
        )
        times = f"{self.rounds} × ({rounds})" if self.rounds > 1 else rounds
        if self.turns:
            times = f"({rounds}) in turn, at most {self.turns}"
        return "; ".join(each for each in (first, times, last) if each)

    @property
    def most(self) -> int:
        """All turns there may be."""
        return len(self.first) + self._between + len(self.last)

    @property
    def _between(self) -> int:
        return self.turns or self.rounds * len(self.stages)

    def next(self, meeting: Meeting) -> Turn | End:
        """See ``Order``."""
        notes, at = meeting.notes, meeting.turns - len(self.first)
        if at < 0:
            return _together(self.first[meeting.turns])
        if "closed" not in notes:
            if at and self.stop.is_met(meeting.last):
                notes.update(closed=at, by="stop")
            elif at >= self._between:
                notes.update(closed=at, by="order" if self.stop.rule is None else "limit")
            else:
                return _together(self.stages[at % len(self.stages)])
        closing = at - int(notes["closed"])
        if closing < len(self.last):
            return _together(self.last[closing])
        said = last_of(meeting.entries, self.answer) if self.answer else ()
        return End(said or meeting.last, str(notes["by"]))


def _together(names: Sequence[str]) -> Turn:
    return Turn(dict.fromkeys(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoffs:
    """One speaks until it hands over to another; where it does not, ``home`` speaks, or it ends."""

    members: Sequence[str]
    first: str
    turns: int
    home: str = ""
    """The member that gets the turn back, and whose answer without a handoff ends the team."""
    stop: Stop = Stop()

    def __str__(self) -> str:
        back = f", then {self.home} again" if self.home else ""
        return f"{self.first}, then by handoff{back}; at most {self.turns}"

    @property
    def most(self) -> int:
        """All turns there may be."""
        return self.turns

    def next(self, meeting: Meeting) -> Turn | End:
        """See ``Order``.

        Raises: RouteError (AX222): a member handed over to another name than a member's.
        """
        if not meeting.turns:
            return _together([self.first])
        if self.stop.is_met(meeting.last):
            return End(meeting.last, "stop")
        speaking, target = speaker(meeting.last[-1]), meeting.handoff
        if target and target not in self.members:
            known = f"The members are {format_names(list(self.members))}."
            message = f'"{speaking}" hands over to "{target}", which is not a member.'
            raise RouteError(message, hint=did_you_mean(target, self.members) or known)
        if not target:
            if self.home in ("", speaking):
                return End(meeting.last)
            target = self.home
        return End(meeting.last, "limit") if meeting.turns >= self.turns else _together([target])


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """Before each turn one is asked who speaks: a selector, or a supervisor that says what to do.

    A supervisor writes ``NAME: what to do``, and the member is sent that alone; what it writes
    without such a name is the team's answer. A selector names a member; where it names none the
    members speak one after another.
    """

    chooser: str
    members: Sequence[str]
    turns: int
    supervises: bool = False
    stop: Stop = Stop()

    def __str__(self) -> str:
        does = "gives work" if self.supervises else "names the speaker"
        return f"{self.chooser} {does}; at most {self.turns}"

    @property
    def most(self) -> int:
        """All turns there may be, those of the chooser included."""
        return 2 * self.turns + (1 if self.supervises else 0)

    def next(self, meeting: Meeting) -> Turn | End:
        """See ``Order``."""
        notes = meeting.notes
        turns = int(notes.get("spoken", 0))
        if not notes.pop("asked", False):
            if turns and self.stop.is_met(meeting.last):
                return End(meeting.last, "stop")
            if turns >= self.turns and not self.supervises:
                return End(meeting.last, "limit")
            notes["asked"] = True
            sent = [*map(named, meeting.entries), self._question(turns)]
            return Turn({self.chooser: sent}, silent=True)
        answer = words(meeting.last)
        target, order = instructed(answer, self.members)
        if self.supervises:
            if not target or turns >= self.turns:
                return End(meeting.last, "limit" if target else "order")
            notes["spoken"] = turns + 1
            work = order or words(meeting.entries[:1])
            return Turn({target: [{"role": "user", "content": work}]})
        if self.stop.is_met(meeting.last):
            return End(meeting.entries[-1:], "stop")
        notes["spoken"] = turns + 1
        next_in_turn = self.members[turns % len(self.members)]
        return _together([mentioned(answer, self.members) or next_in_turn])

    def _question(self, turns: int) -> Message:
        names = format_names(list(self.members), 50)
        if not self.supervises:
            text = f"Who speaks next? Answer with one name of {names}, and nothing else."
        elif turns < self.turns:
            text = (
                f"The members are {names}. To give one of them work, write NAME: what to do. "
                "Where all is done, write the answer without such a line."
            )
        else:
            text = "There is no turn left: write the answer."
        return {"role": "user", "content": text}


def mentioned(text: str, names: Sequence[str]) -> str:
    """Return the name that comes first in a text; empty: there is none.

    >>> mentioned("I would ask bob, not ann.", ["ann", "bob"])
    'bob'
    """
    found: list[tuple[int, str]] = []
    for name in names:
        pattern = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
        if match := re.search(pattern, text, re.IGNORECASE):
            found.append((match.start(), name))
    return min(found)[1] if found else ""


def instructed(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Return who a text gives work to, and what: of the first line that begins with a name.

    >>> instructed("Well.\\nann: Look it up.", ["ann", "bob"])
    ('ann', 'Look it up.')
    """
    for name in names:
        begin = rf"^\s*\W{{0,2}}{re.escape(name)}\W{{0,2}}:\s*"
        if match := re.search(begin, text, re.IGNORECASE | re.MULTILINE):
            return name, text[match.end() :].strip()
    return "", ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A planner writes steps, members do those that are due side by side, one puts it together.

    A plan is a JSON list of ``{"id", "do", "by", "after"}``, where ``by`` names a member and
    ``after`` the steps whose results it needs; or a list of lines, done one after another.
    """

    planner: str
    members: Sequence[str]
    steps: int
    writer: str = ""

    def __str__(self) -> str:
        end = f"; {self.writer}" if self.writer else ""
        return f"{self.planner}; its steps, at most {self.steps}{end}"

    @property
    def most(self) -> int:
        """All turns there may be."""
        return self.steps + (2 if self.writer else 1)

    def next(self, meeting: Meeting) -> Turn | End:
        """See ``Order``. Raises: TeamError (AX671): the plan cannot be carried out."""
        notes = meeting.notes
        if not meeting.turns:
            return _together([self.planner])
        if notes.get("written"):
            return End(meeting.last)
        if "plan" not in notes:
            plan = steps_of(words(meeting.last), self.members, self.steps)
            notes.update(plan=plan, done={}, doing={})
        doing: dict[str, str] = notes["doing"]
        for said in meeting.last:
            if speaker(said) in doing:
                notes["done"][doing[speaker(said)]] = words([said])
        done: dict[str, str] = notes["done"]
        due: dict[str, dict[str, Any]] = {}
        for step in notes["plan"]:
            if step["id"] not in done and all(each in done for each in step["after"]):
                due.setdefault(step["by"], step)
        if due:
            notes["doing"] = {member: step["id"] for member, step in due.items()}
            task = words(meeting.entries[:1])
            return Turn({m: [_work(task, step, done)] for m, step in due.items()})
        notes["written"] = True
        return _together([self.writer]) if self.writer else End(meeting.last)


def _work(task: str, step: Mapping[str, Any], done: Mapping[str, str]) -> Message:
    """Return what a member is sent for a step: the task, the results it needs, and the step."""
    known = "".join(f"\nResult of {each}: {done[each]}" for each in step["after"])
    return {"role": "user", "content": f"Task: {task}{known}\nYour step: {step['do']}"}


_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def steps_of(text: str, members: Sequence[str], most: int) -> list[dict[str, Any]]:
    """Return the steps of a plan.

    >>> [(s["id"], s["by"], s["after"]) for s in steps_of("1. look\\n2. write", ["ann"], 5)]
    [('1', 'ann', []), ('2', 'ann', ['1'])]

    Raises: TeamError (AX671): it names a member or a step that is not there, has too many steps,
    none, or steps that wait for each other.
    """
    steps = _listed(text, members)
    if not 0 < len(steps) <= most:
        hint = "Raise steps, or state the largest number in the planner's instructions."
        raise _unfit(f"the plan has {len(steps)} steps, expected 1 to {most}", hint)
    ids = [step["id"] for step in steps]
    if len(set(ids)) < len(ids):
        raise _unfit("two steps have the same id", "Give each step its own id.")
    for step in steps:
        if step["by"] not in members:
            hint = f"The members are {format_names(list(members))}."
            raise _unfit(f'step {step["id"]} is for "{step["by"]}"', hint)
        if strangers := [each for each in step["after"] if each not in ids]:
            found = f"step {step['id']} comes after {format_names(strangers)}"
            hint = f"The steps are {format_names(ids)}."
            raise _unfit(f"{found}, which are not steps of the plan", hint)
    settled: set[str] = set()
    while len(settled) < len(steps):
        new = {s["id"] for s in steps if settled.issuperset(s["after"])} - settled
        if not new:
            hint = "Remove one of the dependencies."
            raise _unfit("its steps depend on each other in a cycle", hint)
        settled |= new
    return steps


def _unfit(found: str, hint: str) -> TeamError:
    return TeamError("AX671", f"a plan cannot be carried out: {found}.", hint)


def _listed(text: str, members: Sequence[str]) -> list[dict[str, Any]]:
    data: Any = None
    with suppress(ValueError):
        data = json.loads(text[max(text.find("["), 0) : text.rfind("]") + 1])
    if isinstance(data, list) and all(isinstance(each, dict) for each in cast("list[Any]", data)):
        return [
            {
                "id": str(step.get("id", number)),
                "do": str(step.get("do", "")),
                "by": str(step.get("by") or members[0]),
                "after": [str(each) for each in step.get("after") or ()],
            }
            for number, step in enumerate(cast("list[dict[str, Any]]", data), 1)
        ]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [_BULLET.sub("", line) for line in lines if _BULLET.match(line)] or lines
    return [
        {
            "id": str(number),
            "do": line,
            "by": instructed(line, members)[0] or members[0],
            "after": [str(number - 1)] if number > 1 else [],
        }
        for number, line in enumerate(lines, 1)
    ]

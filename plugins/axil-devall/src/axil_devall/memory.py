"""The memories that an agent uses: read before and after its reply, then updated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from axil import Problem, SpecError, State
from axil.plugin import did_you_mean
from axil_agent import Stage as Ctx
from axil_devall.config import Attachment, Stage
from axil_devall.notes import Note
from axil_devall.stores import Store, Surroundings, store_of
from axil_files import notes_field


@dataclass(frozen=True, slots=True)
class Attached:
    """A memory, and how the agent uses it."""

    how: Attachment
    store: Store


class Memories:
    """The memories of an agent."""

    def __init__(self, attached: Sequence[Attached]) -> None:
        self._attached = list(attached)

    async def read(self, stage: Stage, query: str, state: State, ctx: Ctx) -> str:
        """Return the memories' blocks at a stage, as text for the model; empty: none. Recorded."""
        some = [
            each for each in self._attached if each.how.read and stage in each.how.retrieve_stage
        ]
        if not some:
            return ""

        async def look() -> str:
            found = [
                (each.how.name, await each.store.found(query, _notes(each, state), each.how))
                for each in some
            ]
            return shown(found)

        return str(await ctx.step(f"memories:{stage}", look))

    async def add(self, note: Note, ctx: Ctx) -> dict[str, Any]:
        """Add a note to the memories that are written; return what the state is to get."""
        written: dict[str, Any] = {}
        for each in self._attached if str(note["text"]).strip() else ():
            if each.how.write and each.store.in_state:
                written[notes_field(each.how.name)] = [dict(note)]
            elif each.how.write:

                async def add(store: Store = each.store) -> None:
                    await store.add(note)

                await ctx.step(f"note:{each.how.name}", add)
        return written


def _notes(each: Attached, state: State) -> Sequence[Note]:
    """Return a memory's notes in the state."""
    if not each.store.in_state:
        return ()
    return list(cast("Sequence[Note]", state.get(notes_field(each.how.name)) or ()))


def shown(found: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the blocks of memories as text; empty: none.

    >>> print(shown([("board", ["one", "two"]), ("other", [])]))
    ===== Related Memories =====
    <BLANKLINE>
    --- board ---
    1. one
    2. two
    <BLANKLINE>
    ===== End of Memory =====
    """
    sections = [
        "\n".join(
            [f"--- {name} ---", *(f"{number}. {text}" for number, text in enumerate(texts, 1))]
        )
        for name, texts in found
        if texts
    ]
    if not sections:
        return ""
    return "\n\n".join(["===== Related Memories =====", *sections, "===== End of Memory ====="])


def memories_of(
    attachments: Sequence[Attachment], declared: Sequence[Mapping[str, Any]], around: Surroundings
) -> Memories:
    """Return the memories that an agent names, made for it, of those that its graph declares.

    Raises: SpecError (AX852): the graph has no such memory; and as making them does.
    """
    known = {str(each["name"]): (number, each) for number, each in enumerate(declared)}
    attached: list[Attached] = []
    problems: list[Problem] = []
    for number, how in enumerate(attachments):
        where = f"memories[{number}]"
        if how.name not in known:
            hint = (
                did_you_mean(how.name, known)
                or "Declare it under graph.memory: {name, type, config}."
            )
            problems.append(Problem("AX852", where, f'the graph has no memory "{how.name}".', hint))
            continue
        at, given = known[how.name]
        try:
            attached.append(Attached(how, store_of(given, around, f"memory[{at}]")))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return Memories(attached)

"""Runs of one thread go one after the other: what a journal refuses, and how it says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from axil.plugin import JournalError


def admit_run(
    header: Mapping[str, Any], run_id: str, runs: Sequence[str], status: Callable[[str], str]
) -> None:
    """Nothing, if it is a run's turn in its thread; asked when it is claimed.

    Args:
        header: what it began with: ``thread``, and ``after``: the run that it follows.
        runs: those of the thread so far, oldest first.
        status: of a run, as of ``RunInfo``; of this one how it ended.
    Raises: JournalError: AX508 another run was quicker, or is at work; AX529 it did not end well,
    and the thread went on without it.
    """
    last = runs[-1] if runs else ""
    if run_id not in runs:
        if header.get("after", "") != last or (last and status(last) == "running"):
            raise overtaken_error(header["thread"], last)
    elif last != run_id and status(run_id) != "done":
        raise left_behind_error(header["thread"], run_id, last)


def overtaken_error(thread: str, by: str) -> JournalError:
    """Return two runs began on one thread at once, and this one was second; or an earlier one is at
    work again.
    """
    message = f'another run, "{by}", has begun on the thread "{thread}".'
    return JournalError(
        message,
        id="AX508",
        hint="Runs of one thread go one after the other: wait until that one has ended.",
    )


def left_behind_error(thread: str, run_id: str, by: str) -> JournalError:
    """Return the error for resuming a run that did not end well, whose thread went on without
    it.
    """
    message = f'the run "{run_id}" is not the last of the thread "{thread}": "{by}" came after it.'
    return JournalError(message, id="AX529", hint="Fork it to continue beside the thread.")

"""The order of the runs of a thread, which go one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from axil.plugin import JournalError


def admit_run(
    header: Mapping[str, Any], run_id: str, runs: Sequence[str], status: Callable[[str], str]
) -> None:
    """Check, when a run is claimed, that it is its turn in its thread.

    Args:
        header: of the run: ``thread``, and ``after``: the run that it follows.
        runs: those of the thread so far, oldest first.
        status: returns the status of a run, as of ``RunInfo``; of this one as it ended.
    Raises: JournalError: AX508 another run was quicker, or is at work; AX529 it did not end as
    done, and later runs followed.
    """
    last = runs[-1] if runs else ""
    if run_id not in runs:
        if header.get("after", "") != last or (last and status(last) == "running"):
            raise overtaken_error(header["thread"], last)
    elif last != run_id and status(run_id) != "done":
        raise left_behind_error(header["thread"], run_id, last)


def overtaken_error(thread: str, by: str) -> JournalError:
    """Return the error for a run on whose thread another began first, or is at work again."""
    message = f'another run, "{by}", has begun on the thread "{thread}".'
    hint = "Runs of one thread go one after the other: wait until that one has ended."
    return JournalError(message, id="AX508", hint=hint)


def left_behind_error(thread: str, run_id: str, by: str) -> JournalError:
    """Return the error for resuming a run that did not end as done, when later ones followed."""
    message = f'the run "{run_id}" is not the last of the thread "{thread}": "{by}" came after it.'
    return JournalError(message, id="AX529", hint="Fork it to continue beside the thread.")

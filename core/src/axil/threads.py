"""Runs of one thread go one after the other: what a journal refuses, and how it says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil.errors import JournalError


def follow(thread: list[str], run_id: str, header: Mapping[str, Any]) -> None:
    """Put a run at the end of its thread. Raises: JournalError (AX508): another run was quicker."""
    last = thread[-1] if thread else ""
    if header.get("after", "") != last:
        raise overtaken(header["thread"], last)
    thread.append(run_id)


def overtaken(thread: str, by: str) -> JournalError:
    """Two runs began on one thread at once, and this one was second; or an earlier one is at work again."""
    told = f'another run, "{by}", has begun on the thread "{thread}".'
    return JournalError(told, id="AX508", hint="Runs of one thread go one after the other: wait until that one has ended.")


def left_behind(thread: str, run_id: str, by: str) -> JournalError:
    """A run that did not end well is to be gone on with, and its thread has gone on without it."""
    told = f'the thread "{thread}" has gone on without the run "{run_id}": "{by}" came after it.'
    return JournalError(told, id="AX529", hint="A fork of it goes on beside the thread.")
